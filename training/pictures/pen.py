"""Draw flat figures around a point: coordinates are shares of the figure's radius, y downwards. Knows nothing of what it draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import ImageDraw

Colour = tuple[float, float, float]
Point = tuple[float, float]


def mix(colour: Sequence[float], other: Sequence[float], share: float) -> Colour:
    """Return a colour that lies this share of the way towards another."""
    red, green, blue = (a + (b - a) * share for a, b in zip(colour, other, strict=True))
    return red, green, blue


def lighter(colour: Colour, share: float = 0.22) -> Colour:
    return mix(colour, (255, 255, 255), share)


def darker(colour: Colour, share: float = 0.2) -> Colour:
    return mix(colour, (24, 20, 36), share)


def ring(rx: float, ry: float, x: float = 0, y: float = 0, begin: float = 0, end: float = 360, n: int = 40) -> list[Point]:
    """Return points along an ellipse; degrees, clockwise from the right."""
    turn = [math.radians(begin + (end - begin) * i / n) for i in range(n + 1)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in turn]


@dataclass(frozen=True, slots=True)
class Pen:
    """`tint` is the light of the time of day; `flip` mirrors the figure; `outline` is a width in shares of the radius, 0: none."""

    image: ImageDraw.ImageDraw
    x: float
    y: float
    radius: float
    flip: bool = False
    tint: Colour = (1.0, 1.0, 1.0)
    outline: float = 0.0
    flat: Colour | None = None
    """Draw everything in this colour, and `swollen` so many pixels larger: the edge around a figure."""
    swollen: float = 0.0

    def _fill(self, colour: Colour, lit: bool) -> tuple[int, int, int]:
        red, green, blue = (round(min(255, c * (1 if lit else k))) for c, k in zip(self.flat or colour, self.tint, strict=True))
        return red, green, blue

    def _at(self, points: Sequence[Point]) -> list[Point]:
        side = -1 if self.flip else 1
        return [(self.x + side * self.radius * px, self.y + self.radius * py) for px, py in points]

    def shape(self, colour: Colour, points: Sequence[Point], lit: bool = False) -> None:
        """Fill a polygon; what is lit keeps its colour at night."""
        where, fill = self._at(points), self._fill(colour, lit)
        self.image.polygon(where, fill=fill)
        if self.swollen:
            self.image.line([*where, where[0], where[1]], fill=fill, width=max(1, round(2 * self.swollen)), joint="curve")
        elif self.outline:
            width = max(1, round(self.outline))
            self.image.line([*where, where[0], where[1]], fill=(56, 54, 62), width=width, joint="curve")

    def box(self, colour: Colour, left: float, top: float, right: float, bottom: float, lit: bool = False) -> None:
        self.shape(colour, [(left, top), (right, top), (right, bottom), (left, bottom)], lit)

    def disc(self, colour: Colour, x: float, y: float, rx: float, ry: float = 0.0, lit: bool = False) -> None:
        self.shape(colour, ring(rx, ry or rx, x, y), lit)

    def stroke(self, colour: Colour, width: float, points: Sequence[Point]) -> None:
        """Draw a line with round ends."""
        where, fill, thick = self._at(points), self._fill(colour, False), max(1, round(width * self.radius + 2 * self.swollen))
        self.image.line(where, fill=fill, width=thick, joint="curve")
        for x, y in (where[0], where[-1]):
            self.image.ellipse([x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2], fill=fill)
