"""Name a chapter, and recognise what a line says where one begins, in the languages that people write books in."""

from __future__ import annotations

import re
from typing import Final

from app.base.clean_words import clean_words

TITLE_LETTERS: Final = 300
"""A script without lines has no longer title."""
_TAG: Final = re.compile(r"\[[^\[\]]{1,40}\]|^#+ ")

_NOUNS: Final = (
    "chapter|part|book|act|scene|section|canto|stave|letter|volume|"
    "kapitel|teil|buch|akt|aufzug|auftritt|szene|abschnitt|band|gesang|brief|"
    "chapitre|partie|livre|acte|scène|tome|lettre|chant|"
    "capítulo|capitulo|parte|libro|acto|escena|capitolo|atto|scena|livro|ato|cena|"
    "hoofdstuk|deel|boek|rozdział|część|księga|глава|часть|книга|"
    "розділ"
)
_COUNT: Final = (
    r"(?:\d{1,3}|(?-i:[IVXLC]{1,7})|the\s+\w{3,12}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{3,5}teen|fifteen|eighteen|"
    r"(?:twenty|thirty|forty|fifty)(?:-\w{3,5})?)"
)
_COUNT_ALONE: Final = (
    "(?:eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\\w{3,6}zehn|(?:\\w{3,6}und)?(?:zwanzig|dreißig|vierzig)|"
    "deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|premi(?:er|ère)|second|seconde|\\w{3,12}ième|"
    "uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|primer[ao]|segund[ao]|tercer[ao]|"
    "tre|quattro|cinque|sei|sette|otto|nove|dieci|prim[ao]|second[ao]|terz[ao]|dois|um|primeir[ao]|"
    "twee|drie|vier|vijf|zes|zeven|negen|tien|"
    "первая|вторая|третья|четвёртая|четвертая|пятая|шестая|седьмая|восьмая|девятая|десятая|pierwszy|drugi|trzeci)"
)
_NTH: Final = (
    "(?:(?:der|die|das|la|le|el|il|o|a|the)\\s+)?"
    "(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|\\w{3,5}teenth|twentieth|"
    "(?:erst|zweit|dritt|viert|fünft|sechst|siebt|acht|neunt|zehnt|elft|zwölft|dreizehnt|vierzehnt|letzt)e[rs]?|"
    "premi(?:er|ère)|\\w{3,12}ième|primer[ao]?|segund[ao]|tercer[ao]?|prim[ao]|second[ao]|terz[ao])"
)
_ALONE: Final = (
    "prologue|epilogue|preface|introduction|foreword|afterword|interlude|appendix|contents|"
    "prolog|epilog|vorwort|nachwort|einleitung|zwischenspiel|anhang|inhalt|inhaltsverzeichnis|"
    "épilogue|préface|postface|avant-propos|annexe|sommaire|"
    "prólogo|epílogo|prefacio|introducción|índice|prologo|epilogo|prefazione|introduzione|prefácio|introdução|"
    "proloog|epiloog|voorwoord|nawoord|пролог|эпилог|предисловие"
)
_TITLE: Final = r"[^.!?\u3002\uff01\uff1f]{0,60}\.?"
_SET_OFF: Final = rf"(?:\.|\s*[:\u2013\u2014-]{_TITLE})?"
_EAST_SET_OFF: Final = r"(?:\s?[:\uff1a]|\s?[\s:\uff1a\u3001.-]\s?[^\u3002\uff01\uff1f]{1,60}[\uff01\uff1f]?)"
"""A title that is set off may ask, and hold commas and colons; without, these are those of a sentence."""
_EAST: Final = (
    r"(?:"
    r"(?:正文\s)?第\s?[0-9\uff10-\uff19一二三四五六七八九十百千零\u3007两兩]{1,9}\s?"
    rf"(?:章(?:[^\s:\uff1a\uff0c\u3002\uff01\uff1f][^:\uff1a\uff0c\u3002\uff01\uff1f]{{0,40}}|{_EAST_SET_OFF})?|[回节節卷巻部话話集幕篇編编]{_EAST_SET_OFF}?)|"
    rf"卷[一二三四五六七八九十上中下]{{1,3}}{_EAST_SET_OFF}?|"
    r"제\s?\d{1,3}\s?[장화부](?:[\s:.-].{0,60})?|"
    r"(?:序章|楔子|尾声|尾聲|终章|終章|番外|プロローグ|エピローグ)(?:[\s:\uff1a].{0,60})?|"
    r"序|序言|前言|引子|后记|後記|后記|まえがき|あとがき|はじめに|おわりに"
    r")"
)
CHAPTER: Final = re.compile(
    rf"(?:{_NOUNS})\s+{_COUNT}\b\.?{_TITLE}|(?:{_NOUNS})\s+{_COUNT_ALONE}{_SET_OFF}|{_NTH}\s+(?:{_NOUNS}){_SET_OFF}|(?:{_ALONE})\.?|{_EAST}",
    re.IGNORECASE,
)
EAST: Final = re.compile(_EAST)
"""In Chinese and Japanese each paragraph is a line, and no blank ones part headings from them."""


def name_chapter(script: str) -> str:
    """Name a chapter by the first line of its script."""
    line = next(iter(script.strip().splitlines()), "")
    return cut_words(clean_words(_TAG.sub("", line), "").strip(), TITLE_LETTERS)


def cut_words(words: str, most: int) -> str:
    """Cut what is too long after its last whole word, or within one where less than half would be left, as of Chinese and Japanese."""
    if len(words) <= most:
        return words
    whole = words[: most + 1].rpartition(" ")[0].rstrip(" ,.-")
    return whole if 2 * len(whole) >= most else words[:most].rstrip()
