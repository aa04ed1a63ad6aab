"""LoRAs as A1111 writes them into prompts: <lora:name:0.8>. Pure."""

from __future__ import annotations

import math
import re
from typing import Final

# Linear: every quantifier is possessive, so that no letter is tried in two ways.
_TAG: Final = re.compile(r"<(?:lora|lyco|hypernet):([^:<>]++)(?::([^:<>]*+))?+(?::[^<>]*+)?+>")
_SPACES: Final = re.compile(r"[ \t]{2,}+")


def split_tags(prompt: str) -> tuple[str, tuple[tuple[str, float], ...]]:
    """Return the prompt without its tags, and the name and weight of each."""
    found = tuple((name.strip(), _read_weight(weight)) for name, weight in _TAG.findall(prompt))
    return (_SPACES.sub(" ", _TAG.sub("", prompt)).strip(" ,\t") if found else prompt), found


def _read_weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if math.isfinite(weight) else 1.0
