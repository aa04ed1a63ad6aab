"""The voices of a cast's speakers, as one loaded model has them: signs that it knows, and recordings that it heard."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Final

import torch

from app.base.sentence import Sentence
from app.engine.jobs.request import Actor
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.family import Voice, VoiceContext
from app.engine.speech.text import voices
from app.engine.speech.text.cast_script import TOGETHER
from app.engine.speech.text.turns import ScriptPart, Turn

NOBODY: Final = ""


class Actors:
    """Who speaks with this model; each part is given to it with its own speakers as its first ones."""

    def __init__(self, voice: Voice, actors: tuple[Actor, ...], model: str) -> None:
        self._voice = voice
        self._own = {number: each for number, each in enumerate(actors, 1) if each.model == model}
        self._signs = dict(enumerate(voices.name_cast(actors, lambda _: voice.limits), 1))
        self._clips: dict[int, VoiceContext] = {}

    def hear(self, speakers: Iterable[int]) -> Generator[Sentence, None, None]:
        """Encode the recordings of these speakers; yield what there is to say of them."""
        limits = _share(self._voice.limits)
        for number in sorted(set(speakers)):
            prompt = self._own[number].voice
            if prompt is not None and self._signs[number] == NOBODY:
                heard = voices.prepare_prompt(prompt, limits)
                yield from heard.notes
                turns = tuple(Turn(number, turn.text) for turn in heard.turns)
                self._clips[number] = VoiceContext(self._voice.codec.encode(heard.samples), turns)

    def name(self, part: ScriptPart) -> tuple[str, ...]:
        """Return the signs of a part's speakers, in their order; none unless the model knows all of them."""
        signs = tuple(self._signs[speaker] for speaker in _order(part))
        return signs if all(signs) else ()

    def choose_context(self, part: ScriptPart, before: Iterable[VoiceContext]) -> VoiceContext | None:
        """Return what a part goes on from: the recordings of all of its speakers, else an earlier part that has all of them, else what there is of
        them; never with more voices than the model tells apart."""
        clips = [self._clips[speaker] for speaker in _order(part) if speaker in self._clips]
        joined = VoiceContext(torch.cat([each.codes for each in clips]), tuple(t for each in clips for t in each.turns)) if clips else None
        if len(clips) == len(part.speakers):
            return joined
        nearest = None
        for earlier in before:
            if part.speakers <= earlier.speakers:
                return earlier
            if len(part.speakers | earlier.speakers) <= TOGETHER:
                nearest = nearest or earlier
        return joined or nearest


def renumber(part: ScriptPart, context: VoiceContext | None) -> tuple[ScriptPart, VoiceContext | None]:
    """Return both with their speakers counted from 1."""
    before = context.turns if context is not None else ()
    numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(turn.speaker for turn in (*before, *part.turns)), 1)}

    def count(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return tuple(replace(turn, speaker=numbers[turn.speaker]) for turn in turns)

    return replace(part, turns=count(part.turns)), context and replace(context, turns=count(context.turns))


def _order(part: ScriptPart) -> list[int]:
    return [*dict.fromkeys(turn.speaker for turn in part.turns)]


def _share(limits: VoiceLimits) -> VoiceLimits:
    """Leave room for the recordings of as many as a part may have."""
    together = min(TOGETHER, limits.speakers_a_part)
    return replace(limits, clip_most_s=limits.clip_most_s / together, bytes_most=limits.bytes_most // together)
