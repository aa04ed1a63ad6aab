"""Whether a file that came from another machine is what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PIL import Image

SIDE_MOST: Final = 16_384
"""Pixels; four times the largest picture that may be asked for."""


def is_picture(path: Path) -> bool:
    """Tell whether a file from elsewhere is a whole PNG of a sensible size."""
    try:
        with Image.open(path, formats=("PNG",)) as picture:
            fits = max(picture.size) <= SIDE_MOST
            picture.verify()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    return fits
