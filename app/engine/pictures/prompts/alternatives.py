"""What a prompt leaves to the seed: {red|blue|green}, one of which each picture gets. Pure."""

from __future__ import annotations

import random
import re
from typing import Final

_INNER: Final = re.compile(r"\{([^{}]*+)\}")
"""It finds alternatives without others inside."""
ROUNDS_MOST: Final = 8
"""Alternatives may lie this deep in alternatives."""


def has_alternatives(prompt: str) -> bool:
    return any("|" in inner for inner in _INNER.findall(prompt))


def choose_words(prompt: str, seed: int) -> str:
    """Return the prompt with one of each alternatives, the innermost first; braces without a bar are text."""
    chance = random.Random(seed)

    def choose(found: re.Match[str]) -> str:
        return chance.choice(found[1].split("|")) if "|" in found[1] else f"\0{found[1]}\1"

    for _ in range(ROUNDS_MOST):
        if not has_alternatives(prompt):
            break
        prompt = _INNER.sub(choose, prompt)
    return prompt.replace("\0", "{").replace("\1", "}")
