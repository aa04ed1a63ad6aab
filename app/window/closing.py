"""What a press on the window's close button does, while work goes on and while it does not. Knows no web view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Does = Literal["quit", "ask", "background"]


@dataclass(slots=True)
class Closing:
    """Asks once: a second press while the question stands, or a page that cannot ask, goes on in the background, which loses nothing."""

    busy: bool = False
    """Work goes on that the end of Hearth would interrupt."""
    asked: bool = False

    def press(self) -> Does:
        if not self.busy:
            return "quit"
        if self.asked:
            return "background"
        self.asked = True
        return "ask"

    def stay(self) -> None:
        """The question was answered with staying open: the next press asks again."""
        self.asked = False
