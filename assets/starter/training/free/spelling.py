"""Write out English text as plain words: numbers, dates, money, times, units, abbreviations and acronyms. Pure; knows no sounds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from .counting import cardinal, figures, number, ordinal, whole, year

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH: Final = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|" + "|".join(MONTHS) + r")"
_ABBREVIATIONS: Final = {
    "mr": "mister", "mrs": "missis", "ms": "miz", "dr": "doctor", "prof": "professor", "jr": "junior", "sr": "senior", "gen": "general",
    "capt": "captain", "sgt": "sergeant", "rev": "reverend", "hon": "honorable", "gov": "governor", "vs": "versus", "etc": "et cetera",
    "e.g": "for example", "i.e": "that is", "approx": "approximately", "dept": "department", "est": "established", "ave": "avenue",
    "blvd": "boulevard", "rd": "road", "mt": "mount", "inc": "incorporated", "ltd": "limited", "corp": "corporation", "vol": "volume",
    "pp": "pages", "fig": "figure", "eq": "equation", "cf": "compare", "a.m": "ay M", "p.m": "P M", "u.s": "U S", "u.k": "U K", "ph.d": "P H D",
    "jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july", "aug": "august", "sept": "september",
    "sep": "september", "oct": "october", "nov": "november", "dec": "december", "mon": "monday", "tue": "tuesday", "tues": "tuesday",
    "wed": "wednesday", "thu": "thursday", "thurs": "thursday", "fri": "friday", "sat": "saturday", "sun": "sunday",
}  # fmt: skip
_SENTENCE_END_TOO: Final = frozenset({"sat", "sun", "mar", "wed", "fig", "est", "mon", "rev", "gen", "sep", "hon"})
"""Also words of their own: read as abbreviations only where a dot and no end of the text follows."""
_UNITS: Final = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "kg": "kilogram", "g": "gram", "mg": "milligram", "l": "liter",
    "ml": "milliliter", "km/h": "kilometer per hour", "mph": "mile per hour", "ft": "foot", "lb": "pound", "lbs": "pound", "oz": "ounce",
    "h": "hour", "hr": "hour", "hrs": "hour", "min": "minute", "s": "second", "sec": "second", "ms": "millisecond", "hz": "hertz",
    "khz": "kilohertz", "mhz": "megahertz", "ghz": "gigahertz", "kb": "kilobyte", "mb": "megabyte", "gb": "gigabyte", "tb": "terabyte",
    "w": "watt", "kw": "kilowatt", "v": "volt", "°c": "degree celsius", "°f": "degree fahrenheit", "°": "degree", "%": "percent",
}  # fmt: skip
_UNCOUNTED: Final = frozenset({"percent", "hertz", "kilohertz", "megahertz", "gigahertz"})
_MONEY: Final = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent"), "¥": ("yen", "sen")}
_SIGNS: Final = {
    "&": "and", "%": "percent", "@": "at", "+": "plus", "=": "equals", "°": "degrees", "$": "dollars", "£": "pounds", "€": "euros", "¥": "yen",
    "×": "times", "÷": "divided by", "±": "plus or minus", "©": "copyright", "½": "one half", "¼": "one quarter", "¾": "three quarters",
    "§": "section", "<": "less than", ">": "greater than",
}  # fmt: skip
_QUIET: Final = frozenset("\"'`*_|~^\\/#{}[]()<>«»“”„‟‘’‚‛‹›•·´¨¸-–—…®™¿¡,.;:!?")
_SHORT: Final = frozenset(re.findall(r"[a-z]+", """
    a i am an as at be by do go he hi if in is it me my no of oh ok on or so to up us we all and any are bad but can did do for get god got had has
    her him his how let man may new not now off old one our out own put red run say see set she sit the too top try two use was way who why win yes
    yet you day big ten six sad hot end ask eat far few fun job key kid lot low law men war bed
