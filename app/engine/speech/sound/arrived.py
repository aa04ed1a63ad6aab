"""Whether a sound that came from another machine is what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import soundfile

from app.engine.speech.sound import sound, spoken_parts

PART_MOST_S: Final = 300.0
"""The decoder's longest run is 36 s."""
RATE_LEAST: Final = 8000
RATE_MOST: Final = 48_000
"""Voices speak at 24,000 or 44,100 samples a second; no format that Hearth writes has more."""


def is_spoken(path: Path, text: str, seed: int) -> bool:
    """Tell whether a part from elsewhere is sound of this text and seed."""
    take = spoken_parts.find(path) if is_sound(path) else None
    return take is not None and (take.text, take.seed) == (text, seed)


def is_sound(path: Path) -> bool:
    """Tell whether a part from elsewhere is whole, and sound of a sensible length. What it says of itself lies beside it."""
    try:
        take = spoken_parts.find(path)
    except OSError:
        return False
    return take is not None and take.whole and take.frames > 0 and is_speech(path, "wav", PART_MOST_S)


def is_speech(path: Path, coding: str, longest_s: float) -> bool:
    """Tell whether a sound from elsewhere is what Hearth writes itself in this format, and no longer than it can be: of other channels, rates
    and codings a small file may become gigabytes where it is read."""
    try:
        about = sound.measure(path)
    except (OSError, soundfile.LibsndfileError):
        return False
    written = about.coding == sound.CODINGS[coding] and about.channels == 1 and RATE_LEAST <= about.rate <= RATE_MOST
    return written and 0 < about.seconds <= longest_s
