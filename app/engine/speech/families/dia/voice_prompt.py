"""Compose the text that Dia reads, and say how long a part of it lasts at least."""

from __future__ import annotations

from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.pronounce import count_signs, read_letters, to_sounds
from app.engine.speech.text.turns import Turn

LEAST_SLACK_S = 0.25
_OPEN = ",;:-"
_ENDS = (".", "!", "?", '"', "'", ")", "…")


def count_least_frames(turns: tuple[Turn, ...], limits: VoiceLimits) -> int:
    """Return the frames before which these turns cannot have been said."""
    if limits.letters is None:
        return 0
    signs = count_signs((turn.text for turn in turns), limits.letters)
    return max(0, int((signs / limits.signs_per_s_most - LEAST_SLACK_S) * limits.frame_rate))


def compose_text(turns: tuple[Turn, ...], limits: VoiceLimits, named: tuple[str, ...] = ()) -> str:
    """Return the text for the encoder. Dia starts with [S1], alternates, and ends best with the tag of the other speaker; where tags
    are not fixed voices, they may be swapped. `named`: signs of the speakers' voices, for a model that has learned some by name."""
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].speaker == turn.speaker:
            joined[-1] = Turn(turn.speaker, f"{joined[-1].text} {turn.text}")
        else:
            joined.append(turn)
    if limits.letters is not None:
        letters = read_letters(limits.letters)
        joined = [Turn(turn.speaker, to_sounds(turn.text, letters)) for turn in joined]
    joined = [Turn(turn.speaker, _end_phrase(turn.text, _OPEN if limits.letters is None else ",")) for turn in joined]
    if named:
        return " ".join(f"[S{turn.speaker}]{named[turn.speaker - 1]} {turn.text}" for turn in joined)
    if not limits.carries:
        return " ".join(map(str, joined))
    if joined[0].speaker == 2:
        joined = [Turn(3 - turn.speaker, turn.text) for turn in joined]
    closing = f" [S{joined[-2].speaker}]" if len(joined) > 1 else ""
    return " ".join(map(str, joined)) + closing


def _end_phrase(said: str, open_marks: str) -> str:
    """Return a turn with a mark at its end that ends a sentence, as all has that the models learned from: after a comma, the starter voice
    often goes on for many seconds."""
    bare = said.rstrip(f" {open_marks}") or said
    return bare if bare.endswith(_ENDS) else f"{bare}."
