"""Forecast how fast a voice that was never here would speak on this computer, and rank the natural ones: for the first download. No torch."""

from __future__ import annotations

import functools
import math
import time
from typing import Final

import numpy as np

from app.engine.models.catalog import BY_ID, CATALOG

OVERHEAD: Final = 2.2
"""A step takes so many times as long as one product of as many weights: so is Phonon's real-time factor of docs/speed.md met on the
computer it was measured on."""
SHAPE: Final = (2048, 8192)
"""It takes 64 MiB, more than most caches hold."""
TRIES: Final = 5


@functools.cache
def measure_weights_per_s() -> float:
    """Measure how many weights one thread of this computer multiplies in a second. Time of the processor, so that other programs count little."""
    weights, values = np.ones(SHAPE, np.float32), np.ones(SHAPE[1], np.float32)
    best = math.inf
    for _ in range(TRIES):
        began_s = time.process_time()
        weights @ values
        best = min(best, time.process_time() - began_s)
    return weights.size / max(best, 1e-4)


def forecast_realtime(id_: str, weights_per_s: float) -> float:
    """Return how many seconds of sound a voice makes in a second."""
    model = BY_ID[id_]
    return weights_per_s / (OVERHEAD * sum(part.parameters for part in model.parts) * model.frames_per_s)


def rank_natural(weights_per_s: float, language: str = "en") -> list[tuple[str, float]]:
    """Return the natural voices and how many times as fast as they are heard they speak here: those of a language first, the quickest of them first."""
    rated = [(model.id, forecast_realtime(model.id, weights_per_s)) for model in CATALOG if model.frames_per_s]
    return sorted(rated, key=lambda each: (language not in BY_ID[each[0]].languages, -each[1]))
