"""The figures of a bench as a picture: a bar for each way, time on the left, memory on the right, both in powers of ten."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from app.compat.bench import Row

GROUND, CARD, LINE, INK, SOFT = "#faf6f0", "#fffdfa", "#e7ddd0", "#221d18", "#6a6056"
COLOURS = {
    "torch": "#1f5f8b", "repeat": "#8a5a00", "chunks": "#7a3f91", "math": "#6a6056", "hearth": "#b8420f", "hearth-keys": "#e08a5c",
}  # fmt: skip
WIDTH, MARGIN, LABELS, BAR, GAP, HEAD, CASE_HEAD = 1400, 40, 300, 22, 26, 120, 34
MIB = 1 << 20


def draw(rows: Sequence[Row], titles: Mapping[str, str], ways: Mapping[str, str], about: str) -> Image.Image:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.case, row.dtype), []).append(row)
    height = HEAD + sum(CASE_HEAD + BAR * len(each) + GAP for each in groups.values()) + MARGIN
    picture = Image.new("RGB", (WIDTH, height), GROUND)
    pen = ImageDraw.Draw(picture)
    pen.text((MARGIN, 28), "Attention, measured here", INK, ImageFont.load_default(30))
    pen.text(
        (MARGIN, 70),
        f"{about}. Shorter is better; each line is ten times the one before.",
        SOFT,
        ImageFont.load_default(16),
    )
    middle = (WIDTH - 2 * MARGIN - LABELS) // 2
    times = Axis(MARGIN + LABELS, middle - 110, [row.elapsed_s * 1e3 for row in rows if row.elapsed_s], "ms")
    sizes = Axis(
        MARGIN + LABELS + middle, middle - 110, [row.extra_bytes / MIB for row in rows if row.extra_bytes], "MiB"
    )
    top = HEAD
    for (case, dtype), group in groups.items():
        bottom = top + CASE_HEAD + BAR * len(group) + 6
        pen.rounded_rectangle((MARGIN - 14, top - 6, WIDTH - MARGIN + 14, bottom), 12, CARD, LINE)
        pen.text((MARGIN, top + 2), f"{titles[case]}, {dtype}", INK, ImageFont.load_default(18))
        for axis in (times, sizes):
            axis.lines(pen, top + CASE_HEAD - 4, bottom - 4)
        for at, row in enumerate(group):
            y = top + CASE_HEAD + BAR * at
            ours = row.way.startswith("hearth")
            pen.text((MARGIN, y + 1), ways[row.way], INK if ours else SOFT, ImageFont.load_default(15))
            if row.elapsed_s is None:
                pen.text((times.left + 6, y + 1), row.why_not, SOFT, ImageFont.load_default(14))
                continue
            times.bar(pen, y, row.elapsed_s * 1e3, COLOURS[row.way], ours)
            if row.extra_bytes is not None:
                sizes.bar(pen, y, row.extra_bytes / MIB, COLOURS[row.way], ours)
        top = bottom + GAP - 6
    return picture


class Axis:
    """From the power of ten below the least to the one above the most."""

    def __init__(self, left: int, width: int, values: Sequence[float], unit: str) -> None:
        self.left, self.width, self.unit = left, width, unit
        self.low = math.floor(math.log10(max(min(values, default=1.0), 0.01)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values, default=10.0))))

    def at(self, value: float) -> float:
        return self.left + self.width * max(0.0, math.log10(max(value, 1e-9)) - self.low) / (self.high - self.low)

    def lines(self, pen: ImageDraw.ImageDraw, top: int, bottom: int) -> None:
        for power in range(self.low, self.high + 1):
            pen.line((self.at(10.0**power), top, self.at(10.0**power), bottom), LINE)

    def bar(self, pen: ImageDraw.ImageDraw, y: int, value: float, colour: str, ours: bool) -> None:
        end = max(self.at(value), self.left + 3)
        pen.rounded_rectangle((self.left, y + 3, end, y + BAR - 4), 4, colour)
        words = f"{value:.3g} {self.unit}" if value < 1000 else f"{value:,.0f} {self.unit}"
        pen.text((end + 8, y + 1), words, INK if ours else SOFT, ImageFont.load_default(15))
