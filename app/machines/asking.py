"""Ask every machine about a request before one gets it, and choose by what they say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.engine.jobs.request import Request, to_json
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import Hub
from app.machines.outlook import Outlook, put_in_order, read_outlook

PATIENCE_S: Final = 1.0
"""For the first answer of a machine; then it is taken as it is."""
AGAIN_S: Final = 15.0
"""After which a machine is asked again: its memory, and what it has loaded, change."""
KEPT_MOST: Final = 1024
"""Requests: those of the head of the queue, and each size of those that are too large for this computer."""


@dataclass(slots=True)
class _Asked:
    first_s: float
    latest_s: float
    outlook: Outlook | None = None


class Asking:
    """Any thread may call; answers come in the hub's."""

    def __init__(self, hub: Hub, answered: Callable[[], None]) -> None:
        """`answered` is called after each answer."""
        self._hub, self._answered = hub, answered
        self._about: dict[str, dict[str, _Asked]] = {}
        """By job and machine."""
        self._lock = threading.Lock()

    def choose(self, job: str, request: Request, machines: Sequence[HelpingMachine]) -> list[HelpingMachine]:
        """Return those that can do a job's request, the best first, without those whose answer is on its way. Its model has the name that
        other machines know. `job` names the question; it may be about none that waits."""
        now_s = time.monotonic()
        with self._lock:
            about = self._about.setdefault(job, {})
            while len(self._about) > KEPT_MOST:
                del self._about[next(iter(self._about))]
            due = [each.id for each in machines if (known := about.get(each.id)) is None or now_s - known.latest_s > AGAIN_S]
            for machine in due:
                known = about.setdefault(machine, _Asked(now_s, now_s))
                known.latest_s = now_s
            ready = [each for each in machines if about[each.id].outlook is not None or now_s - about[each.id].first_s > PATIENCE_S]
            outlooks = {id_: each.outlook for id_, each in about.items() if each.outlook is not None}
        if due:
            body = json.dumps({"request": to_json(request.without_files()), "files": {}})
            for machine in due:
                self._hub.ask(machine, job, body, self._hear)
        return put_in_order(ready, outlooks)

    def find(self, job: str, machine: str) -> Outlook | None:
        """Return what a machine said of a job."""
        with self._lock:
            about = self._about.get(job)
            known = about.get(machine) if about is not None else None
            return known.outlook if known is not None else None

    def _hear(self, machine: str, question: str, answer: object) -> None:
        with self._lock:
            about = self._about.get(question)
            known = about.get(machine) if about is not None else None
            if known is not None and (outlook := read_outlook(answer)) is not None:
                known.outlook = outlook
        self._answered()
