"""Problem: what is wrong with a script, how badly, and what cures it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.base.sentence import Sentence

Severity = Literal["note", "warning", "fatal"]


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    sentence: Sentence
    cure: str = ""
