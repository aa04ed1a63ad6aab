"""Talk to the terminal in the system's language: one line at a time, and the errors that end a start with one."""

from __future__ import annotations

import os
import sys

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
