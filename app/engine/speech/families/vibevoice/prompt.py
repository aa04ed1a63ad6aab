"""Compose what VibeVoice reads: whose voice it is, and what is said. Its chat template would, but is a program, and none is run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

SYSTEM: Final = (
    " Transform the text provided by various speakers into speech output, utilizing the distinct voice of each respective speaker.\n"
)
"""The model was taught with these words."""
VOICE: Final = " Voice input:\n Speaker 0:"
"""It stands before the frames of a voice."""
TEXT: Final = " Text input:\n Speaker 0: {said}\n Speech output:\n"
_MARKS: Final = str.maketrans({
    "，": ", ", "、": ", ", "；": "; ", "：": ": ", "。": ". ", "．": ". ", "！": "! ", "？": "? ", "…": "...", "‘": "'", "’": "'", "“": '"', "”": '"',
    "「": "", "」": "", "『": "", "』": "", "《": "", "》": "", "（": " (", "）": ") ",
})  # fmt: skip
"""Its makers found it steadier with English marks, also in Chinese, and some of the Chinese ones read aloud."""
_OWN_SIGNS: Final = re.compile(r"<\||\|>")


def prepare_text(texts: Iterable[str]) -> str:
    """Return what is said in one line, with English marks and none of the model's own signs."""
    said = _OWN_SIGNS.sub(" ", " ".join(texts))
    return " ".join(said.translate(_MARKS).split())
