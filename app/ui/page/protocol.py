"""What the page's scripts and the server call each other by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Call = Literal[
    "speak.restore", "speak.redo", "speak.voices", "speak.use",
    "paint.restore", "paint.start", "paint.use", "paint.forecast",
    "machine.stop", "machine.typed", "machine.knee", "machine.forget",
]  # fmt: skip
"""What scripts ask of a tab's handlers (app/ui/tabs/script_calls.py): the tab, and what to do."""

NUMBERS: Final[Mapping[Call, str]] = {
    "speak.restore": "creation",
    "speak.redo": "part",
    "paint.restore": "creation",
    "paint.start": "creation",
}
"""The whole number that a call carries; the others carry nothing."""
