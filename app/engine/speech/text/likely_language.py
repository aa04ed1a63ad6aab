"""Guess the language of a script by the small words that every sentence of it has, so that a voice which speaks another one is told. Pure and linear."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.base.sentence import Sentence, say_to_all

NAMES: Final = {
    "en": say_to_all("language.en", "English"), "de": say_to_all("language.de", "German"), "es": say_to_all("language.es", "Spanish"),
    "fr": say_to_all("language.fr", "French"), "it": say_to_all("language.it", "Italian"), "pt": say_to_all("language.pt", "Portuguese"),
    "zh": say_to_all("language.zh", "Chinese"), "ja": say_to_all("language.ja", "Japanese"), "ko": say_to_all("language.ko", "Korean"),
    "nl": say_to_all("language.nl", "Dutch"), "pl": say_to_all("language.pl", "Polish"), "ru": say_to_all("language.ru", "Russian"),
}  # fmt: skip
SMALL_WORDS: Final = {
    "en": "the and is of to a in that it you i was for on with he she at are this have my not be but we they how from as by or his her had me do so",
    "de": "der das und ist nicht ich du ein eine einen einem mit für auf dem des zu von sie wir es wie auch sich bin habe euch ihr mein im den sind",
    "es": "el los las una que por para con está y mi su del se lo como muy pero más yo esto ella hola qué cómo es en la de",
    "fr": "le les des est une dans pour pas vous nous je il elle que qui avec sur ce cette mon au du et un sont mais ne la de j l d c qu",
    "it": "il che di una per con sono non gli della è mi si del un come più ma ho hai lo questo ciao nel la e",
    "pt": "o que não uma para com você os em do da é se por mas eu um isso ela olá ao na no e as",
    "nl": "het een en van niet ik je dat op met voor zijn maar ook naar wij zij hij was is de wat deze mijn",
    "pl": "nie się jest na to w z że jak i do ale ja ty on ona dla już czy co",
}
"""No two sentences do without these common words; those of several languages count for each."""
_CODES: Final = [(word, code) for code, words in SMALL_WORDS.items() for word in words.split()]
_WORDS: Final = {word: tuple(code for other, code in _CODES if other == word) for word, _ in _CODES}
_WORD: Final = re.compile(r"[^\W\d_]+")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_KANA: Final = re.compile(r"[\u3040-\u30ff]")
_TAG: Final = re.compile(r"\[[^\[\]]{0,200}\]|\([^()]{0,200}\)")
LOOKED_AT: Final = 20_000
"""Only so many letters from the beginning are looked at."""
LEAST_WORDS, LEAST_SHARE, LEAST_LEAD = 3, 0.2, 1.5
"""A language needs so many different small words; they have to be this share of all words, and so many times as many as those of English."""


def guess_language(text: str) -> str:
    """Return the code of the language that a script is in; empty where that cannot be told, or is none of the table."""
    words = _WORD.findall(_TAG.sub(" ", text[:LOOKED_AT]).lower())
    found: dict[str, list[str]] = {code: [] for code in SMALL_WORDS}
    for word in words:
        for code in _WORDS.get(word, ()):
            found[code].append(word)
    best = max(found, key=lambda code: len(found[code]))
    told = len({*found[best]}) >= LEAST_WORDS and len(found[best]) >= LEAST_SHARE * len(words)
    return best if told and (best == "en" or len(found[best]) >= LEAST_LEAD * len(found["en"])) else ""


def choose_language(text: str, spoken: Sequence[str]) -> str:
    """Return the language that a text is in, of those that its voice speaks; the first where that cannot be told."""
    codes = tuple(dict.fromkeys(each.lower().partition("-")[0] for each in spoken))
    if len(codes) > 1:
        signs = len(_CHINESE.findall(text[:LOOKED_AT]))
        chinese = signs and signs >= len(_LATIN.findall(text[:LOOKED_AT]))
        seems = ("ja" if _KANA.search(text) else "zh") if chinese else guess_language(text)
        if seems in codes:
            return seems
    return codes[0] if codes else ""


def name_language(code: str) -> Sentence | str:
    return NAMES.get(code, code)
