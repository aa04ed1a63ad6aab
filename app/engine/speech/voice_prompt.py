"""What the model hears before a part, so that its voices go on, and the text that it reads with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from app.engine.text.turns import Part, Turn
from app.engine.text.voice_limits import Limits


@dataclass(frozen=True, slots=True)
class VoiceContext:
    """What the model hears before a part, so that its voices go on."""

    codes: torch.Tensor
    turns: tuple[Turn, ...]

    @property
    def speakers(self) -> frozenset[int]:
        return frozenset(turn.speaker for turn in self.turns)


def choose_context(part: Part, clip: VoiceContext | None, before: Iterable[VoiceContext]) -> VoiceContext | None:
    """The clip if it has all of the part's speakers; else the first of `before` (nearest first) that has; else the clip, else the nearest."""
    if clip is not None and part.speakers <= clip.speakers:
        return clip
    nearest = None
    for heard in before:
        if part.speakers <= heard.speakers:
            return heard
        nearest = nearest or heard
    return clip or nearest


def compose_text(said: tuple[Turn, ...], limits: Limits) -> str:
    """What the encoder reads. Dia begins with [S1], alternates, and ends best with the tag of the last speaker but one; where tags
    are no fixed voices, they may change places."""
    joined: list[Turn] = []
    for turn in said:
        if joined and joined[-1].speaker == turn.speaker:
            joined[-1] = Turn(turn.speaker, f"{joined[-1].text} {turn.text}")
        else:
            joined.append(turn)
    if not limits.carries:
        return " ".join(map(str, joined))
    if joined[0].speaker == 2:
        joined = [Turn(3 - turn.speaker, turn.text) for turn in joined]
    closing = f" [S{joined[-2].speaker}]" if len(joined) > 1 else ""
    return " ".join(map(str, joined)) + closing
