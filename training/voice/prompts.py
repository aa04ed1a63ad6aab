"""Judge voice prompts: whether a speaker goes on in each of the ready voices, by its pitch, and with how many word errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import evaluate, judge, sentences, speak
from .flite import SPEAKERS, VOICES, Flite

NEAR_SEMITONES = 2.0
Sound = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Followed:
    """One sentence after a prompt: the pitches of prompt and sentence; word errors of the voice and of flite."""

    prompt_hz: float
    followed_hz: float
    words: int
    errors: int
    flite_errors: int

    @property
    def semitones_off(self) -> float:
        return abs(float(12 * np.log2(self.followed_hz / self.prompt_hz)))


def followed(voice: speak.Voice, texts: list[str], count: int) -> list[Followed]:
    """Speak `count` sentences, each after a prompt by flite in one of the voices, under either tag in turn."""
    flite, ear = Flite(), judge.Judge()
    found = []
    for number in range(count):
        before, text = texts[2 * number : 2 * number + 2]
        name, speaker = list(VOICES)[number % len(VOICES)], tuple(SPEAKERS)[number // len(VOICES) % 2]
        prompt = np.asarray(flite.say(name, before).samples / 32768, np.float32)
        script = evaluate.script(evaluate.Trial(speaker, False, f"{before} {text}"), voice.letters)
        spoken = speak.speak(voice, [script], number, prompts=[prompt])[0]
        wanted = sentences.key(text).split()
        errors, flite_errors = (
            judge.word_errors(wanted, ear.listen(sound))
            for sound in (spoken.sound, np.asarray(flite.say(name, text).samples / 32768, np.float32))
        )
        found.append(Followed(evaluate.median_hz(prompt), evaluate.median_hz(spoken.sound), len(wanted), errors, flite_errors))
    return found


def scores(found: list[Followed]) -> dict[str, Any]:
    """Return the word errors after prompts, and the share whose pitch is near the prompt's."""
    words = sum(one.words for one in found)
    return {
        "prompts": len(found),
        "wer": round(sum(one.errors for one in found) / words, 4),
        "flite_wer": round(sum(one.flite_errors for one in found) / words, 4),
        "taken_share": round(float(np.mean([one.semitones_off < NEAR_SEMITONES for one in found])), 4),
    }
