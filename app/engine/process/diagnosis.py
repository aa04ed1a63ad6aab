"""Why an engine died, from its exit code and its last words. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from app.compat.machine.meter import Reading
from app.compat.machine.verdicts import Fault
from app.compat.planning.quirk_table import match_symptom
from app.sentence import Sentence, say

ASKED_TO_END = frozenset(-getattr(signal, name, 0) for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")) - {0}
"""What a person or the system sends to end a program: no calculation dies of these."""


@dataclass(frozen=True, slots=True)
class Death:
    sentence: Sentence
    fault: Fault | None
    """None: ended from outside, so that there is nothing to learn from it."""
    quirk: str = ""
    """The row that foretold it, where its last words were known."""


def diagnose(exit_code: int | None, last_words: str, wedged: bool = False, last: Reading | None = None) -> Death:
    """`last`: the memory as it was a moment before."""
    if wedged:
        return Death(
            say("death.wedged", "The engine stopped answering in the middle of a step and was ended."), "crash"
        )
    if quirk := match_symptom(last_words):
        return Death(quirk.sentence, "crash", quirk.id)
    killed = exit_code == -getattr(signal, "SIGKILL", 9)
    roomy = last is not None and last.system_free_bytes > last.system_bytes // 4 > 0
    if exit_code in ASKED_TO_END or (killed and roomy):
        return Death(say("death.outside", "Something outside Hearth ended the engine; memory was not short."), None)
    if killed:
        return Death(say("death.killed", "The system ended the engine, most often because memory ran out."), "memory")
    if exit_code == -getattr(signal, "SIGABRT", 6):
        return Death(
            say("death.aborted", "The graphics system aborted the engine in the middle of a calculation."), "crash"
        )
    if exit_code is not None and exit_code < 0:
        return Death(say("death.signal", "The engine was ended by signal {number}.", number=-exit_code), "crash")
    return Death(
        say("death.exit", "The engine ended by itself with code {code}; its log says more.", code=exit_code or 0),
        "crash",
    )