"""))  # fmt: skip
"""Short words that are words in capitals, too."""
_SAID: Final = {
    "hmm": "hum", "hm": "hum", "mmm": "um", "mm": "um", "shh": "shush", "psst": "pist", "brr": "burr", "tsk": "tisk",
    "ok": "okay", "jpeg": "jay peg", "ascii": "as key", "gui": "gooey", "wifi": "why fie", "wi-fi": "why fie",
}  # fmt: skip
_ROMAN: Final = {
    "ii": 2,
    "iii": 3,
    "iv": 4,
    "v": 5,
    "vi": 6,
    "vii": 7,
    "viii": 8,
    "ix": 9,
    "x": 10,
    "xi": 11,
    "xii": 12,
}
_FRACTIONS: Final = {2: "half", 3: "third", 4: "quarter"}


def letters(text: str) -> str:
    """Letter by letter; "A" is written as it is said, for "a" is also a word."""
    return " ".join("ay" if each in "aA" else each.upper() for each in text)


def _several(word: str, count: str) -> str:
    first, *rest = word.split()
    if count == "1" or first in _UNCOUNTED or first == "yen":
        return word
    return " ".join([{"foot": "feet", "penny": "pence"}.get(first, first + "s"), *rest])


def _money(found: re.Match[str]) -> str:
    large, small = _MONEY[found["sign"]]
    before, dot, after = found["sum"].partition(".")
    if found["size"]:
        return f"{number(found['sum'])} {found['size']} {_several(large, '2')}"
    said = f"{whole(before)} {_several(large, before)}"
    if dot and len(after) == 2 and int(after):
        return f"{said} and {cardinal(int(after))} {_several(small, str(int(after)))}"
    return said if not dot or not int(after) else f"{number(found['sum'])} {_several(large, '2')}"


def _time(found: re.Match[str]) -> str:
    hours, minutes = int(found["hour"]), int(found["minute"])
    half = letters((found["half"] or "").replace(".", ""))
    if hours > 24 or minutes > 59:
        return f"{cardinal(hours)} {cardinal(minutes)}"
    said = (
        f" {'oh ' if minutes < 10 else ''}{cardinal(minutes)}"
        if minutes
        else ""
        if half
        else " o'clock"
        if 0 < hours < 13
        else " hundred"
    )
    return f"{cardinal(hours)}{said} {half}".rstrip()


def _date(year_: str, month: str, day: str, found: str) -> str:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return " ".join(whole(each) for each in re.findall(r"\d+", found))
    return f"{MONTHS[int(month) - 1]} {ordinal(int(day))} {year(int(year_))}"


def _iso(found: re.Match[str]) -> str:
    return _date(found[1], found[2], found[3], found[0])


def _slashed(found: re.Match[str]) -> str:
    return _date(found[3], found[1], found[2], found[0])


def _month_day(found: re.Match[str]) -> str:
    day = int(found["day"])
    return f"{_month(found)} {ordinal(day) if 0 < day < 32 else cardinal(day)}"


def _day_month(found: re.Match[str]) -> str:
    return f"the {ordinal(int(found['day']))} of {_month(found)}" if 0 < int(found["day"]) < 32 else found[0]


def _month(found: re.Match[str]) -> str:
    return _ABBREVIATIONS.get(found["month"].lower(), found["month"])


def _fraction(found: re.Match[str]) -> str:
    above, below = int(found[1]), int(found[2])
    if below < 2 or above > 20 or below > 20:
        return f"{cardinal(above)} over {cardinal(below)}"
    name = _FRACTIONS.get(below) or ordinal(below)
    return f"{cardinal(above)} {name if above == 1 else 'halves' if below == 2 else name + 's'}"


def _decade(found: re.Match[str]) -> str:
    *before, last = year(int(found[1])).split()
    return " ".join([*before, last[:-1] + "ies" if last.endswith("y") else last + "s"])


def _unit(found: re.Match[str]) -> str:
    name = found["unit"].lower()
    return f"{number(found['count'])} {_several(_UNITS[name], found['count'])} "


def _dotted(found: re.Match[str]) -> str:
    key = found[0].rstrip(".").lower()
    return _ABBREVIATIONS.get(key) or letters(key.replace(".", ""))


def _plain(found: re.Match[str]) -> str:
    text = found[0]
    said = year(int(text)) if re.fullmatch(r"1[1-9]\d\d|20[0-9]\d", text) else whole(text)
    return f" {said} "


_COUNT: Final = r"\d{1,3}(?:,\d{3})+|\d+"
_NAMES: Final = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_RULES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), rule) for pattern, rule in (
        (r"(?<![\w.])-(?=[\d.])", lambda found: "minus "),
        (r"\bno\.\s?(?=\d)", lambda found: "number "),
        (rf"(?P<sign>[$£€¥])\s?(?P<sum>(?:{_COUNT})(?:\.\d+)?)(?:\s(?P<size>thousand|million|billion|trillion)\b)?", _money),
        (r"\b(?P<hour>\d{1,2}):(?P<minute>\d\d)(?:\s?(?P<half>[ap]\.?m\b(?:\.(?=\s*\S))?))?(?![\d:])", _time),
        (r"\b(?P<hour>\d{1,2})(?P<minute>)\s?(?P<half>[ap]\.?m\b(?:\.(?=\s*\S))?)", lambda found: f"{cardinal(int(found['hour']))} {letters(found['half'].replace('.', ''))}"),
        (r"\b(?:[a-z]\.)+[a-z]\b\.?", _dotted),
        (r"\b(\d{4})-(\d\d?)-(\d\d?)\b", _iso),
        (r"\b(\d\d?)/(\d\d?)/(\d{4})\b", _slashed),
        (rf"\b(?P<month>{_MONTH})\b\.?\s(?P<day>\d\d?)(?:st|nd|rd|th)?\b(?!:)", _month_day),
        (rf"\b(?P<day>\d\d?)(?:st|nd|rd|th)?\s(?P<month>{_MONTH})\b", _day_month),
        (r"\b(\d{1,4})/(\d{1,4})\b", _fraction),
        (r"\b(\d{3,4}0)s\b", _decade),
        (r"\b(\d+)(?:st|nd|rd|th)\b", lambda found: ordinal(int(found[1])) if len(found[1]) < 10 else figures(found[1])),
        (rf"(?P<count>(?:{_COUNT})(?:\.\d+)?)\s?(?P<unit>{_NAMES})(?![a-z\d])", _unit),
        (r"\b\d{3}-\d{3}-\d{4}\b|\b\d{3}-\d{4}\b", lambda found: ", ".join(figures(each) for each in found[0].split("-"))),
        (r"\b\d+(?:\.\d+){2,}\b", lambda found: " point ".join(whole(each) for each in found[0].split("."))),
        (rf"(?<!\w)(?:{_COUNT})?\.\d+|\b(?:\d{{1,3}}(?:,\d{{3}})+)", lambda found: f" {number(found[0])} "),
        (r"(?<=\d)-(?=\d)", lambda found: " to "),
        (r"\d+", _plain),
    )
)  # fmt: skip
_ROMAN_AFTER: Final = re.compile(
    r"\b(chapter|part|volume|book|act|scene|world war|section|phase)\s+([ivx]{2,4}|[vx])\b", re.IGNORECASE
)
_SHORTENED: Final = re.compile(r"\b([a-z]{2,6})\.(?=(\s*)(.?))", re.IGNORECASE)
_SAINT: Final = re.compile(r"\bSt\.(\s+(?=[A-Z]))?")
_TOKEN: Final = re.compile(r"[a-z]+(?:'[a-z]+)*'?|[,.;:!?]+|\S", re.IGNORECASE)


def unspeakable(text: str) -> tuple[list[str], list[str]]:
    """Letters of other scripts, and other signs that have no sound; each once, in order."""
    letters: dict[str, None] = {}
    others: dict[str, None] = {}
    for each in unicodedata.normalize("NFC", text):
        plain = _stripped(each)
        if (
            each.isspace()
            or each in _SIGNS
            or each in _QUIET
            or (plain.isascii() and (plain.isalnum() or not plain.strip()))
        ):
            continue
        (letters if unicodedata.category(each)[0] in "LN" else others)[each] = None
    return list(letters), list(others)


@lru_cache(maxsize=4096)
def spoken(text: str) -> str:
    """The words of a text in lower case with the marks , . ; : ! ? behind them; single letters that are to be named stand in upper case."""
    text = _written(_stripped(text))
    capitals = [word for word in re.findall(r"[A-Za-z]{2,}", text) if word.isupper()]
    shouted = len(capitals) > 3 and len(capitals) == len(re.findall(r"[A-Za-z]{2,}", text))
    said: list[str] = []
    for token in _TOKEN.findall(text):
        if token[0].isascii() and token[0].isalpha():
            said.extend(_word(token, shouted).split())
        elif token[0] in ",.;:!?":
            if said and said[-1][-1] not in ".;:!?":
                said[-1] = said[-1].rstrip(",") + _mark(token)
        elif token in _SIGNS:
            said.extend(_SIGNS[token].split())
        elif token in "()[]-" and said and said[-1][-1].isalpha():
            said[-1] += ","
    return " ".join(said)


def _stripped(text: str) -> str:
    """Without accents; ligatures and the like taken apart."""
    text = (
        text.replace("ß", "ss")
        .replace("æ", "ae")
        .replace("Æ", "Ae")
        .replace("ø", "o")
        .replace("Ø", "O")
        .replace("œ", "oe")
        .replace("ł", "l").replace("Ł", "L")
    )
    kept = "".join(each if each in _SIGNS else unicodedata.normalize("NFKD", each) for each in text)
    return "".join(each for each in kept if not unicodedata.combining(each)).translate(
        {0x2018: "'", 0x2019: "'", 0x2013: " - ", 0x2014: " - "}
    )


def _written(text: str) -> str:
    """Numbers and abbreviations in words."""
    for rule, said in _RULES:
        text = rule.sub(said, text)
    text = _ROMAN_AFTER.sub(
        lambda found: f"{found[1]} {cardinal(_ROMAN[found[2].lower()])}" if found[2].lower() in _ROMAN else found[0],
        text,
    )
    text = re.sub(r"(?<=\w )A(?=[.,;:!?]|$)", "ay", text)
    text = _SAINT.sub(lambda found: "Saint " if found[1] else "Street ", text)
    text = _SHORTENED.sub(_shortened, text)
    text = re.sub(r"(?<=[a-z\d])\.(?=[a-z\d])", " dot ", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])|/|_", " ", text, flags=re.IGNORECASE)
    return re.sub(r"\s-+\s|--+|\.\.+", ", ", text)


def _shortened(found: re.Match[str]) -> str:
    word, follows = found[1].lower(), found[3]
    if word == "no" and follows.isalpha() and follows.islower():
        return found[0]
    if word not in _ABBREVIATIONS or (word in _SENTENCE_END_TOO and (not follows or not found[1][0].isupper())):
        return found[0]
    return _ABBREVIATIONS[word] + ("" if follows else ".")


def _mark(token: str) -> str:
    return next((each for each in "?!.;:," if each in token), ",")


def _word(token: str, shouted: bool) -> str:
    word = token.lower().rstrip("'")
    if word in _SAID:
        return _SAID[word]
    base, ending = (word[:-2], "'s") if word.endswith("'s") else (word, "")
    if len(token) == 1:
        return word if word in "ai" else token.upper()
    if token[: len(base)].isupper() and not shouted and _named_letters(base):
        return letters(base) + ending
    if base in _ABBREVIATIONS and base in ("mr", "mrs", "ms", "dr", "vs"):
        return _ABBREVIATIONS[base]
    if not re.search(r"[aeiouy]", base) and len(base) < 6 and base.isalpha():
        return letters(base) + ending
    return word


def _named_letters(word: str) -> bool:
    """Whether capitals are read letter by letter: BBC, USB, HTML, and not NASA or STOP."""
    if word in _SHORT:
        return False
    return len(word) <= 3 or not re.search(r"[aeiouy]", word) or bool(re.search(r"[^aeiouy]{4}", word))
