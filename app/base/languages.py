"""The languages Hearth speaks: their table, their sentences by key, and which one a person reads. Standard library only."""

from __future__ import annotations

import json
import locale
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TextIO

from app.base.sentence import Sentence, Value, in_words

FOLDER: Final = Path(__file__).parent / "locale"
"""`languages.json` lists the languages; each but English, which stands in the code, has a file of sentences beside it."""
ENGLISH: Final = "en"
COOKIE: Final = "hearth_language"
"""It holds the language chosen with the page's switch."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How a language is named."""

    name: str
    """Each language is named in itself, as on the page's switch."""
    tags: tuple[str, ...]
    """HTML names it by the first; browsers may ask for any."""


@cache
def languages() -> dict[str, Naming]:
    """Load the table: each language's code and its names."""
    table = json.loads((FOLDER / "languages.json").read_text("utf-8"))
    return {code: Naming(row["name"], tuple(row["tags"])) for code, row in table.items()}


@cache
def templates(language: str) -> dict[str, str]:
    """Load a language's sentences by key; none for English."""
    loaded: dict[str, str] = {} if language == ENGLISH else json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return loaded


def choose(cookies: str, accepted: str) -> str:
    """Choose from a request's Cookie and Accept-Language: the switch's language, else the browser's first, else English."""
    fields = dict(each.strip().partition("=")[::2] for each in cookies.split(";"))
    return next((each for each in (fields.get(COOKIE, ""), _primary(accepted)) if each in languages()), ENGLISH)


def system_language(variables: Mapping[str, str] = os.environ) -> str:
    """Return the system's language: on Windows that of its windows, elsewhere the locale's."""
    if sys.platform == "win32":
        import ctypes

        named = locale.windows_locale.get(ctypes.windll.kernel32.GetUserDefaultUILanguage(), "")
    else:
        given = (variables.get(each) for each in ("LC_ALL", "LC_MESSAGES", "LANG", "LC_CTYPE"))
        named = next(filter(None, given), "")
    return _primary(named) if _primary(named) in languages() else ENGLISH


def word_for(stream: TextIO, sentence: Sentence) -> str:
    """Word a sentence in the system's language, or in English where the stream cannot print that."""
    return _choose_printable(stream, sentence.translate(templates(system_language())), str(sentence))


def _choose_printable(stream: TextIO, words: str, english: str) -> str:
    try:
        words.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return english
    return words


def in_terminal(value: Value) -> str:
    """Word what a command answers on standard output, as `word_for` does."""
    if isinstance(value, Sentence):
        return word_for(sys.stdout, value)
    return _choose_printable(sys.stdout, str(in_words(value, templates(system_language()))), str(in_words(value)))


def word_help(sentence: Sentence) -> str:
    """Word what a command's help says, for argparse, which takes a % for a blank."""
    return in_terminal(sentence).replace("%", "%%")


def _primary(tag: str) -> str:
    """Return the language of a tag or a locale's name, such as zh of zh-CN,en;q=0.8 or of zh_CN.UTF-8."""
    return re.split("[^a-z]", tag.lower(), maxsplit=1)[0]
