"""A window's remembered place, on the screens that are there now."""

from __future__ import annotations

import pytest

from app.window.engines import read_colour
from app.window.geometry import LEAST, Geometry, Screen, fit, read_geometry

LAPTOP = Screen(0, 0, 1440, 900)
LEFT = Screen(-1920, -200, 1920, 1080)
SMALL = Screen(0, 0, 1024, 600)


@pytest.mark.parametrize(
    ("wanted", "screens", "shown", "on"),
    [
        (Geometry(100, 50, 1200, 800), [LAPTOP], Geometry(100, 50, 1200, 800), LAPTOP),
        (Geometry(-1500, -100, 900, 700), [LAPTOP, LEFT], Geometry(-1500, -100, 900, 700), LEFT),
        (Geometry(-1500, -100, 900, 700), [LAPTOP], Geometry(None, None, 900, 700), LAPTOP),  # its screen was unplugged
        (Geometry(1300, 700, 900, 700), [LAPTOP], Geometry(540, 200, 900, 700), LAPTOP),
        (Geometry(-300, -40, 900, 700), [LAPTOP], Geometry(0, 0, 900, 700), LAPTOP),
        (Geometry(-300, 10, 1200, 700), [LEFT, LAPTOP], Geometry(0, 10, 1200, 700), LAPTOP),  # most of it is there
        (Geometry(0, 0, 1440, 900), [SMALL], Geometry(0, 0, 1024, 600), SMALL),
        (Geometry(10, 10, 5, 5), [LAPTOP], Geometry(10, 10, *LEAST), LAPTOP),
        (Geometry(20, 30, 900, 700, maximized=True), [LAPTOP], Geometry(20, 30, 900, 700, maximized=True), LAPTOP),
        (Geometry(), [LAPTOP, LEFT], Geometry(None, None, 1240, 860), LAPTOP),
        (Geometry(5, 5, 900, 700), [], Geometry(None, None, 900, 700), None),
    ],
)
def test_a_window_is_seen_whole(wanted: Geometry, screens: list[Screen], shown: Geometry, on: Screen | None) -> None:
    assert fit(wanted, screens) == (shown, on)


def test_what_the_settings_lack_has_its_default() -> None:
    assert read_geometry({}) == Geometry()
    assert read_geometry({"x": 3, "y": 4, "ground": "#161311", "later": 1}) == Geometry(3, 4)


@pytest.mark.parametrize(("said", "colour"), [("rgb(22, 19, 17)", "#161311"), ("rgba(0, 0, 0, 0)", ""), ("", "")])
def test_the_colour_of_the_page(said: str, colour: str) -> None:
    assert read_colour(said) == colour
