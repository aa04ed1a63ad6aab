"""A machine that helps, as the main machine sees it: what of its own words about itself is believed, and what came of what it was given."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.engine.jobs.events import Event, Failed, Step
from app.machines.joining.register import clean_line
from app.machines.tasks.portable_models import has_model

FREE_MOST: Final = 64 << 40
"""A machine may say that at most so many bytes of memory are free; more is no figure."""


@dataclass(frozen=True, slots=True)
class HelpingMachine:
    id: str
    name: str
    online: bool = False
    resting: bool = False
    """It gets no work, as the owner of this machine wants."""
    paused: bool = False
    """Its own owner paused it, or work of his goes first."""
    card: str = ""
    free_bytes: int = 0
    models: frozenset[str] = frozenset()
    fetches: bool = False
    """Its owner lets it fetch models."""
    fetching: str = ""
    """It fetches the model of this name now."""
    fetched: float = 0.0
    """This share of that model has arrived."""
    lack: str = ""
    """It says why the last model did not come: no-room or failed."""
    tasks: tuple[str, ...] = ()
    """It has these tasks now."""
    doing: str = ""
    """The first of them has this prompt or script."""
    done: int = 0
    """So many of its tasks arrived whole since this machine's start."""
    step: Step | None = None
    """It has come so far with the first of them."""
    why: Sentence | None = None
    """It was given the first of them for this reason."""
    refused: Sentence | None = None
    """It may not come for this reason, as its versions are others."""
    silent: bool = False
    """It has said nothing of its tasks for too long."""
    left: bool = False
    """Its owner ended the pairing."""
    failed: Sentence | None = None
    """It says why nothing of its latest task could be used."""
    cluster: str = ""
    """The Dask cluster whose worker it is has this address; empty: it was paired."""


def is_at_work(machine: HelpingMachine) -> bool:
    return machine.online and not (machine.paused or machine.resting or machine.silent)


def is_able(machine: HelpingMachine, model: str) -> bool:
    """`model`: by its name for other machines."""
    return is_at_work(machine) and has_model(machine.models, model)


def read_facts(given: object) -> dict[str, Any]:
    """Return what a helper says of itself, with what is odd left out."""
    values = given if isinstance(given, dict) else {}
    models, free_bytes, fetched = values.get("models"), values.get("free_bytes"), values.get("fetched")
    return {
        "paused": values.get("paused") is True,
        "card": clean_line(values.get("card", ""), 100),
        "free_bytes": free_bytes if isinstance(free_bytes, int) and 0 <= free_bytes <= FREE_MOST else 0,
        "fetches": values.get("fetches") is True,
        "fetching": str(values.get("fetching", ""))[:100],
        "fetched": min(1.0, max(0.0, fetched)) if isinstance(fetched, float) and fetched == fetched else 0.0,
        "left": values.get("left") is True,
        "lack": lack if (lack := values.get("lack")) in ("no-room", "failed") else "",
        "models": frozenset(each[:100] for each in (models if isinstance(models, list | tuple) else ())[:1000] if isinstance(each, str)),
    }


SILENT_S: Final = 300.0
"""A step takes seconds, loading a model a minute or two; who says nothing of its tasks for so long hangs, or is too slow to wait for."""
LOST_MOST: Final = 3
"""A machine may be lost so often in the middle of one job, as the job may be what it dies of."""


class Judged:
    """Whoever takes results in says what they are. Any thread may call; each change is one step."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        """It counts tasks that arrived whole since this machine's start, by machine."""
        self.failed: dict[str, Sentence] = {}
        """It says why nothing of a machine's latest task can be used."""
        self._heard_s: dict[str, float] = {}
        """A machine last said something of its tasks at this time."""
        self.unable: defaultdict[str, set[str]] = defaultdict(set)
        """These machines failed at a job, and get it no more."""
        self._here: set[str] = set()
        """Only the engine here does these jobs."""
        self._lost: Counter[tuple[str, str]] = Counter()

    def accept(self, machine: str) -> None:
        self.done[machine] += 1
        self.failed.pop(machine, None)

    def refuse(self, machine: str, end: Event) -> None:
        """`end`: what it said itself."""
        said = end.sentence if isinstance(end, Failed) else say("helper.junk", "it sent something else than was asked for")
        self.failed[machine] = say("helper.failed", "its latest task came to nothing: {reason}", reason=said)

    def refuse_endless(self, machine: str, gone_s: float) -> None:
        """Note that a machine was at a task for longer than anybody waits."""
        self.refuse(machine, Failed(say("helper.endless", "it did not end within {time}", time=word_duration(gone_s))))

    def hear(self, machine: str) -> None:
        """Note that a machine said something of its tasks, or was given one."""
        self._heard_s[machine] = time.monotonic()

    def is_silent(self, machine: str) -> bool:
        """Tell whether a machine that has tasks has said nothing of them for too long; keep that as its failure."""
        silent = time.monotonic() - self._heard_s.get(machine, math.inf) > SILENT_S
        if silent:
            self.refuse(
                machine,
                Failed(say("helper.silent", "it said nothing for {minutes} {minutes:minute|minutes}", minutes=round(SILENT_S / 60))),
            )
        return silent

    def note_lost(self, job: str, at_it: Collection[str], machines: Iterable[HelpingMachine]) -> None:
        """Note which of the machines that were at a job went, or fell silent, in the middle of it."""
        there = {each.id for each in machines if each.online and not each.silent}
        for lost in {*at_it} - there:
            self._lost[job, lost] += 1
            if self._lost[job, lost] >= LOST_MOST:
                self.unable[job].add(lost)

    def keep_here(self, job: str) -> None:
        """Leave a job to the engine here, as a file here cannot be read or written; it says what is wrong."""
        self._here.add(job)

    def is_kept_here(self, job: str) -> bool:
        return job in self._here

    def failed_at(self, job: str) -> bool:
        """Tell whether others are kept from a job, all or some."""
        return job in self._here or bool(self.unable.get(job))

    def tidy(self, is_live: Callable[[str], bool]) -> None:
        """Forget jobs that have ended: one that is resumed may go to any machine again."""
        for job in [each for each in {*self.unable, *self._here, *(lost for lost, _ in self._lost)} if not is_live(each)]:
            self.unable.pop(job, None)
            self._here.discard(job)
            self._lost = Counter({key: count for key, count in self._lost.items() if key[0] != job})
