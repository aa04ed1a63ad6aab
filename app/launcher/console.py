"""Talk to the terminal: one line at a time, and the errors that end a start with one."""

from __future__ import annotations

import os
import sys

WINDOWS = os.name == "nt"


class Refused(Exception):
    """An error to print: what happened, why, what to do."""


class Halted(Refused):
    """An error that no other build of torch would fix."""


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60:2d} s"
