"""A bench refuses numbers that mean nothing before it measures anything."""

from __future__ import annotations

import argparse

import pytest

from app.__main__ import main
from bench.numbers import above_zero, at_least, count, from_zero


@pytest.mark.parametrize(
    "words",
    [
        "speech --rows -5", "speech --rounds 0", "speech --layers 0", "speech --each 0", "queue --jobs 0", "queue --singles -1",
        "start --rounds 0", "paint --steps 1", "paint --batch 1", "paint --size 0", "attention --seconds -1", "attention --deviation nan",
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words.split()]) == 2
    option, number = words.split()[1:]
    assert f"argument {option}: '{number}' is not a" in capsys.readouterr().err


def test_what_means_something_is_read() -> None:
    assert (count("1"), at_least(2)("300"), above_zero("0.5"), from_zero("0")) == (1, 300, 0.5, 0)
    for text in ("", "1.5", "+3", "٣", "9" * 40, "one"):
        with pytest.raises(argparse.ArgumentTypeError):
            count(text)
    with pytest.raises(argparse.ArgumentTypeError):
        above_zero("inf")
