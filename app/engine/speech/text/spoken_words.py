"""The words that are heard in a result: all of a script, or what was spoken of it before a stop. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.turns import ScriptPart, Turn

CUT: Final = 0.97
"""A part counts as whole if this share of its sound is there: parts fade into each other."""
SLOWEST_BYTES_PER_S: Final = 6.0


def list_heard(parts: Sequence[ScriptPart], lasted_s: Sequence[float], seconds: float, limits: VoiceLimits) -> tuple[Turn, ...]:
    """Return the turns heard in the first seconds of a script. `lasted_s`: how long each part lasts, measured where it was spoken."""
    heard: list[Turn] = []
    left_s = seconds
    for place, (part, lasts_s) in enumerate(zip(parts, lasted_s, strict=True)):
        left_s -= part.pause_before_s if place else 0.0
        if left_s <= 0:
            break
        if left_s < lasts_s * CUT:
            heard.extend(take_first(part.turns, left_s, lasts_s, limits))
            break
        heard.extend(part.turns)
        left_s -= lasts_s
    return tuple(heard)


def take_first(turns: Sequence[Turn], kept_s: float, whole_s: float, limits: VoiceLimits) -> tuple[Turn, ...]:
    """Return the words spoken in the first seconds at the clip's own pace. If that pace is very slow, the words belong
    to the beginning only: use the usual pace."""
    pace = sum(len(turn.text.encode()) + 1 for turn in turns) / whole_s
    room = kept_s * (pace if pace > SLOWEST_BYTES_PER_S else limits.bytes_per_s)
    kept: list[Turn] = []
    for turn in turns:
        words: list[str] = []
        for word in turn.text.split():
            room -= len(word.encode()) + 1
            if room < 0:
                break
            words.append(word)
        if words:
            kept.append(Turn(turn.speaker, " ".join(words)))
        if room < 0:
            break
    return tuple(kept) or (Turn(turns[0].speaker, turns[0].text.split()[0]),)
