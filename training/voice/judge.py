"""Judge speech with pocketsphinx, which never heard the starter voice: word errors and sound checks. Knows nothing about models."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FRAME_S = 0.025
LANGUAGE_WEIGHT = 6.5
WORD_PENALTY = 0.65


@dataclass(frozen=True, slots=True)
class Heard:
    """Errors and words summed over phrases."""

    errors: int
    words: int

    @property
    def rate(self) -> float:
        return self.errors / max(1, self.words)


def word_errors(said: Sequence[str], heard: Sequence[str]) -> int:
    """Count insertions, deletions and substitutions between two word lists (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, start=1):
        previous, row[0] = row[0], i
        for j, other in enumerate(heard, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != other))
    return row[-1]


class Judge:
    """A recogniser for the given words in any order, all equally likely, so that no grammar helps the voice; without words, for all
    of English, with pocketsphinx's own language model."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        from pocketsphinx import Decoder

        if not words:
            self._decoder = Decoder(samprate=16000.0, loglevel="FATAL")
            return
        chance = -np.log10(len(words) + 1)
        rows = "\n".join(f"{chance:.4f} {word}" for word in ("<s>", "</s>", *words))
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "words.arpa"
            model.write_text(f"\\data\\\nngram 1={len(words) + 2}\n\n\\1-grams:\n{rows}\n\n\\end\\\n")
            self._decoder = Decoder(lm=str(model), samprate=16000.0, loglevel="FATAL", lw=LANGUAGE_WEIGHT, wip=WORD_PENALTY)

    def listen(self, samples: NDArray[np.float32]) -> list[str]:
        """Return the words recognised in 16 kHz sound from -1 to 1."""
        padded = np.concatenate([np.zeros(3200, np.float32), samples, np.zeros(3200, np.float32)])
        self._decoder.start_utt()
        self._decoder.process_raw((np.clip(padded, -1, 1) * 32767).astype(np.int16).tobytes(), full_utt=True)
        self._decoder.end_utt()
        best = self._decoder.hyp()
        return [word.split("(")[0] for word in best.hypstr.split() if word[0] not in "<["] if best else []


def loudness_db(samples: NDArray[np.float32], rate_hz: int = 16000) -> NDArray[np.float32]:
    """Return the loudness of each 25 ms, in dB below full scale."""
    size = int(rate_hz * FRAME_S)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    return (10 * np.log10(np.mean(frames.astype(np.float64) ** 2, axis=1) + 1e-10)).astype(np.float32)


def clipped_end(samples: NDArray[np.float32]) -> bool:
    """Tell whether the sound is cut off: its last 50 ms are nearly as loud as the speech."""
    loud = loudness_db(samples)
    return len(loud) < 8 or bool(loud[-2:].mean() > np.percentile(loud, 90) - 18)


def lost_and_repeated(said: Sequence[str], heard: Sequence[str]) -> tuple[int, int]:
    """Return the longest run of words that were said and not heard, and of words heard that were not said; substitutions end a run."""
    costs = [[0] * (len(heard) + 1) for _ in range(len(said) + 1)]
    for i in range(len(said) + 1):
        for j in range(len(heard) + 1):
            costs[i][j] = (
                i + j
                if not i or not j
                else min(costs[i - 1][j] + 1, costs[i][j - 1] + 1, costs[i - 1][j - 1] + (said[i - 1] != heard[j - 1]))
            )
    i, j, run, longest = len(said), len(heard), {"lost": 0, "more": 0}, {"lost": 0, "more": 0}
    while i or j:
        if i and j and costs[i][j] == costs[i - 1][j - 1] + (said[i - 1] != heard[j - 1]):
            i, j, run = i - 1, j - 1, {"lost": 0, "more": 0}
            continue
        way = "lost" if i and costs[i][j] == costs[i - 1][j] + 1 else "more"
        i, j = (i - 1, j) if way == "lost" else (i, j - 1)
        run[way] += 1
        longest[way] = max(longest[way], run[way])
    return longest["lost"], longest["more"]
