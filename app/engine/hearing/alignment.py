"""Find when each word was said: by what a decoder looked at while it wrote each token. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.engine.hearing.heard import Meant, Word, is_wide
from app.engine.speech.sound.sound import Samples

Weights = NDArray[np.float32]
Said = TypeVar("Said", Word, Meant)
SMOOTHED: Final = 7
"""A median over so many places of the encoder smooths what was looked at."""
HOP_S: Final = 0.02
PAUSE_S: Final = 0.2
"""Longer ones are within no word."""
QUIET: Final = 0.03
"""Below this share of the loud hops' amplitude nobody speaks. Twice the noise is no speech either."""
_WORD: Final = re.compile(r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+")


def align(looked: Weights, loud: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return at which place each token begins, and where the last one ends. `looked`: (heads, tokens, places), how much the decoder looked at a
    place while it wrote a token; the last row is that of the end. `loud`: where anything is heard; no word is elsewhere."""
    shares = looked / np.maximum(looked.sum(axis=2, keepdims=True), 1e-9)
    spread = np.maximum(shares.std(axis=1, keepdims=True), 1e-6)
    scores = smooth((shares - shares.mean(axis=1, keepdims=True)) / spread).mean(axis=0)
    places = np.flatnonzero(loud) if loud.any() else np.arange(len(loud))
    return places[follow_path(-scores[:, places].astype(np.float64))]


def smooth(values: Weights) -> Weights:
    """Return the median of SMOOTHED places around each."""
    around = SMOOTHED // 2
    if values.shape[-1] <= around:
        return values
    padded = np.pad(values, ((0, 0), (0, 0), (around, around)), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED, axis=-1), axis=-1).astype(np.float32)


def follow_path(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return where each row of the cheapest path through all rows and columns begins: dynamic time warping."""
    rows, columns = costs.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    came = np.zeros((rows + 1, columns + 1), np.int8)
    for column in range(
        1, columns + 1
    ):  # all rows of a column at once, but for the step from the row before, which hangs on the row before
        before, now = total[:, column - 1], total[:, column]
        best = np.minimum(before[:-1], before[1:])
        came[1:, column] = np.where(before[:-1] <= before[1:], 0, 2)
        for row in range(1, rows + 1):
            above = now[row - 1]
            if above < best[row - 1]:
                best[row - 1], came[row, column] = above, 1
            now[row] = best[row - 1] + costs[row - 1, column - 1]
    begins = np.zeros(rows, np.int64)
    row, column = rows, columns
    while row > 0:
        begins[row - 1] = max(column - 1, 0)
        move = came[row, column] if column > 0 else 1
        row, column = row - (move != 2), column - (move != 1)
    return begins


def make_words(
    tokens: Sequence[int], decode: Callable[[Sequence[int]], str], times_s: Sequence[float], sure: Sequence[float]
) -> list[Word]:
    """Put tokens together to words. `times_s`: when each token begins, and when the last one ends."""
    text = decode(tokens)
    ends = [len(decode(tokens[: count + 1]).rstrip("\ufffd")) for count in range(len(tokens))]
    begins = [0, *ends[:-1]]
    words: list[Word] = []
    for found in _WORD.finditer(text):
        first = begins.index(max(begin for begin in begins if begin <= found.start()))  # half a sign adds nothing
        last = next((place for place, end in enumerate(ends) if end >= found.end()), len(tokens) - 1)
        said = found[0]
        begin_s, end_s, likely = times_s[first], max(times_s[last + 1], times_s[first]), float(np.mean(sure[first : last + 1]))
        if words and is_wide(said[0]) and not said[0].isalnum():  # a mark belongs to the sign before it
            before = words.pop()
            said, begin_s, likely = before.text + said, before.begin_s, before.sure
        words.append(Word(said, begin_s, end_s, likely))
    return words


def find_loud(samples: Samples, rate: int, per_s: float) -> NDArray[np.bool_]:
    """Tell for each moment, so many a second, whether anything is heard in it."""
    hop = max(1, round(rate / per_s))
    loudness = np.sqrt((np.pad(samples, (0, -len(samples) % hop)).reshape(-1, hop).astype(np.float64) ** 2).mean(axis=1))
    noise, voice = np.percentile(loudness, (5, 90)) if len(loudness) else (0.0, 0.0)
    return np.asarray(loudness > max(QUIET * voice, 2 * noise))


def tighten(words: Sequence[Said], samples: Samples, rate: int) -> list[Said]:
    """Take silence away from both ends of each word. No word goes over a pause: what is beyond is its neighbour's."""
    loud = find_loud(samples, rate, 1 / HOP_S)
    made = list[Said]()
    owed_s: float | None = None
    for word in words:
        begin_s = word.begin_s if owed_s is None else min(owed_s, word.begin_s)
        first, owed_s = int(begin_s / HOP_S), None
        runs = _list_runs(loud[first : max(first + 1, round(word.end_s / HOP_S))])
        if runs:
            longest = max(runs, key=lambda run: run[1] - run[0])
            place = runs.index(longest)
            spans_s = [((first + begin) * HOP_S, (first + end) * HOP_S) for begin, end in runs]
            if place and made:
                made[-1] = replace(made[-1], end_s=spans_s[place - 1][1])
            if place + 1 < len(spans_s):
                owed_s = spans_s[place + 1][0]
            word = replace(word, begin_s=max(begin_s, spans_s[place][0]), end_s=spans_s[place][1])
        made.append(word)
    return made


def _list_runs(loud: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """List the stretches in which something is heard, with no pause in them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loud, [False]]).astype(np.int8)))
    runs = list[tuple[int, int]]()
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if runs and (begin - runs[-1][1]) * HOP_S < PAUSE_S:
            begin = runs.pop()[0]
        runs.append((begin, end))
    return runs
