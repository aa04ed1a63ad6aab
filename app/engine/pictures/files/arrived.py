"""Whether a picture that came from another machine is what it should be."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PIL import Image

from app.base.foreign_formats import decode, open_picture

SIDE_MOST: Final = 4096
"""The largest picture that may be asked for has so many pixels a side: a small file can become gigabytes where it is shown."""


def is_picture(path: Path) -> bool:
    """Tell whether a file from elsewhere is a whole PNG no larger than any that is painted here."""
    try:
        with open_picture(path, ("PNG",)) as picture:
            if max(picture.size) > SIDE_MOST:
                return False
            decode(picture)
    except (OSError, Image.DecompressionBombError):
        return False
    return True
