"""Talk to the terminal in the system's language: one line at a time, and the errors that end a start with one."""

from __future__ import annotations

import os
import sys
import unicodedata

from app.base.languages import word_for
from app.base.sentence import Sentence
from app.base.trouble import Trouble

WINDOWS = os.name == "nt"


class Refused(Trouble):
    """An error to print: what happened, why, what to do."""


class Halted(Refused):
    """An error that no other build of torch would fix."""


def tell(sentence: Sentence, before: str = "") -> None:
    print(f"{before}{word_for(sys.stderr, sentence)}", file=sys.stderr, flush=True)


def fit_line(line: str, width: int) -> str:
    """Cut and fill a line to a terminal's width, in which a Chinese character takes two places."""
    places = [2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line]
    while sum(places) > width:
        places.pop()
    return line[: len(places)] + " " * (width - sum(places))
