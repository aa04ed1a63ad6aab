"""Numbers of a bench's command line: whole and large enough to mean something, or refused in a sentence."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return read


count = at_least(1)


def above_zero(text: str) -> float:
    if not 0 < (number := _read(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def from_zero(text: str) -> float:
    if not 0 <= (number := _read(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def _read(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
