"""What a prompt leaves to chance: {red|blue|green}, one of which each picture gets by its seed. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Final

_INNER: Final = re.compile(r"\{([^{}]*+)\}")
"""It finds alternatives without others inside."""
_BAR: Final = "\2"
"""It stands for a bar of alternatives that stay."""
ROUNDS_MOST: Final = 8
"""Alternatives may lie this deep in alternatives."""


def has_alternatives(prompt: str) -> bool:
    return any("|" in inner for inner in _INNER.findall(prompt))


def choose_words(prompt: str, seed: int) -> str:
    """Return the prompt with one of each alternatives."""
    return settle(prompt, random.Random(seed))


def settle(prompt: str, chance: random.Random, wanted: Callable[[str], bool] = bool) -> str:
    """Return the prompt with one of each alternatives whose words are wanted, the innermost first; the others, and braces without a bar, stay."""

    def choose(found: re.Match[str]) -> str:
        if "|" in found[1] and wanted(found[1]):
            return chance.choice(str(found[1]).split("|"))
        return f"\0{found[1].replace('|', _BAR)}\1"

    for _ in range(ROUNDS_MOST):
        if not has_alternatives(prompt):
            break
        prompt = _INNER.sub(choose, prompt)
    return prompt.replace("\0", "{").replace("\1", "}").replace(_BAR, "|")
