"""Texts are written out as they are read aloud."""

from __future__ import annotations

import random
import string

import pytest

from app.engine.text import numerals
from app.engine.text.written_out import write_out


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It costs $3.50, or £1.", "It costs three dollars and fifty cents, or one pound."),
        ("$2.5 million", "two point five million dollars"),
        ("In 1999, 2005 and 1492.", "In nineteen ninety nine, two thousand five and fourteen ninety two."),
        ("the 1990s and the '80s", "the nineteen nineties and the eighties"),
        ("Meet me at 7:05 p.m. or 10:00.", "Meet me at seven oh five P M or ten o'clock."),
        ("March 5, 2026", "March fifth, twenty twenty six"),
        ("5 March 2026", "March fifth, twenty twenty six"),
        ("2026-11-23", "November twenty third, twenty twenty six"),
        ("12/25/2024", "December twenty fifth, twenty twenty four"),
        ("Dr. Smith and Mrs. Jones live on Main St. with St. Peter.", "doctor Smith and missus Jones live on Main street with Saint Peter."),
        ("1,234,567 people", "one million two hundred thirty four thousand five hundred sixty seven people"),
        ("3.14 and -5", "three point one four and minus five"),
        ("the 21st and the 12th", "the twenty first and the twelfth"),
        ("50% of 1/2 and 3/4", "fifty percent of one half and three quarters"),
        ("5 km at 60 mph, 20 °C", "five kilometers at sixty miles per hour, twenty degrees Celsius"),
        ("1 kg", "one kilogram"),
        ("The FBI and NASA met", "The F B I and NASA met"),
        ("STOP THAT NOW", "STOP THAT NOW"),
        ("pages 5-10", "pages five to ten"),
        ("call 555-1234", "call five five five, one two three four"),
        ("me@home.org", "me at home dot org"),
        ("café naïve", "cafe naive"),
        ("rock & roll", "rock and roll"),
        ("She said: \"no\"; he left...", "She said, no, he left."),
        ("well-known (mostly) facts - here", "well known, mostly, facts, here"),
        ("The cat sat.", "The cat sat."),
        ("don't you're Tom's 'quoted'", "don't you're Tom's quoted"),
        ("GitHub, iPhones and McGregor's MacBook", "Git Hub, i Phones and McGregor's Mac Book"),
        ("the Wi-Fi of a PhD, WiFi's end", "the wifi of a P H D, wifi's end"),
        ("007", "zero zero seven"),
        ("etc. And more", "et cetera. And more"),
        ("你好", ""),
        ("...!?", ""),
    ],
)  # fmt: skip
def test_reads_as_a_person_would(written: str, said: str) -> None:
    assert write_out(written) == said


def test_only_words_and_marks_come_out() -> None:
    rng = random.Random(1)
    letters = string.printable + "äöü½€£°²ﬁ…’“—日本"
    for _ in range(3000):
        out = write_out("".join(rng.choices(letters, k=rng.randrange(40))))
        assert set(out) <= set(string.ascii_letters + "' .,!?"), out


def test_numbers_count_without_gaps() -> None:
    assert len({numerals.cardinal(value) for value in range(20000)}) == 20000
    assert len({numerals.ordinal(value) for value in range(20000)}) == 20000
    assert numerals.cardinal(10**12 + 1) == "one trillion one"
    assert numerals.number("1" * 16) == " ".join(["one"] * 16)
