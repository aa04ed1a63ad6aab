"""Small previews on their way between machines: JPEG inside an event, and believed only as pixels, which are encoded anew."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any, Final

from PIL import Image

from app.base.foreign_formats import decode, open_picture
from app.engine.jobs.events import Preview

SIDE: Final = 256
SIDE_MOST: Final = 512
BYTES_MOST: Final = 48 << 10
STEP_MOST: Final = 10_000
_NAME: Final = "Preview"


def to_json(event: Preview) -> dict[str, Any] | None:
    """Return a preview with its picture; None if it is gone by now, or is too large."""
    try:
        with open_picture(Path(event.path)) as picture:
            small = _encode(picture)
    except OSError:
        return None
    return {"event": _NAME, "step": event.step, "jpeg": base64.b64encode(small).decode()} if len(small) <= BYTES_MOST else None


def read_picture(given: object) -> tuple[int, bytes] | None:
    """Return the step and the picture of a preview that another machine sent; None if it is none that may be shown."""
    if not isinstance(given, dict) or given.get("event") != _NAME:
        return None
    step, text = given.get("step"), given.get("jpeg")
    if type(step) is not int or not 0 <= step <= STEP_MOST or not isinstance(text, str) or len(text) > 2 * BYTES_MOST:
        return None
    try:
        with open_picture(base64.b64decode(text, validate=True), ("JPEG",)) as picture:
            if max(picture.size) > SIDE_MOST:
                return None
            return step, _encode(decode(picture, "RGB"))
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def _encode(picture: Image.Image) -> bytes:
    """Encode the pixels, and nothing else that a file may carry."""
    plain = Image.new("RGB", picture.size)
    plain.paste(picture.convert("RGB"))
    plain.thumbnail((SIDE, SIDE))
    made = io.BytesIO()
    plain.save(made, "JPEG", quality=75)
    return made.getvalue()
