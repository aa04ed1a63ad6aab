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


def list_quirks(hardware: Hardware, verdicts: Verdicts) -> tuple[Quirk, ...]:
    """List the quirks of this machine, except those that its self-test disproved."""
    return tuple(each for each in QUIRKS if each.applies(hardware) and not is_retired(each, verdicts))


def is_retired(quirk: Quirk, verdicts: Verdicts) -> bool:
    verdict = verdicts.get(Subject.row(quirk.id))
    return verdict is not None and verdict.passed


def match_symptom(text: str) -> Quirk | None:
    """Return the defect whose symptom the error message shows, if any."""
    return next((each for each in QUIRKS if each.symptom and re.search(each.symptom, text, re.DOTALL)), None)
