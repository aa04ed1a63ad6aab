"""What is read of a prompt, each value with the words that said it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Said(NamedTuple):
    """A value, and the words that said it."""

    value: str
    typed: str


class Denied(NamedTuple):
    slot: str
    value: str
    colour: str = ""


@dataclass(slots=True)
class Draft:
    """A thing as far as it was read; without a kind until its noun comes: "a red and a blue circle"."""

    kind: str
    typed: str
    said: dict[str, Said] = field(default_factory=dict)
    """Its slots are colour, size, count and place."""
    beside: bool = False
    coloured_after: bool = False
    """True: its colour was said after it, as in "two circles, red and blue"."""

    def of(self, slot: str) -> str:
        return self.said[slot].value if slot in self.said else ""


@dataclass(slots=True)
class Reading:
    drafts: list[Draft] = field(default_factory=list)
    whole: dict[str, list[Said]] = field(default_factory=dict)
    """Its slots are background, ground, time, weather, mountains and style."""
    denied: list[Denied] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """These words mean nothing here."""
