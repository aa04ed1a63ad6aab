"""Test what a prompt leaves to chance: one of each alternatives."""

from __future__ import annotations

import random

import pytest

from app.engine.pictures.files.alternatives import choose_words, has_alternatives, settle


def test_a_seed_chooses_and_chooses_again_alike() -> None:
    chosen = {choose_words("a {red|blue|{dark|light} green} ball, {x}", seed) for seed in range(60)}
    assert chosen == {f"a {colour} ball, {{x}}" for colour in ("red", "blue", "dark green", "light green")}
    assert choose_words("a {red|blue} ball", 5) == choose_words("a {red|blue} ball", 5)
    assert choose_words("a {|big} ball", 1) in ("a  ball", "a big ball")


@pytest.mark.parametrize("prompt", ["a ball", "{", "}{|", "a | b", "{a}", "{a", "(a:1.2) [b]"])
def test_what_is_no_alternative_stays(prompt: str) -> None:
    assert choose_words(prompt, 3) == prompt and not has_alternatives(prompt)


def test_of_alternatives_some_may_stay() -> None:
    for seed in range(20):
        settled = settle("{red|{a|b!}} {c|d} {x}", random.Random(seed), lambda words: "!" in words)
        assert settled in ("red {c|d} {x}", "a {c|d} {x}", "b! {c|d} {x}", "{red|a} {c|d} {x}")
