"""Check a machine before it is believed: both starters part by part, then the self-test; in idle time, in small pieces."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from importlib import import_module
from typing import Final

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict, learn
from app.compat.selftest import run
from app.compat.selftest.probes import Probe
from app.engine.models.loading.release_memory import release
from app.engine.models.voice_families import FAMILIES

SKIPPED: Final = "HEARTH_SKIP_CHECK"
"""With this environment variable nothing is checked in idle time. The tests start hundreds of engines."""


def questions(hardware: Hardware) -> tuple[Probe, ...]:
    """List all that is asked of a machine. The starters come first: they are quick, and speak for every model. Then what makes a card or a Mac
    several times quicker, its layers in half precision before all, and last what shows defects one by one."""
    # They take seconds to import, which only a check may wait for.
    from app.compat.selftest import channels_last, padded_heads
    from app.engine.session import few_lines_check, packed_weights_check, starter_parts

    own = (import_module(family.checks) for family in FAMILIES.values() if family.checks)
    parts = (few_lines_check, padded_heads, channels_last, packed_weights_check, *own, run)
    rest = [each for part in parts for each in part.questions(hardware)]
    return (*starter_parts.questions(hardware), *sorted(rest, key=lambda each: not each.subject.name.startswith("linear/")))


class MachineCheck:
    """What a session has found out about its machine by itself, and how far it is."""

    def __init__(self, home: Home, hardware: Hardware) -> None:
        self._home, self._hardware = home, hardware
        self._unanswered: set[Subject] = set()
        """Asked again at the next start only: where memory never suffices, each job would be followed by the same questions."""
        self.found: dict[Subject, Verdict] = {}
        """Also what could not be stored."""
        self.progress = (0, 0)
        """Questions that are answered, of how many; (0, 0) until they are counted."""

    def run(self, verdicts: dict[Subject, Verdict]) -> Iterator[None]:
        """Ask what no check has answered, and add each verdict at once, so that an interruption loses only the current one. Yield
        often: whoever has something better to do closes this generator."""
        if self._hardware.pretended or SKIPPED in os.environ:
            return
        try:
            probes = questions(self._hardware)
        except Trouble:  # nothing runs on this machine, which each request reports
            return
        open_ = [each for each in probes if each.subject not in verdicts and each.subject not in self._unanswered]
        known = len(probes) - len(open_)
        asked: set[Subject] = set()
        try:
            for done, verdict in run.judge(self._hardware, open_, questions):
                if verdict is not None:
                    self._add(verdict, verdicts)
                asked.update(each.subject for each in open_[:done])
                self.progress = known + done, len(probes)
                yield
        except Exception:  # Whatever it is, other idle work goes on.
            traceback.print_exc()
            asked.update(each.subject for each in open_)
            self.progress = (0, 0)
        self._unanswered |= asked - verdicts.keys()
        release()

    def _add(self, verdict: Verdict, verdicts: dict[Subject, Verdict]) -> None:
        self.found[verdict.subject] = verdicts[verdict.subject] = verdict
        try:
            verdicts.update(learn(self._home.verdicts, self._hardware, verdict))
        except OSError:  # a full disk: it holds for this session
            traceback.print_exc()
