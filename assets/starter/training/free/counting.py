"""Numbers in English words: counts, orders, years, figure by figure. Pure."""

from __future__ import annotations

from typing import Final

_ONES: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
    "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_GROUPS: Final = ("", " thousand", " million", " billion", " trillion")
_ORDINALS: Final = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip


def cardinal(number: int) -> str:
    """A whole number in words: 1204 is "one thousand two hundred four"."""
    if number < 0:
        return "minus " + cardinal(-number)
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f" {_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{_ONES[number // 100]} hundred" + (f" {cardinal(number % 100)}" if number % 100 else "")
    parts = []
    for group in _GROUPS:
        if number % 1000:
            parts.append(cardinal(number % 1000) + group)
        number //= 1000
    return " ".join(reversed(parts))


def ordinal(number: int) -> str:
    """21 is "twenty first"."""
    *before, last = cardinal(number).split()
    last = _ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return " ".join([*before, last])


def year(number: int) -> str:
    """1984 is "nineteen eighty four", 2005 "two thousand five"."""
    if number % 1000 < 10 or not 1000 <= number < 10000:
        return cardinal(number)
    high, low = divmod(number, 100)
    if not low:
        return f"{cardinal(high)} hundred"
    return f"{cardinal(high)} {'oh ' if low < 10 else ''}{cardinal(low)}"


def figures(text: str) -> str:
    """Figure by figure."""
    return " ".join(_ONES[int(each)] for each in text if each.isdigit())


def whole(text: str) -> str:
    """A whole number as a person wrote it: grouped or not; with a leading zero or very long it is read figure by figure."""
    plain = text.replace(",", "")
    return figures(plain) if len(plain) > 15 or (len(plain) > 1 and plain[0] == "0") else cardinal(int(plain))


def number(text: str) -> str:
    """A number with or without decimals."""
    before, dot, after = text.partition(".")
    return (whole(before) if before else "zero") + (f" point {figures(after)}" if dot else "")
