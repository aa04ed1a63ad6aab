"""Take signs that steer a terminal, or turn the direction of writing, out of words that come from elsewhere, before a person sees them."""

from __future__ import annotations

import logging
import re
from typing import Final

_STEERING: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|\r(?!\n)")
"""Controls, but for tabs and ends of lines, could clear the screen or set the title; overrides of direction show exe.txt as txt.exe."""


def clean_words(words: str, instead: str = "?") -> str:
    """Return words with a question mark, or this, for each such sign."""
    return _STEERING.sub(instead, words)


class CleanFormatter(logging.Formatter):
    """Of logs that are shown on a terminal, now or later."""

    def format(self, record: logging.LogRecord) -> str:
        return clean_words(super().format(record))
