"""Write a text out as it is read aloud: numbers, dates, times, money, units, abbreviations and signs become words. Pure and linear."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from app.engine.text import numerals

MONTHS: Final = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
SHORT_MONTHS: Final = {name[:3]: name for name in MONTHS if name != "May"} | {"Sept": "September"}
MONEY: Final = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
UNITS: Final = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "kg": "kilogram", "g": "gram", "mg": "milligram",
    "l": "liter", "ml": "milliliter", "ft": "foot", "mi": "mile", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "s": "second", "sec": "second", "ms": "millisecond",
    "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "W": "watt", "kW": "kilowatt", "V": "volt",
    "KB": "kilobyte", "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "mph": "mile per hour", "°C": "degree Celsius",
    "°F": "degree Fahrenheit", "°": "degree",
}  # fmt: skip
PLURALS: Final = {"foot": "feet", "penny": "pence", "hertz": "hertz", "kilohertz": "kilohertz", "megahertz": "megahertz",
                  "gigahertz": "gigahertz"}  # fmt: skip
ABBREVIATIONS: Final = {
    "mr": "mister", "mrs": "missus", "ms": "miz", "dr": "doctor", "prof": "professor", "jr": "junior", "sr": "senior", "vs": "versus",
    "etc": "et cetera", "e.g": "for example", "i.e": "that is", "approx": "approximately", "dept": "department", "inc": "incorporated",
    "ltd": "limited", "mt": "mount", "ave": "avenue", "rd": "road", "blvd": "boulevard", "gen": "general", "capt": "captain",
    "sgt": "sergeant", "lt": "lieutenant", "rev": "reverend", "hon": "honorable", "est": "established", "vol": "volume",
    "p.s": "P S", "a.m": "A M", "p.m": "P M", "u.s": "U S", "u.k": "U K", "u.s.a": "U S A", "d.c": "D C", "ph.d": "P H D",
    "tue": "Tuesday", "tues": "Tuesday", "thu": "Thursday", "thurs": "Thursday", "fri": "Friday",
}  # fmt: skip
"""Written with a full stop after them."""
BARE: Final = {
    "Mr": "mister",
    "Mrs": "missus",
    "Ms": "miz",
    "Dr": "doctor",
    "Prof": "professor",
    "vs": "versus",
    "OK": "okay",
    "ok": "okay",
    "PhD": "P H D",
    "Wi-Fi": "wifi",
    "WiFi": "wifi",
}
ENDING: Final = frozenset({"etc", "a.m", "p.m", "u.s", "u.k", "u.s.a", "d.c", "inc", "ltd", "jr", "sr", "ph.d"})
"""Abbreviations that may end a sentence: their stop stays before a capital or the end."""
SAID: Final = frozenset(
    ["NASA", "NATO", "UNESCO", "UNICEF", "AIDS", "RAM", "ROM", "LASER", "RADAR", "SCUBA", "PIN", "SIM", "ASCII", "JPEG"]
)
"""Capitals that are read as a word."""
SIGNS: Final = {"&": " and ", "+": " plus ", "=": " equals ", "@": " at ", "%": " percent ", "#": " number "}
FRACTIONS: Final = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3"}
ADDRESS_SIGNS: Final = {"@": " at ", ".": " dot ", "/": " slash ", "-": " dash ", "_": " underscore ", ":": " colon "}
PARTS: Final = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth"}
FOLDED: Final = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "Oe", "ł": "l", "Ł": "L", "đ": "d",
                               "Ð": "D", "þ": "th", "ð": "th", "ı": "i"})  # fmt: skip


_MONTH: Final = "|".join(MONTHS)
_WHOLE: Final = r"\d{1,3}(?:,\d{3}){1,5}+(?![\d,]\d)|\d{1,40}+"
_ADDRESS = re.compile(
    r"\b(?:[a-z]{2,8}://[^\s,;]{1,200}+|www\.[^\s,;]{1,200}+|[\w.-]{1,64}@[\w-]{1,63}+(?:\.\w{1,20}+){1,4})", re.IGNORECASE
)
_MONEY = re.compile(rf"(?P<sign>[$£€]) ?+(?P<whole>{_WHOLE})(?P<part>\.\d{{1,9}}+)?+(?: (?P<scale>thousand|million|billion|trillion)\b)?")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_SLASHED_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?: ?(?P<half>[ap])\.?m\b\.?)?", re.IGNORECASE)
_HALF_DAY = re.compile(r"\b(\d{1,2}) ?([ap])\.?m\b\.?", re.IGNORECASE)
_SHORT_MONTH = re.compile(rf"\b({'|'.join(SHORT_MONTHS)})\b\.?(?= \d)")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? ({_MONTH})\b(?:,? (\d{{4}})\b)?")
_FRACTION = re.compile(r"\b(?:(\d{1,6}) )?(\d{1,3})/(\d{1,3})\b")
_TELEPHONE = re.compile(r"\b(\d{3})-(\d{3,4})(?:-(\d{4}))?\b")
_DECADE = re.compile(r"'?\b(\d{1,3}0)s\b")
_ORDINAL = re.compile(r"\b(\d{1,15})(?:st|nd|rd|th)\b")
_AMOUNT = re.compile(
    rf"(?<![\d.,])({_WHOLE})(\.\d{{1,20}}+)?+ ?({'|'.join(re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True))})(?![\w'])"
)
_RANGE = re.compile(r"(?<=\d) ?- ?(?=\d)")
_NUMBERED = re.compile(r"#(?=\d)|\b[Nn]o\. ?(?=\d)")
_NUMBER = re.compile(rf"((?<![\w)])-)?({_WHOLE})(\.\d{{1,40}}+)?+|(?<!\d)\.(\d{{1,40}}+)")
_SAINT = re.compile(r"\bSt\. ?(?=[A-Z])")
_STREET = re.compile(r"\bSt\.")
_SHORTENED = re.compile(r"\b((?:[A-Za-z]\.){1,3}[A-Za-z]{1,2}|[A-Za-z]{2,6})\.")
_BARE = re.compile(r"\b(Mrs?|Ms|Dr|Prof|vs|OK|ok|PhD|Wi-?Fi)\b")
_JOINED = re.compile(r"(?<=[a-z])(?<!\bMc)(?=[A-Z])")
"""Between the words of GitHub and iPhone, not of McGregor."""
_CAPITALS = re.compile(r"\b([A-Z]{2,6})(s)?\b")
_STOPS = re.compile(r"\.{2,}+")
_BREAKS = re.compile(r"[;:()\[\]{}]|(?<=\s)-{1,3}+(?=\s)|--")
_LOOSE_QUOTE = re.compile(r"(?<![A-Za-z])'|'(?![A-Za-z])")
_OTHER = re.compile(r"[^A-Za-z' .,!?]")
_MARKS = re.compile(r" ?[.,!?][ .,!?]*+")


def count(value: str, unit: str) -> str:
    """Read an amount of something: one mile, two miles, zero point five miles per hour."""
    first, _, rest = unit.partition(" ")
    if value.replace(",", "") != "1":
        first = PLURALS.get(first) or f"{first}s"
    return f"{numerals.number(value)} {first} {rest}".strip()


def _say_money(found: re.Match[str]) -> str:
    whole, part = MONEY[found["sign"]]
    if found["scale"]:
        return f"{numerals.number(found['whole'] + (found['part'] or ''))} {found['scale']} {whole}s"
    cents = int((found["part"] or ".0")[1:].ljust(2, "0")[:2])
    said = count(found["whole"], whole)
    return f"{said} and {count(str(cents), part)}" if cents else said


def _say_clock(found: re.Match[str]) -> str:
    hour, minute = int(found["hour"]), int(found["minute"])
    late = f" {found['half'].upper()} M" if found["half"] else ""
    said = numerals.cardinal(hour)
    if minute:
        said += f" {'oh ' if minute < 10 else ''}{numerals.cardinal(minute)}"
    elif not late:
        said += " o'clock" if 1 <= hour <= 12 else " hundred"
    return said + late


def _say_half_day(found: re.Match[str]) -> str:
    return f"{numerals.cardinal(int(found[1]))} {found[2].upper()} M"


def _say_date(month: int, day: int, year: str | None) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{MONTHS[month - 1]} {numerals.ordinal(day)}" + (f", {numerals.year(int(year))}" if year else "")


def _say_iso_date(found: re.Match[str]) -> str:
    return _say_date(int(found[2]), int(found[3]), found[1]) or " ".join(map(numerals.number, found.groups()))


def _say_slashed_date(found: re.Match[str]) -> str:
    return _say_date(int(found[1]), int(found[2]), found[3]) or " ".join(map(numerals.number, found.groups()))


def _say_month_day(found: re.Match[str]) -> str:
    return _say_date(MONTHS.index(found[1]) + 1, int(found[2]), found[3]) or found[0]


def _say_day_month(found: re.Match[str]) -> str:
    return _say_date(MONTHS.index(found[2]) + 1, int(found[1]), found[3]) or found[0]


def _say_fraction(found: re.Match[str]) -> str:
    above, below = int(found[2]), int(found[3])
    mixed = f"{numerals.number(found[1])} and " if found[1] else ""
    if below not in PARTS or above >= below:
        return f"{mixed}{numerals.cardinal(above)} over {numerals.cardinal(below)}"
    part = PARTS[below]
    return f"{mixed}{numerals.cardinal(above)} {part if above == 1 else 'halves' if below == 2 else part + 's'}"


def _say_telephone(found: re.Match[str]) -> str:
    return ", ".join(numerals.figures(part) for part in found.groups() if part)


def _say_decade(found: re.Match[str]) -> str:
    value = int(found[1])
    return numerals.plural(numerals.year(value) if value > 99 else numerals.cardinal(value))


def _say_ordinal(found: re.Match[str]) -> str:
    return numerals.ordinal(int(found[1]))


def _say_amount(found: re.Match[str]) -> str:
    return count(found[1] + (found[2] or ""), UNITS[found[3]])


def _say_number(found: re.Match[str]) -> str:
    minus, whole, part = "minus " if found[1] else "", found[2], found[3] or ""
    if found[4]:
        return f" point {numerals.figures(found[4])}"
    if len(whole) == 4 and not minus and not part and 1100 <= int(whole) <= 2099:
        return numerals.year(int(whole))
    return minus + numerals.number(whole + part)


def _say_address(found: re.Match[str]) -> str:
    said = found[0].partition("://")[2] or found[0]
    for sign, word in ADDRESS_SIGNS.items():
        said = said.rstrip("/.").replace(sign, word)
    return said


def _say_shortened(found: re.Match[str]) -> str:
    said = SHORT_MONTHS.get(found[1]) or ABBREVIATIONS.get(found[1].lower())
    if said is None:
        return found[0]
    rest = found.string[found.end() : found.end() + 2].lstrip()
    return f"{said}." if found[1].lower() in ENDING and (not rest or rest[0].isupper()) else said


def _say_capitals(found: re.Match[str]) -> str:
    return (found[1] if found[1] in SAID else " ".join(found[1])) + ("'s" if found[2] else "")


_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (_ADDRESS, _say_address),
    (_MONEY, _say_money),
    (_ISO_DATE, _say_iso_date),
    (_SLASHED_DATE, _say_slashed_date),
    (_CLOCK, _say_clock),
    (_HALF_DAY, _say_half_day),
    (_SHORT_MONTH, lambda found: SHORT_MONTHS[found[1]]),
    (_MONTH_DAY, _say_month_day),
    (_DAY_MONTH, _say_day_month),
    (_FRACTION, _say_fraction),
    (_TELEPHONE, _say_telephone),
    (_DECADE, _say_decade),
    (_ORDINAL, _say_ordinal),
    (_AMOUNT, _say_amount),
    (_RANGE, " to "),
    (_NUMBERED, "number "),
    (_NUMBER, lambda found: f" {_say_number(found)} "),
    (_SAINT, "Saint "),
    (_STREET, "street"),
    (_SHORTENED, _say_shortened),
    (_BARE, lambda found: BARE[found[1]]),
    (_JOINED, " "),
)
"""In this order: a rule sees what the earlier ones left."""


def write_out(text: str) -> str:
    """Return the text in words, apostrophes and the marks . , ! ? alone."""
    text = " ".join(_fold(text).split())
    for pattern, said in _RULES:
        text = pattern.sub(said, text)
    if any(each.islower() for each in text):
        text = _CAPITALS.sub(_say_capitals, text)
    for sign, word in SIGNS.items():
        text = text.replace(sign, word)
    text = _BREAKS.sub(", ", _STOPS.sub(".", text))
    text = _OTHER.sub(" ", _LOOSE_QUOTE.sub(" ", text))
    return _MARKS.sub(_keep_strongest, " ".join(text.split())).strip(" ,") if text.strip(" .,!?") else ""


def can_read(sign: str) -> bool:
    """Tell whether a character is read, or is a mark, and not skipped."""
    return bool(_fold(sign).strip())


def _fold(text: str) -> str:
    """Reduce letters to those from A to Z."""
    for sign, said in FRACTIONS.items():
        text = text.replace(sign, f" {said}")
    folded = unicodedata.normalize("NFKD", text.translate(FOLDED))
    return "".join(each for each in folded if each.isascii() or each in "£€°")


def _keep_strongest(found: re.Match[str]) -> str:
    """Keep one mark where several meet."""
    return f"{min(found[0].replace(' ', ''), key='?!.,'.index)} "
