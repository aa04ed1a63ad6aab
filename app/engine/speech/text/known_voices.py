"""Tell which of the ready voices a clip or a result has, and name them to a model that learned them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.turns import Turn


def name_voices(first: int, known: Sequence[str], limits: VoiceLimits) -> tuple[str, ...]:
    """Return a sign for each speaker where the model knows the voice by name, else nothing. `known`: the clips of one or of both speakers,
    each by its `clip_key`. One alone is for the script's first speaker: the other keeps its usual voice, or takes the first's where that is
    the one chosen."""
    chosen = tuple(limits.ready[key] for key in known if key in limits.ready)
    if len(chosen) < len(known):
        return ()
    if len(chosen) != 1:
        return chosen
    given_up = limits.usual[first - 1 : first]
    others = (given_up[0] if usual == chosen[0] else usual for usual in limits.usual)
    return tuple(chosen[0] if speaker == first else other for speaker, other in enumerate(others, start=1))


def name_actors(known: Sequence[Sequence[str] | None], limits: VoiceLimits) -> tuple[str, ...]:
    """Return the sign of each speaker's voice, empty where the model knows none. `known`: the clips that a chosen voice is heard in, each by its
    `clip_key`; None for whoever has no voice chosen, who gets one that nobody has: which, hangs on the place alone while there are enough. Of more people than
    voices the last ones share, and nobody shares the first's: in a book that is the narrator's."""
    chosen = [next((limits.ready[key] for key in keys or () if key in limits.ready), "") for keys in known]
    signs = [*dict.fromkeys((*limits.usual, *limits.ready.values()))]
    taken = {*filter(None, chosen)}
    for place, keys in enumerate(known):
        if keys is None and signs:
            turned = [*signs[place % len(signs) :], *signs[: place % len(signs)]]
            shared = signs[-1 - (place - len(signs)) % (len(signs) - 1)] if len(signs) > 1 else signs[0]
            chosen[place] = next((sign for sign in turned if sign not in taken), shared)
            taken.add(chosen[place])
    return tuple(chosen)


def list_known(named: Sequence[str], heard: Sequence[Turn], limits: VoiceLimits) -> tuple[str, ...]:
    """Return the clips, each by its `clip_key`, of the voices heard in a result that was spoken with these signs; where one speaker alone is
    heard, only that one's. Nothing where the model names no voices."""
    keys = {sign: key for key, sign in limits.ready.items()}
    if not named or not set(named) <= set(keys):
        return ()
    return tuple(keys[named[speaker - 1]] for speaker in sorted({turn.speaker for turn in heard}))
