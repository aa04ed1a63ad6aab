"""Write a text out as it is read aloud: numbers, dates, times, money, units, abbreviations and signs become words. Pure and linear."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import Final

from app.engine.speech.text import numerals, said_matches
from app.engine.speech.text import spoken_forms as forms
from app.engine.speech.text.chinese import write_chinese
from app.engine.speech.text.other_languages import write_figures

_MONTH: Final = "|".join(forms.MONTHS)
_WHOLE: Final = r"\d{1,3}(?:,\d{3}){1,5}+(?![\d,]\d)|\d{1,40}+"
_MINUS: Final = r"(?P<minus>(?<![\w)])-)?"
_UNIT: Final = "|".join(re.escape(unit) for unit in sorted(forms.UNITS, key=len, reverse=True))
_SIGN: Final = "".join(forms.MONEY)
_ROMAN: Final = r"C{0,3}(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_COUNTED = re.compile(rf"^(?=[IVXLC])(?:({_ROMAN})\.? ?$|(?=..)({_ROMAN})[.)] (?=[\"'A-Z]))")
_LISTED = re.compile(r"(?:^|(?<=: ))(?:\(?(?P<inside>\d{1,2}|[a-z])\)|(?P<before>\d{1,3})\.) (?=\S)")
_ADDRESS = re.compile(
    r"\b(?:[a-z]{2,8}://[^\s,;]{1,200}+|www\.[^\s,;]{1,200}+|[\w.-]{1,64}@[\w-]{1,63}+(?:\.\w{1,20}+){1,4}|"
    rf"(?:[\w-]{{1,63}}+\.){{1,4}}(?:{'|'.join(forms.DOMAINS)})\b(?:[/?#:][^\s,;()\"]{{0,200}}+)?)",
    re.IGNORECASE,
)
_FILE = re.compile(rf"\b[\w-]{{1,64}}+\.(?:{'|'.join(forms.FILES)})\b", re.IGNORECASE)
_DATE_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?![\w:])")
_TELEPHONE = re.compile(
    r"(?<![\w+-])(?:\+(\d{1,3})[ -])?(?:\((\d{3})\) ?|(\d{3})[ -])(\d{3})-(\d{4})(?![\w-])|(?<![\w+-])\+(\d{1,3}(?:[ -]\d{2,5}){2,5})(?!\d)"
)
_SHORT_TELEPHONE = re.compile(r"(?<![\w+-])(\d{3})-(\d{4})(?![\w-])")
_EMERGENCY = re.compile(r"\b(call|dial|called|calling|ring) (911|999|112)\b", re.IGNORECASE)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})(?![\w-])")
_RANGE = re.compile(
    rf"(?<![\w-])([{_SIGN}]?\d[\d,.:]{{0,12}}(?: ?(?:{_UNIT}|%|[ap]m|[ap]\.m\.))?)(?: - |-)(?=[{_SIGN}]?\d)(?!\d{{1,3}}-\d)"
)
_MONEY = re.compile(
    rf"(?:\b(?:US|CA|AU|NZ|HK|C|A))?{_MINUS}(?P<sign>[{_SIGN}]) ?+(?P<back>-)?(?P<whole>{_WHOLE})(?P<part>\.\d{{1,9}}+)?+"
    rf"(?: ?(?P<scale>{'|'.join(forms.SCALES)})\b| (?P<word>thousand|million|billion|trillion)\b)?"
)
_MONEY_AFTER = re.compile(rf"{_MINUS}(?<![\d.,])(?P<whole>{_WHOLE})(?P<part>\.\d{{1,9}}+)?+ ?(?P<sign>[{_SIGN}])")
_OLD_MONEY = re.compile(
    rf"(?<![\w.,])(?:£ ?(?P<pounds>{_WHOLE}) )?(?P<shillings>\d{{1,2}})s\b(?P<dot>\.)?(?: (?P<pence>\d{{1,2}})d\b\.?)?|"
    r"(?<![\w.,])(?P<alone>\d{1,2})d\.(?!\w)"
)
_DOTTED_CLOCK = re.compile(r"\b(\d{1,2})\.([0-5]\d)(?= ?[ap]\.?m\b)", re.IGNORECASE)
_SLASHED_DATE = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?(?: ?(?P<half>[ap])(?:m\b|\.m\b\.?))?", re.IGNORECASE)
_HALF_DAY = re.compile(r"\b(\d{1,2}) ?([ap])(?:m\b|\.m\b\.?)", re.IGNORECASE)
_SHORT_MONTH = re.compile(rf"\b({'|'.join(forms.SHORT_MONTHS)})\b\.?(?= \d)")
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)? ({_MONTH})\b(?:,? (\d{{4}})\b)?")
_UNMEASURED: Final = rf"(?![ -]?(?:{forms.MEASURED}|{_UNIT})(?!\w))"
_PART_OF = re.compile(rf"\b({forms.COUNTED}) (\d{{1,4}})/(\d{{1,3}})\b(?!/){_UNMEASURED}", re.IGNORECASE)
_SEVERAL = re.compile(rf"\b({forms.SEVERAL}) (\d{{1,4}})/(\d{{1,4}})\b(?!/){_UNMEASURED}", re.IGNORECASE)
_FRACTION = re.compile(r"\b(?:(\d{1,3}(?:,\d{3}){1,4}+|\d{1,6}) )?(\d{1,3})/(\d{1,4})\b(?!/)")
_DECADE = re.compile(r"'?\b(\d{1,3}0)s\b")
_ORDINAL = re.compile(r"\b(\d{1,15})(?:st|nd|rd|th)\b")
_VERSION = re.compile(r"\b\d{1,9}(?:\.\d{1,9}){2,8}+(?![\w.]\w)")
_SIZE = re.compile(rf"(?<=\d) ?[x×] ?(?=\d{{1,9}}(?:\.\d{{1,9}})? ?(?:{_UNIT})(?![\w'])|\d{{2,9}}\b)")
_COMPARED = re.compile(r"(?<=[\d)]) ?([<>*^x·]) ?(?=[\d(])")
_AMOUNT = re.compile(
    rf"(?<![\d.,]){_MINUS}(?<![\d.,])(?P<whole>{_WHOLE})(?P<part>\.\d{{1,20}}+)?+ ?(?P<unit>{_UNIT}|in(?=\.))(?![\w'])(?:\.(?!\w))?"
)
_INCHES = re.compile(r"(?<=\d)( ?(?:ft\.?|feet|foot) \d{1,2}(?:\.\d)?) ?in\b(?!\.)")
_STONES = re.compile(r"(?<=\d) ?st\.?(?= \d{1,2} ?lbs?\b)")
_ABOUT = re.compile(r"~(?= ?\d)")
_NUMBERED = re.compile(rf"#(?=\d)|\b({'|'.join(forms.NUMBERED)})\. ?(?=\d)", re.IGNORECASE)
_VERSIONED = re.compile(r"\bv\.? ?(?=\d{1,9}\.\d)")
_FIGURE = re.compile(r"[\d)]")
_TAGGED = re.compile(r"#(?=[A-Za-z])")
_NUMBER = re.compile(rf"((?<![\w)])-)?({_WHOLE})(\.\d{{1,40}}+)?+|(?<!\d)\.(\d{{1,40}}+)")
_REIGN = re.compile(rf"\b([A-Za-z][A-Za-z]{{1,15}}) (?=[IVXLC])({_ROMAN})\b(?!\.[A-Z])")
_CENTURY = re.compile(rf"\b(?=[IVX])({_ROMAN})(?= (?:century|centuries|dynasty)\b)")
_SAINT = re.compile(r"\bSt\.(?= ?[A-Z])|\bSt\.")
_INITIALS = re.compile(r"\b(?:[A-Z]\. ?){2,4}(?=[A-Z][a-z])|(?:(?<=[a-z] )|(?<![^\n\"]))[A-Z]\. (?=[A-Z][a-z])")
_DOTTED = re.compile(r"\b(?:[A-Z]\.){2,6}(?![A-Za-z])|\b(?:[A-Z]\.){1,5}[A-Z]\b(?!\.)|\bPh\.D\b\.?")
_SHORTENED = re.compile(r"\b((?:[a-z]\.){1,3}[a-z]{1,2}|[A-Za-z]{2,6})\.", re.IGNORECASE)
_BARE = re.compile(rf"\b({'|'.join(forms.BARE)})\b")
_HUM = re.compile(r"\b(?:h{1,9}m{1,20}|m{2,20}|s{1,9}h{2,20}|p+s+t+|[bg]r{2,20}|tsk)\b", re.IGNORECASE)
_JOINED = re.compile(r"(?<=[a-z])(?<!\bMc)(?=[A-Z])")
"""It lies between the words of GitHub and iPhone, not of McGregor."""
_FILE_DOT = re.compile(r"(?<=[a-z])\.(?=[a-z]{2})|(?<![\w.])\.(?=[a-z]{2})")
_CAPITALS = re.compile(r"\b([A-Z]{2,24})(s)?\b")
_TRAILED = re.compile(r"(?<!\.)\.{2,}+(?=[\"' ]*[a-z])")
_STOPS = re.compile(r"\.{2,}+")
_BREAKS = re.compile(r"[;:()\[\]{}]|(?<=\s)-{1,3}+(?=\s)|--")
_LOOSE_QUOTE = re.compile(r"(?<![A-Za-z])'|'(?![A-Za-z])")
_OTHER = re.compile(r"[^A-Za-z' .,!?]")
_WORDS = re.compile(r"[^\W_]+")
_MARKS = re.compile(r" ?[.,!?][ .,!?]*+")


_Rules = tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]
_FIRST_RULES: Final[_Rules] = (
    (_COUNTED, said_matches.counted),
    (_LISTED, lambda found: f"{found['inside'] or found['before']}, "),
    (_ADDRESS, said_matches.address),
    (_FILE, said_matches.address),
)
_FIGURE_RULES: Final[_Rules] = (
    (_DATE_TIME, r"\1 at \2"),
    (_TELEPHONE, said_matches.telephone),
    (_SHORT_TELEPHONE, said_matches.short_telephone),
    (_EMERGENCY, lambda found: f"{found[1]} {numerals.figures(found[2])}"),
    (_ISO_DATE, said_matches.iso_date),
    (_RANGE, r"\1 to "),
    (_OLD_MONEY, said_matches.old_money),
    (_MONEY, said_matches.money),
    (_MONEY_AFTER, said_matches.money),
    (_SLASHED_DATE, said_matches.slashed_date),
    (_DOTTED_CLOCK, r"\1:\2"),
    (_CLOCK, said_matches.clock),
    (_HALF_DAY, said_matches.half_day),
    (_SHORT_MONTH, lambda found: forms.SHORT_MONTHS[found[1]]),
    (_MONTH_DAY, said_matches.month_day),
    (_DAY_MONTH, said_matches.day_month),
    (_PART_OF, said_matches.part_of),
    (_SEVERAL, r"\1 \2 and \3"),
    (_FRACTION, said_matches.fraction),
    (_DECADE, said_matches.decade),
    (_ORDINAL, said_matches.ordinal),
    (_VERSIONED, "version "),
    (_VERSION, said_matches.version),
    (_SIZE, " by "),
    (_COMPARED, lambda found: f" {forms.BETWEEN_NUMBERS[found[1]]} "),
    (_INCHES, r"\1 in."),
    (_STONES, " stone"),
    (_AMOUNT, said_matches.amount),
    (_ABOUT, "about "),
    (_NUMBERED, said_matches.numbered),
    (_NUMBER, lambda found: f" {said_matches.number(found)} "),
)
"""They run only on a text with figures, as most sentences have none."""
_WORD_RULES: Final[_Rules] = (
    (_TAGGED, "hashtag "),
    (_REIGN, said_matches.reign),
    (_CENTURY, said_matches.century),
    (_SAINT, said_matches.saint),
    (_DOTTED, said_matches.dotted),
    (_INITIALS, said_matches.initials),
    (_SHORTENED, said_matches.shortened),
    (_BARE, lambda found: forms.BARE[found[1]]),
    (_HUM, said_matches.hum),
    (_FILE_DOT, " dot "),
    (_JOINED, " "),
)
"""Their order matters: a rule sees what the earlier ones left."""


def has_lower(text: str) -> bool:
    """Tell whether capitals are letters to spell in this text, such as FBI, and not merely its way of writing."""
    return any(each.islower() for each in text)


def write_out(text: str, spells_capitals: bool | None = None) -> str:
    """Return the text in words, apostrophes and the marks . , ! ? alone. `spells_capitals`: what `has_lower` says of the text around it."""
    text = " ".join(_fold(text).split())
    mixed = has_lower(text) if spells_capitals is None else spells_capitals
    for rules in (_FIRST_RULES, _FIGURE_RULES if _FIGURE.search(text) else (), _WORD_RULES):
        for pattern, said in rules:
            text = pattern.sub(said, text)
    if mixed:
        text = _CAPITALS.sub(said_matches.capitals, text)
    for sign, word in forms.SIGNS.items():
        text = text.replace(sign, word)
    text = _BREAKS.sub(", ", _STOPS.sub(".", _TRAILED.sub(", ", text)))
    text = _OTHER.sub(" ", _LOOSE_QUOTE.sub(" ", text))
    return _MARKS.sub(_keep_strongest, " ".join(text.split())).strip(" ,") if text.strip(" .,!?") else ""


def say_out(text: str, language: str) -> str:
    """Return a text as a voice of this language is given it; as it is where no language is named."""
    written = {"en": write_out, "zh": write_chinese}.get(language)
    return written(text) if written is not None else write_figures(text, language)


@functools.lru_cache(maxsize=8192)
def find_said(text: str, language: str) -> str:
    """Return what a voice of this language says in place of a text, where it has other words; else nothing."""
    said = say_out(text, language) if language else text
    return said if _list_words(said) != _list_words(text) else ""


def _list_words(text: str) -> list[str]:
    return _WORDS.findall("".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)).casefold())


def can_read(sign: str) -> bool:
    """Tell whether a character is read, or is a mark, and not skipped."""
    return bool(_fold(sign).strip()) and sign not in "\\`|~^_"


def _fold(text: str) -> str:
    """Reduce letters to those from A to Z; keep what forms.SIGNS reads, put a blank for anything else."""
    return "".join(each if each.isascii() else _fold_sign(each) for each in text.translate(forms.FOLDED))


def _fold_sign(sign: str) -> str:
    if sign in forms.SIGNS:
        return sign
    plain = unicodedata.normalize("NFKD", sign)
    if "\u2044" in plain:
        return f" {plain.replace(chr(0x2044), '/')}"
    kept = "".join(each for each in plain if each.isascii())
    return kept if kept or unicodedata.category(sign)[0] in "MC" else " "


def _keep_strongest(found: re.Match[str]) -> str:
    """Keep one mark where several meet."""
    return f"{min(found[0].replace(' ', ''), key='?!.,'.index)} "
