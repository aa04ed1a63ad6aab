"""Weights in prompts, as other programs write them: brackets strengthen and weaken, a backslash keeps a bracket."""

from __future__ import annotations

import pytest

from app.engine.pictures.prompts.prompt_weights import split_weights

PROMPTS = {
    "a cat": [("a cat", 1.0)],
    "a (red) cat": [("a ", 1.0), ("red", 1.1), (" cat", 1.0)],
    "a [red] cat": [("a ", 1.0), ("red", 0.909091), (" cat", 1.0)],
    "a (red:1.3) cat": [("a ", 1.0), ("red", 1.3), (" cat", 1.0)],
    "((red))": [("red", 1.21)],
    "(a (b:2) c)": [("a ", 1.1), ("b", 2.2), (" c", 1.1)],
    "(a:1.5)(b:1.2)(c:1.5)": [("a", 1.5), ("b", 1.2), ("c", 1.5)],
    "(a:1.5)(b:1.5)": [("ab", 1.5)],
    r"a \(red\) cat": [("a (red) cat", 1.0)],
    "a (red cat": [("a (red cat", 1.0)],
    "a red) cat] :1.3)": [("a red) cat] :1.3)", 1.0)],
}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_brackets_weigh_what_they_hold(prompt: str) -> None:
    assert split_weights(prompt) == PROMPTS[prompt]
