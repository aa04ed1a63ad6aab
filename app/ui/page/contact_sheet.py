"""Draw the contact sheet of a grid: pictures in rows and columns, values along the edges."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from app.base.foreign_formats import decode, open_picture

CELL: Final = 256
EDGE: Final = 120
HEAD: Final = 44
GAP: Final = 8
GROUND: Final = "#faf6f0"
INK: Final = "#221d18"


def contact_sheet(columns: Sequence[str], rows: Sequence[str], files: Sequence[Path | None]) -> bytes:
    """Return the sheet as PNG; a failed picture leaves its cell empty."""
    sheet = Image.new("RGB", (EDGE + len(columns) * (CELL + GAP), HEAD + len(rows) * (CELL + GAP)), GROUND)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(18)
    for x, value in enumerate(columns):
        pen.text((EDGE + x * (CELL + GAP) + CELL / 2, HEAD / 2), value[:28], INK, font, anchor="mm")
    for y, value in enumerate(rows):
        pen.text((EDGE - 12, HEAD + y * (CELL + GAP) + CELL / 2), value[:14], INK, font, anchor="rm")
    for place, file in enumerate(files):
        if file is not None and file.is_file():
            try:
                with open_picture(file) as picture:
                    small = decode(picture, "RGB")
            except OSError:  # changed on the disk
                continue
            small.thumbnail((CELL, CELL))
            left = EDGE + place % len(columns) * (CELL + GAP) + (CELL - small.width) // 2
            top = HEAD + place // len(columns) * (CELL + GAP) + (CELL - small.height) // 2
            sheet.paste(small, (left, top))
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()
