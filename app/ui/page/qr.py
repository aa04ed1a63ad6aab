"""Draw QR codes for the page."""

from __future__ import annotations

import io
from functools import lru_cache

import segno


@lru_cache(maxsize=4)
def draw_qr(text: str) -> str:
    """Draw a text as an SVG."""
    drawn = io.BytesIO()
    segno.make(text, error="m").save(drawn, kind="svg", xmldecl=False, svgns=True, border=2, scale=4, dark="#221d18", light="#fffdfa")
    return drawn.getvalue().decode()
