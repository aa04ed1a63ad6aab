"""Whether a start opens Hearth's own window, the browser or nothing: a table over its circumstances."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Literal

Opens = Literal["window", "browser", "nothing"]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What decides: the options of the start, and what is there to show a window with."""

    opens_nothing: bool = False
    wants_browser: bool = False
    on_network: bool = False
    has_certificate: bool = False
    shared: bool = False
    has_web_view: bool = True
    """True: pywebview is installed. Whether an engine is there too, its process finds out."""
    has_display: bool = True


ROWS: Final[tuple[tuple[Callable[[Circumstances], bool], Opens], ...]] = (
    (lambda each: each.opens_nothing, "nothing"),
    (lambda each: each.wants_browser, "browser"),
    (lambda each: each.on_network, "browser"),  # a login, whose password a browser can keep
    (lambda each: each.has_certificate, "browser"),  # made for a public name, where an exception must be confirmed
    (lambda each: each.shared, "browser"),
    (lambda each: not each.has_web_view, "browser"),
    (lambda each: not each.has_display, "browser"),
)
"""The first row that holds decides; where none does, it is the window."""


def choose(circumstances: Circumstances) -> Opens:
    return next((opens for holds, opens in ROWS if holds(circumstances)), "window")


def has_web_view() -> bool:
    return find_spec("webview") is not None


def has_display(system: str = sys.platform, variables: Mapping[str, str] = os.environ) -> bool:
    return system in ("darwin", "win32") or bool(variables.get("DISPLAY") or variables.get("WAYLAND_DISPLAY"))
