"""Cut a long sound into stretches that a recogniser hears at once, in pauses, and leave out silence. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np

from app.engine.speech.sound.sound import Samples, find_spoken_span

MOST_S: Final = 28.0
"""Whisper hears 30 s; words at its very end are lost."""
EARLIEST: Final = 0.5
"""From this share of MOST_S on, a stretch ends in the quietest place."""
HOP_S: Final = 0.02
PAUSE_S: Final = 0.3
"""What is quiet for as long counts as a pause; a quiet place alone may be within a word."""


def cut_pieces(samples: Samples, rate: int) -> list[tuple[int, int]]:
    """Return begin and end of each stretch with sound in it."""
    hop = round(HOP_S * rate)
    powers = (np.pad(samples, (0, -len(samples) % hop)).reshape(-1, hop).astype(np.float64) ** 2).mean(axis=1)
    width = round(PAUSE_S / HOP_S)
    smooth = np.convolve(powers, np.ones(width) / width, "same")
    most, begun, spans = round(MOST_S / HOP_S), 0, list[tuple[int, int]]()
    while len(powers) - begun > most:
        first = begun + round(EARLIEST * most)
        end = first + int(np.argmin(smooth[first : begun + most]))
        spans.append((begun * hop, end * hop))
        begun = end
    spans.append((begun * hop, len(samples)))
    heard = ((begin, find_spoken_span(samples[begin:end], rate)) for begin, end in spans)
    return [(begin + first, begin + last) for begin, (first, last) in heard if last]
