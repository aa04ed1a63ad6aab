"""Write numbers in English words: cardinals, ordinals, years, figures one by one; and what the numbers of other languages share. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS: Final = ["ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SCALES: Final = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
ORDINALS: Final = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
LONGEST: Final = 15
"""A number with more figures is read figure by figure."""


def cardinal(value: int) -> str:
    """Write a number below 10**15."""
    if value < 20:
        return SMALL[value]
    for scale, name in SCALES:
        if value >= scale:
            whole, rest = divmod(value, scale)
            return f"{cardinal(whole)} {name}" + (f" {cardinal(rest)}" if rest else "")
    tens, rest = divmod(value, 10)
    return TENS[tens - 1] + (f" {SMALL[rest]}" if rest else "")


def ordinal(value: int) -> str:
    first, _, last = cardinal(value).rpartition(" ")
    last = ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return f"{first} {last}".strip()


def year(value: int) -> str:
    """Read 1492 as fourteen ninety two, 1905 as nineteen oh five, 2000 to 2009 as numbers."""
    century, rest = divmod(value, 100)
    if not 1000 <= value <= 9999 or (century % 10 == 0 and rest < 10):
        return cardinal(value)
    if not rest:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def figures(digits: str) -> str:
    """Read figure by figure."""
    return " ".join(SMALL[int(digit)] for digit in digits)


def number(written: str) -> str:
    """Read an integer or decimal as it is written, with or without commas between thousands."""
    whole, _, part = written.replace(",", "").partition(".")
    long = len(whole) > LONGEST or (len(whole) > 1 and whole.startswith("0"))
    read = figures(whole) if long else cardinal(int(whole or 0))
    return f"{read} point {figures(part)}" if part else read


def plural(word: str) -> str:
    """Make the plural of a number's last word: nineties, hundreds, sixes."""
    first, _, last = word.rpartition(" ")
    last = f"{last[:-1]}ies" if last.endswith("y") else f"{last}es" if last.endswith("x") else f"{last}s"
    return f"{first} {last}".strip()


def words(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


def word_set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


Scales = tuple[tuple[int, str, str], ...]


def word_large(value: int, scales: Scales, cardinal: Callable[[int], str]) -> str:
    """Say a number from its millions on; empty where it has none."""
    for scale, one, several in scales:
        if value >= scale:
            count, rest = divmod(value, scale)
            return (one if count == 1 else f"{cardinal(count)} {several}") + (f" {cardinal(rest)}" if rest else "")
    return ""
