"""QUIRKS: known defects of machines: where they occur, their symptoms and remedies. One table; it decides nothing.

A row objects to options of a plan, limits the scores of one call, sets an environment variable, or names a cure
that is built in (tests/compat/planning/test_quirk_table.py lists where). The rows were collected from the threads named as
their source; each is a claim that the self-test of the user's machine confirms or refutes.
"""

from __future__ import annotations

import re
from typing import Final

from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdicts
from app.compat.planning.card_quirks import CARDS
from app.compat.planning.common_quirks import COMMON
from app.compat.planning.metal_quirks import METAL
from app.compat.planning.quirk import Quirk

QUIRKS: Final[tuple[Quirk, ...]] = (*METAL, *CARDS, *COMMON)


def applying_rows(hardware: Hardware, verdicts: Verdicts, rows: tuple[Quirk, ...] = QUIRKS) -> tuple[Quirk, ...]:
    """Return the rows that apply to this machine, except those that its self-test disproved."""
    return tuple(row for row in rows if row.applies(hardware) and not is_retired(row, verdicts))


def is_retired(row: Quirk, verdicts: Verdicts) -> bool:
    verdict = verdicts.get(Subject.row(row.id))
    return verdict is not None and verdict.passed


def match_symptom(text: str, rows: tuple[Quirk, ...] = QUIRKS) -> Quirk | None:
    """Return the defect whose symptom the error message shows, if any."""
    return next((row for row in rows if row.symptom and re.search(row.symptom, text, re.DOTALL)), None)
