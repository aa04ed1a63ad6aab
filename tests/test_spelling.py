"""Text written out as plain words: numbers, dates, money, times, units, abbreviations and acronyms; signs without a sound are named."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.starter.training.free import counting
from assets.starter.training.free.spelling import spoken, unspeakable


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It cost $3.50 in 1984.", "it cost three dollars and fifty cents in nineteen eighty four."),
        ("$5 million, £1.01 and $0.99", "five million dollars, one pound and one penny and zero dollars and ninety nine cents"),
        ("At 3:05 p.m., 12:00 or 10 a.m.", "at three oh five P M, twelve o'clock or ten ay M."),
        ("March 5th, 2024, or 2024-03-06!", "march fifth, twenty twenty four, or march sixth twenty twenty four!"),
        ("3/14/2015; 5 March; Jan. 3", "march fourteenth twenty fifteen; the fifth of march; january third"),
        ("The 1990s: the 21st century", "the nineteen nineties: the twenty first century"),
        ("100,000 people, 3.14%, -5 °C, 20km", "one hundred thousand people, three point one four percent, minus five degrees celsius, twenty kilometers"),
        ("1 kg, 70 kg, 6 ft.", "one kilogram, seventy kilograms, six feet."),
        ("1/2, 3/4, .5, 1,234.5", "one half, three quarters, zero point five, one thousand two hundred thirty four point five"),
        ("007, 555-1234", "zero zero seven, five five five, one two three four"),
        ("Dr. Smith, St. Mary, Main St. now", "doctor smith, saint mary, main street now"),
        ("e.g. this, i.e. that, etc.", "for example this, that is that, et cetera."),
        ("NASA, the BBC and HTML5: GO!", "nasa, the B B C and H T M L five: go!"),
        ("THIS IS ALL VERY LOUD NOW", "this is all very loud now"),
        ("See www.example.com or me@x.org", "see W W W dot example dot com or me at X dot org"),
        ("He sat. The sun set. No. 5", "he sat. the sun set. number five"),
        ("Chapter IV (of Henry's well-known book) - ends...", "chapter four, of henry's well known book, ends,"),
        ("Café naïve “I’m” – don't", "cafe naive i'm, don't"),
        ("Plan A. A dog.", "plan ay. a dog."),
        ("version 1.2.3", "version one point two point three"),
    ],
)  # fmt: skip
def test_text_is_written_out(written: str, said: str) -> None:
    assert spoken(written) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "zero"), (13, "thirteen"), (40, "forty"), (101, "one hundred one"), (1_000_001, "one million one"), (-21, "minus twenty one")],
)  # fmt: skip
def test_whole_numbers(number: int, said: str) -> None:
    assert counting.cardinal(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(1, "first"), (12, "twelfth"), (20, "twentieth"), (33, "thirty third"), (100, "one hundredth")]
)
def test_orders(number: int, said: str) -> None:
    assert counting.ordinal(number) == said


@pytest.mark.parametrize(
    ("number", "said"), [(1900, "nineteen hundred"), (1066, "ten sixty six"), (2005, "two thousand five"), (1804, "eighteen oh four")]
)  # fmt: skip
def test_years(number: int, said: str) -> None:
    assert counting.year(number) == said


def test_signs_without_a_sound_are_named_once_and_letters_apart() -> None:
    assert unspeakable("Hello 你好你 😀 naïve €5, “quoted” — it's 50%…") == (["你", "好"], ["😀"])
    assert unspeakable("Zoë and Łukasz? Привет") == (["П", "р", "и", "в", "е", "т"], [])


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_becomes_words_marks_and_named_letters(text: str) -> None:
    for token in spoken(text).split():
        assert re.fullmatch(r"([a-z]+('[a-z]+)*|[B-Z])[,.;:!?]*", token), token
