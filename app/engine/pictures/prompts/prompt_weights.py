"""Split a prompt into text and the weights written into it, (word:1.2). Pure: the window reads prompts, too."""

from __future__ import annotations

import re
from typing import Final

from app.base.sentence import say

STRONGER: Final = 1.1
"""Bare brackets multiply by this: (word) once, ((word)) twice, [word] by its inverse."""
WEIGHT_MOST: Final = 1000.0
"""Brackets in brackets multiply; far below this a prompt has long ceased to be readable to a model."""
NO_WEIGHTS: Final = say("prompt.no-weights", "Prompt weights such as (word:1.2) work with SD 1.5 and SDXL only; they were ignored.")
_WEIGHT: Final = r"[0-4](?:\.\d++)?+|\.\d++"
"""Weights go to 4.99: (at 12:30) is a time of day."""
_MARK: Final = re.compile(rf"\\[()\[\]\\]|[()\[\]]|:\s*+({_WEIGHT})\s*+\)|[^\\()\[\]:]++|:|\\")
_WRITTEN_OUT: Final = re.compile(rf"\([^()]*:\s*+(?:{_WEIGHT})\s*+\)")


def writes_weights(prompt: str) -> bool:
    """Tell whether a weight is written out, as in (word:1.2). Bare brackets may be no more than brackets."""
    return _WRITTEN_OUT.search(prompt) is not None


def drop_weights(prompt: str) -> str:
    """Return the text alone, without the weights and their brackets."""
    return "".join(text for text, _ in split_weights(prompt))


def has_weights(prompt: str) -> bool:
    return any(weight != 1 for _, weight in split_weights(prompt))


def split_weights(prompt: str) -> list[tuple[str, float]]:
    """Return pieces of text with their weights, in order. Unmatched brackets are text.

    Two linear passes: the first finds each closed bracket's weight, the second multiplies those that are open."""
    tokens = [(match.group(), match.group(1)) for match in _MARK.finditer(prompt)]
    opened: list[int] = []
    weight_at: dict[int, float] = {}
    closing: set[int] = set()
    for at, (token, number) in enumerate(tokens):
        if token in ("(", "["):
            opened.append(at)
        elif number is not None or token in (")", "]"):
            bracket, weight = ("[", 1 / STRONGER) if token == "]" else ("(", STRONGER if number is None else float(number))
            if opened and tokens[opened[-1]][0] == bracket:
                weight_at[opened.pop()] = weight
                closing.add(at)
    weights = [1.0]
    merged: list[tuple[list[str], float]] = []
    for at, (token, _) in enumerate(tokens):
        if at in weight_at:
            weights.append(min(weights[-1] * weight_at[at], WEIGHT_MOST))
        elif at in closing:
            weights.pop()
        else:
            text, weight = token[1:] if token[0] == "\\" and len(token) > 1 else token, round(weights[-1], 6)
            if merged and merged[-1][1] == weight:
                merged[-1][0].append(text)
            else:
                merged.append(([text], weight))
    return [("".join(texts), weight) for texts, weight in merged]
