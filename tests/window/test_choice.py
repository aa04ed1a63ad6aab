"""Window, browser or nothing: every circumstance of the table, alone and together."""

from __future__ import annotations

from itertools import product

import pytest

from app.window.choice import Circumstances, choose, has_display


@pytest.mark.parametrize(
    ("circumstances", "opens"),
    [
        (Circumstances(), "window"),
        (Circumstances(wants_browser=True), "browser"),
        (Circumstances(on_network=True), "browser"),
        (Circumstances(has_certificate=True), "browser"),
        (Circumstances(shared=True), "browser"),
        (Circumstances(has_web_view=False), "browser"),
        (Circumstances(has_display=False), "browser"),
        (Circumstances(opens_nothing=True), "nothing"),
        (Circumstances(opens_nothing=True, on_network=True, shared=True), "nothing"),
    ],
)
def test_what_a_start_opens(circumstances: Circumstances, opens: str) -> None:
    assert choose(circumstances) == opens


def test_a_window_needs_everything_and_nothing_means_nothing() -> None:
    for values in product((False, True), repeat=7):
        each = Circumstances(*values)
        assert (choose(each) == "nothing") == each.opens_nothing
        assert (choose(each) == "window") == (values == (False, False, False, False, False, True, True))


@pytest.mark.parametrize(
    ("system", "variables", "there"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_where_there_is_a_display(system: str, variables: dict[str, str], there: bool) -> None:
    assert has_display(system, variables) == there
