"""The names of models in a person's language: those of the starters are words, all others are proper names."""

from __future__ import annotations

from typing import Final

from app.base.sentence import Sentence, say_to_all

VOICE: Final = say_to_all("model.starter-voice", "Starter voice")
PAINTER: Final = say_to_all("model.starter-painter", "Starter painter")
NAMES: Final[dict[str, Sentence]] = {"Starter voice": VOICE, "Hearth starter voice": VOICE, "Starter painter": PAINTER}
"""They go by their titles in the catalog, and by the name that the voice's own folder gives."""


def word_name(title: str) -> str | Sentence:
    return NAMES.get(title, title)
