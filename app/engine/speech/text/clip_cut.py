"""Choose what is used of a voice's clip: whole turns if it can be, else up to a place between two words. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.sound.sound import Samples
from app.engine.speech.text.spoken_words import take_first
from app.engine.speech.text.turn_ends import find_turn_ends
from app.engine.speech.text.turns import Turn

LEAST_S: Final = 1.0
"""Less says too little of a voice."""
CUT: Final = (0.55, 0.8)
"""A longer clip is cut between these fractions of the longest clip allowed."""
CUT_AFTER_TURN: Final = (0.33, 0.8)
"""Where a turn ends, these fractions count: the clip may be shorter, as it then says exactly its words."""


def cut_clip(samples: Samples, rate: int, turns: tuple[Turn, ...], whole_s: float, limits: VoiceLimits) -> tuple[Samples, tuple[Turn, ...]]:
    """Return what is used of a clip, and the words in it. The whole clip, of which these samples are the first, lasts `whole_s`. A voice
    whose tags are fixed voices gets one turn, as a clip of two speakers gives either of them the voice of the last."""
    most_s = limits.heard_most_s
    alone = not limits.carries and len({turn.speaker for turn in turns}) > 1
    if not alone and len(samples) <= most_s * rate:
        return samples, turns
    ends = find_turn_ends(samples, rate, turns, whole_s)
    if alone:
        spans = [*pairwise((0, *ends, len(samples)))]
        place = next((at for at, (begin, end) in enumerate(spans) if end - begin >= LEAST_S * rate), 0)
        begin, end = spans[place]
        samples, turns, whole_s, ends = samples[begin:end], turns[place : place + 1], (end - begin) / rate, ()
        if len(samples) <= most_s * rate:
            return samples, turns
    first, last = (share * most_s * rate for share in CUT_AFTER_TURN)
    whole_turns = [count for count, end in enumerate(ends, start=1) if first <= end <= last]
    if whole_turns:
        return samples[: ends[whole_turns[-1] - 1]], turns[: whole_turns[-1]]
    kept = samples[: _find_quiet_place(samples, rate, most_s)]
    return kept, take_first(turns, len(kept) / rate, whole_s, limits) if turns else ()


def _find_quiet_place(samples: Samples, rate: int, most_s: float) -> int:
    """Find a place to cut between two words."""
    hop = max(1, rate // 20)
    first, last = (int(each * most_s * rate) for each in CUT)
    powers = [float(np.mean(samples[at : at + hop] ** 2)) for at in range(first, last - hop, hop)]
    return first + int(np.argmin(powers)) * hop + hop // 2
