"""What this machine was seen to do: verdicts by subject, kept per torch + system + card. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """`subject` is "row:<quirk id>" (does the defect show here?) or "path:<field>/<option>/<dtype>" (is this option right here?)."""

    subject: str
    passed: bool
    """For a row: the defect did not show, so the row is retired. For a path: right within its dtype's tolerance."""
    error: float = 0.0
    """The worst seen, relative to the float64 reference's largest value."""
    elapsed_s: float = 0.0
    words: str = ""
    """The machine's own words where it raised."""


Verdicts = Mapping[str, Verdict]
