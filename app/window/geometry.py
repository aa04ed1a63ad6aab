"""Where the window stands and how large it is: what was remembered, moved onto the screens there are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

LEAST: Final = (390, 480)
"""A phone is as narrow, and the page has a layout for it."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen within the desktop, in the pixels that the web view counts."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """A window within the desktop; without a place it stands in the middle of the first screen."""

    x: int | None = None
    y: int | None = None
    width: int = 1240
    height: int = 860
    maximized: bool = False


def read_geometry(values: Mapping[str, Any]) -> Geometry:
    """Read what the settings hold; they were checked by their schema."""
    return Geometry(**{name: values[name] for name in Geometry.__dataclass_fields__ if name in values})


def fit(wanted: Geometry, screens: Sequence[Screen]) -> tuple[Geometry, Screen | None]:
    """Return the geometry that shows the whole window, and the screen it is on: the one that shows most of it. A screen
    that is gone, or shows nothing of it, leaves it without a place."""
    if not screens:
        return replace(wanted, x=None, y=None), None
    best = max(screens, key=lambda each: measure_overlap(wanted, each))
    screen = best if measure_overlap(wanted, best) else screens[0]
    width = max(LEAST[0], min(wanted.width, screen.width))
    height = max(LEAST[1], min(wanted.height, screen.height))
    sized = replace(wanted, width=width, height=height, x=None, y=None)
    if wanted.x is None or wanted.y is None or not measure_overlap(wanted, best):
        return sized, screen
    x = max(screen.x, min(wanted.x, screen.x + screen.width - width))
    y = max(screen.y, min(wanted.y, screen.y + screen.height - height))
    return replace(sized, x=x, y=y), screen


def measure_overlap(window: Geometry, screen: Screen) -> int:
    """Return how many pixels of the window the screen shows; 0 for one without a place."""
    if window.x is None or window.y is None:
        return 0
    across = min(window.x + window.width, screen.x + screen.width) - max(window.x, screen.x)
    down = min(window.y + window.height, screen.y + screen.height) - max(window.y, screen.y)
    return max(0, across) * max(0, down)
