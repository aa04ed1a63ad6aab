"""A sentence for a person: a key with its values, never formatted before somebody shows it; and the error that carries one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

Value = Union[str, int, float, "Sentence"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """`key` finds the translation, `english` is the template that stands beside its row, `values` fill either; one may be a sentence itself."""

    key: str
    english: str
    values: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        return self.english.format(**dict(self.values))

    def translate(self, templates: Mapping[str, str]) -> str:
        """In another language, from its templates by key; in English where there is none."""
        values = {name: each.translate(templates) if isinstance(each, Sentence) else each for name, each in self.values}
        return templates.get(self.key, self.english).format(**values)


def say(key: str, english: str, /, **values: Value) -> Sentence:
    """Key and template are always written as literals, so that a test can collect them and ask for the Chinese."""
    return Sentence(key, english, tuple(values.items()))


class Trouble(Exception):
    """What was asked, what stands in the way, what to do. `cure` names the button that does it, where there is one."""

    def __init__(self, sentence: Sentence, *objections: Sentence, cure: str = "") -> None:
        super().__init__(sentence, *objections)
        self.sentence = sentence
        self.objections = objections
        self.cure = cure

    def __str__(self) -> str:
        return " ".join(str(part) for part in (self.sentence, *self.objections))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.sentence, self.objections, self.cure)


def _rebuild(kind: type[Trouble], sentence: Sentence, objections: tuple[Sentence, ...], cure: str) -> Trouble:
    return kind(sentence, *objections, cure=cure)
