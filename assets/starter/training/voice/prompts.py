"""Judge voice prompts: whether speech after a prompt by the other voice keeps that voice, by its pitch, and its word errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from . import codec, corpus, judge, speak, words
from .flite import Flite

SURELY_VOICED = 0.6
Sound = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Followed:
    """One phrase after a prompt: the pitches of the prompt, of the voice without a prompt and of the phrase; word errors."""

    prompt_hz: float
    alone_hz: float
    followed_hz: float
    words: int
    errors: int
    heard: str

    @property
    def share(self) -> float:
        """Return how far the pitch moved from the unprompted voice (0) to the prompt's (1), in logarithm."""
        return float(np.log(self.followed_hz / self.alone_hz) / np.log(self.prompt_hz / self.alone_hz))


def median_hz(sound: Sound) -> float:
    """Return the median pitch of clearly voiced frames."""
    tone = codec.pitch(torch.from_numpy(sound), len(sound) // codec.HOP)
    voiced = tone[tone[:, 1] > SURELY_VOICED, 0]
    return float(150 * voiced.median().exp()) if len(voiced) else float("nan")


def followed(voice: speak.Voice, seed: int, count: int, swapped: bool = True) -> list[Followed]:
    """Speak `count` held-out sentences under each tag, after a prompt by flite in the other voice, or in the tag's own."""
    flite, ear = Flite(), judge.Judge(words.vocabulary())
    texts = corpus.held_out(seed, "sentence", 2 * count)
    found = []
    for number, (before, text) in enumerate(zip(texts[:count], texts[count:], strict=True)):
        for speaker, other in corpus.OTHER.items():
            prompt = flite.say(other if swapped else speaker, before).samples.astype(np.float32) / 32768
            alone = speak.speak(voice, [f"[{speaker}] {text}"], number)[0]
            spoken = speak.speak(voice, [f"[{speaker}] {before} {text}"], number, prompts=[prompt])[0]
            heard, wanted = ear.listen(spoken.sound), words.spoken_words(text)
            found.append(
                Followed(
                    median_hz(prompt),
                    median_hz(alone.sound),
                    median_hz(spoken.sound),
                    len(wanted),
                    judge.word_errors(wanted, heard),
                    " ".join(heard),
                )
            )
    return found


def scores(found: list[Followed]) -> dict[str, Any]:
    """Return the word errors after prompts."""
    return {"prompts": len(found), "wer": round(sum(one.errors for one in found) / sum(one.words for one in found), 4)}


def taken(found: list[Followed]) -> dict[str, Any]:
    """Return the share whose pitch is nearer to the prompt's than to the voice's own, and how far the median one moved."""
    return {
        "taken_share": round(float(np.mean([one.share > 0.5 for one in found])), 4),
        "median_way": round(float(np.nanmedian([one.share for one in found])), 3),
    }
