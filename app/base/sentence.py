"""A sentence for a person: a key with its values, never formatted before somebody shows it, and whether guests may hear it."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Union

from app.base.clean_words import clean_words
from app.base.start_command import name_command

Value = Union[str, int, float, "Sentence", tuple[Union[str, "Sentence"], ...]]
"""A tuple is a list of names, joined by the comma of the language in which it is read."""


class _Blanks(string.Formatter):
    """Fills a template's blanks; `{count:picture|pictures}` is the first word for 1, the second for any other number."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, choice, many = format_spec.partition("|")
        if choice:
            return one if value == 1 else many
        return str(super().format_field(value, format_spec))


_BLANKS = _Blanks()
COMMAND: Final = "hearth"
"""Every template may have this blank without a value: it says how Hearth is called in a terminal here."""


def fill(template: str, values: Mapping[str, str | int | float]) -> str:
    """Fill a template: the one place where values become words, and nouns agree with their number. Chinese stands apart from
    Latin letters and figures, but not from Chinese: a blank that turns out Chinese loses the space beside it, and so does an empty one."""
    text = ""
    for literal, name, spec, conversion in _BLANKS.parse(template):
        text = _put_together(text, literal)
        if name is not None:
            value = _BLANKS.convert_field(name_command() if name == COMMAND else values[name], conversion)
            text = _put_together(text, _BLANKS.format_field(value, spec or "")) if value != "" else text.rstrip(" ")
    return text


def _put_together(before: str, after: str) -> str:
    if before.endswith(" ") and _is_chinese(before[-2:-1]) and _is_chinese(after[:1]):
        return before[:-1] + after
    if after.startswith(" ") and _is_chinese(before[-1:]) and _is_chinese(after[1:2]):
        return before + after[1:]
    return before + after


def _is_chinese(letter: str) -> bool:
    """Tell whether a letter is Chinese, or one of its full-width marks."""
    return "\u3000" <= letter <= "\u303f" or "\u4e00" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uff5e"


def join_sentences(sentences: Iterable[str]) -> str:
    """Put sentences one after the other, with a space between those that are not Chinese."""
    text = ""
    for each in sentences:
        text += each if not text or _is_chinese(text[-1]) else f" {each}"
    return text


@dataclass(frozen=True, slots=True)
class Sentence:
    """`key` finds the translation and nothing else, `english` is the template that stands beside its row, `values` fill either; one may be a sentence itself,
    or a list of names."""

    key: str
    english: str
    values: tuple[tuple[str, Value], ...] = ()
    for_all: bool = False
    """True: guests may hear it. All others are the owner's alone, as values of another sentence too: they speak of the owner's machine and
    files, or advise what only the owner can do."""

    def __str__(self) -> str:
        return fill(self.english, {name: in_words(each) for name, each in self.values})

    def translate(self, templates: Mapping[str, str]) -> str:
        """In another language, from its templates by key; in English where there is none, or where another machine's values do not
        fit it."""
        values = {name: in_words(each, templates) for name, each in self.values}
        try:
            return fill(templates.get(self.key, self.english), values)
        except (KeyError, ValueError):
            return fill(self.english, values)


def in_words(value: Value, templates: Mapping[str, str] = MappingProxyType({})) -> str | int | float:
    """Word a sentence or a list of names; a number stays as it is, so that a template can choose a noun by it, but for the decimal mark of the
    language in which it is read. Names and other words come from anywhere."""
    if isinstance(value, str):
        return clean_words(value)
    if isinstance(value, tuple):
        return templates.get("word.comma", ", ").join(str(in_words(each, templates)) for each in value)
    if isinstance(value, float) and (mark := templates.get("word.decimal", ".")) != ".":
        return str(value).replace(".", mark)
    return value.translate(templates) if isinstance(value, Sentence) else value


def shorten_list(names: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first names as a value, with a mark where there are more."""
    return (*names[:most], "…") if len(names) > most else tuple(names)


def set_apart(name: str) -> str:
    """Set a person's name apart for `fill`: one that is written from the right would turn the words around it. words.js has it for the page."""
    return f"\u2068{name}\u2069"


def say(key: str, english: str, /, **values: Value) -> Sentence:
    """Key and template are always written as literals, so that a test can collect them and ask for their translations."""
    return Sentence(key, english, tuple(values.items()))


def say_to_all(key: str, english: str, /, **values: Value) -> Sentence:
    """Like `say`, for what guests may hear too: of their own request, or words that stand in such sentences."""
    return Sentence(key, english, tuple(values.items()), for_all=True)
