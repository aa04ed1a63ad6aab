"""What a recogniser heard in a sound: words with their times, kept as a small file. No torch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NotRequired

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.bounded_json import Bounds, read_json
from app.base.stored_json import is_right

BOUNDS: Final = Bounds(most_bytes=64 << 20, values=4_000_000)
"""A day of speech takes as much."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    begin_s: float
    end_s: float
    sure: float
    """The recogniser finds it this likely, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A word that was meant to be said. Logarithms of how likely the recogniser finds the whole text, compared with others."""

    text: str
    begin_s: float
    end_s: float
    likely: float
    """The word itself is this likely, after those before it."""
    without: float
    """The text is this much likelier without it, or without it and others beside it, beyond how much it would be if nothing was heard."""
    twice: float
    """The text is this much likelier with the word said twice, unless it is as much where nothing is heard."""
    other: float
    """The text is this much likelier with what the recogniser wrote in its place, likewise."""


@dataclass(frozen=True, slots=True)
class Heard:
    words: tuple[Word, ...]
    meant: tuple[Meant, ...]
    """These words were meant to be said, where there was such a text."""
    seconds: float
    model: str
    language: str = ""
    """The text that was meant is in this language, where it is known."""
    spoken: str = ""
    """The recogniser heard the most words in this language; empty: nobody spoke."""

    @property
    def text(self) -> str:
        return join_words([word.text for word in self.words])


class _StoredWord(TypedDict):
    text: str
    begin_s: Annotated[float, Field(ge=0)]
    end_s: Annotated[float, Field(ge=0)]
    sure: Annotated[float, Field(ge=0, le=1)]


class _StoredMeant(TypedDict):
    text: str
    begin_s: Annotated[float, Field(ge=0)]
    end_s: Annotated[float, Field(ge=0)]
    likely: float
    without: float
    twice: float
    other: float


class _Stored(TypedDict):
    words: list[_StoredWord]
    meant: list[_StoredMeant]
    seconds: Annotated[float, Field(ge=0)]
    model: str
    language: NotRequired[str]
    spoken: NotRequired[str]


_STORED: Final = TypeAdapter(_Stored)


def join_words(words: Sequence[str]) -> str:
    """Join words with blanks, but for those of a writing that has none."""
    text = ""
    for word in words:
        text += word if not text or (is_wide(text[-1]) and is_wide(word[0])) else f" {word}"
    return text


def is_wide(sign: str) -> bool:
    """Tell whether a sign is Chinese or Japanese, or a mark of theirs: no blanks stand between them."""
    return "\u3000" <= sign <= "\u9fff" or "\uff00" <= sign <= "\uffef"


def store(heard: Heard, path: Path) -> None:
    atomic_write.write_text(path, json.dumps(dataclasses.asdict(heard), ensure_ascii=False))


def find(path: Path) -> Heard | None:
    """Return what was stored; None if nothing was, or it is damaged: it can be heard again."""
    try:
        values = read_json(path, BOUNDS)
    except (OSError, ValueError):
        return None
    if not is_right(_STORED, values):
        return None
    words, meant = tuple(Word(**each) for each in values["words"]), tuple(Meant(**each) for each in values["meant"])
    return Heard(words, meant, values["seconds"], values["model"], values.get("language", ""), values.get("spoken", ""))
