"""Helpers in a time of their own, placed by the real rules of SharedJob: what each rule gains, with the others in place."""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from app.engine.jobs.events import Finished
from app.machines import shared_job
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import TaskEnd
from app.machines.outlook import Outlook, put_in_order
from app.machines.shared_job import SharedJob

PIECE_S, SLOW, DIES_S, AWAY_S, TOLD_S, LOOKS = 30.0, 0.1, 60.0, 30.0, 30.0, 15
"""A quick helper takes so long for a piece, and the slow one is so quick; one dies so often, and for so long; what is made so far is sent
so often; the queue is looked at so many times while a piece is made."""
WAY_S = 0.1
"""A task takes so long on its way, and so do its results."""
FINISHED = Finished((), 1.0, 1.0, "steps", 0)


@dataclass(frozen=True)
class Case:
    helpers: int
    pieces: int
    able: int = 0
    """So many of the helpers have the model of a second job, which has as many pieces for each of them; 0: there is none."""
    dies: bool = False
    piece_s: float = PIECE_S


@dataclass
class Machine:
    id: str
    speed: float
    online: bool = True
    tasks: list[str] = field(default_factory=list)
    """It is at the first of them."""


class Pieces:
    """Nothing but places, of which some are made."""

    def __init__(self, size: int) -> None:
        self.places, self.made = tuple(range(size)), set[int]()
        self.whole = False

    def is_made(self, folder: object, place: int) -> bool:
        return place in self.made

    def ask_for(self, place: int) -> Any:
        return SimpleNamespace(with_model=lambda model: place)

    def list_begun(self, folder: object, place: int) -> dict[str, Path]:
        return {}

    def name(self, place: int) -> str:
        return str(place)

    def accept(self, place: int, files: object) -> dict[str, str]:
        return {"": ""}

    def tell(self, place: int, path: object) -> int:
        return place

    @property
    def complete(self) -> bool:
        return len(self.made) == len(self.places)


class Simulation:
    """A hub, a keeper and a clock."""

    def __init__(self, case: Case, in_order: bool = True, goes_on: bool = True) -> None:
        """`in_order`: a machine that is done sooner, by its own forecast, comes first. `goes_on`: what is half made goes on elsewhere."""
        self.case, self.goes_on, self.now_s, self.worked_s = case, goes_on, 0.0, 0.0
        draw = random.Random(17)
        self._draw, self._counts = draw, count()
        self._coming: list[tuple[float, int, Callable[[], None], bool]] = []
        self.machines = {str(at): Machine(str(at), SLOW if at == 0 else draw.uniform(0.8, 1.25)) for at in range(case.helpers)}
        self._tasks: dict[str, tuple[str, Any, Callable[[TaskEnd], None]]] = {}
        self._begun: dict[str, float] = {}
        """It holds since when a task is under way."""
        self._done_s: dict[Any, float] = {}
        """It holds what is made of each piece, in seconds at speed 1, as it was last told."""
        self.name, self.judged = str, SimpleNamespace(accept=lambda id_: None)
        outlooks = {each.id: Outlook("fits", True, case.piece_s / each.speed) for each in self.machines.values()}
        listed = [HelpingMachine(id_, id_) for id_ in self.machines]
        self._order = [each.id for each in (put_in_order(listed, outlooks) if in_order else listed)]
        """What machines say of a piece stays as it is, so they are put in order once."""
        self._seen: dict[str, HelpingMachine] = {}
        asking: Any = SimpleNamespace(choose=lambda job, request, machines: machines, find=lambda job, machine: outlooks[machine])
        self.jobs: list[tuple[SharedJob, set[str]]] = []
        wanted = [(case.able * case.pieces // case.helpers, {str(at) for at in range(case.able)})] if case.able else []
        for number, (size, able) in enumerate([*wanted, (case.pieces, {*self.machines})]):
            pieces = Pieces(size)
            keeper: Any = SimpleNamespace(
                folder=lambda job: Path(),
                home=SimpleNamespace(scratch=Path()),
                take_over=lambda job, part, *_, made=pieces.made: made.add(part),
            )
            job: Any = SimpleNamespace(id=str(number))
            at: Any = SharedJob(keeper, self, asking, job, pieces=pieces, model="model", here=Outlook(), ended=lambda: None, unable=set())  # type: ignore[arg-type]
            self.jobs.append((at, able))

    @property
    def ideal_s(self) -> float:
        """All work divided by all speed, and no less than one piece takes the quickest machine."""
        speeds = [each.speed for each in self.machines.values()]
        return max(self.total_s / sum(speeds), self.case.piece_s / max(speeds))

    @property
    def total_s(self) -> float:
        """All work, at speed 1."""
        return self.case.piece_s * sum(len(at.pieces.places) for at, _ in self.jobs)

    def run(self) -> float:
        """Return when the last piece was there."""
        if self.case.dies:
            self._after(DIES_S, self._kill)
        self._after(0.0, self._tick)
        while not all(each.pieces.complete for each, _ in self.jobs):
            self.now_s, _, happen, noticed = heapq.heappop(self._coming)
            happen()
            if noticed:
                self._give_away()
        return self.now_s

    def _tick(self) -> None:
        self._after(self.case.piece_s / LOOKS, self._tick)

    def _after(self, wait_s: float, happen: Callable[[], None], noticed: bool = True) -> None:
        heapq.heappush(self._coming, (self.now_s + wait_s, next(self._counts), happen, noticed))

    def _give_away(self) -> None:
        """As the spreader does: what waits first, then what somebody is at."""
        for joins in (False, True):
            for at, able in self.jobs:
                if not at.pieces.complete or at.busy:
                    others = set[str]().union(*(each.busy for each, _ in self.jobs if each is not at))
                    at.give_away([self._see(id_) for id_ in self._order if id_ in able and self.machines[id_].online], others, False, joins)

    def _see(self, id_: str) -> HelpingMachine:
        tasks = (*self.machines[id_].tasks,)
        if (seen := self._seen.get(id_)) is None or seen.tasks != tasks:
            seen = self._seen[id_] = HelpingMachine(id_, id_, True, tasks=tasks)
        return seen

    # The hub.

    def submit(self, id_: str, portable: Any, machine: str, tell: object, end: Any, *, why: object, begun: object) -> None:
        self._tasks[id_] = machine, (id_.split("-")[0], portable), end
        self.machines[machine].tasks.append(id_)
        if len(self.machines[machine].tasks) == 1:
            self._after(WAY_S, lambda: self._begin(id_))

    def _begin(self, id_: str) -> None:
        if id_ not in self._tasks or id_ in self._begun:
            return
        machine, piece, _ = self._tasks[id_]
        self._begun[id_] = self.now_s
        left_s = (self.case.piece_s * self._draw.uniform(0.8, 1.25) - self._done_s.get(piece, 0.0)) / self.machines[machine].speed
        self._after(max(0.0, left_s), lambda: self._end(id_), noticed=False)

    def _end(self, id_: str) -> None:
        if id_ not in self._tasks:
            return
        machine, _, end = self._tasks[id_]
        self._forget(id_)
        self._after(WAY_S, lambda: end(TaskEnd(id_, machine, FINISHED, {})))

    def _forget(self, id_: str) -> None:
        machine, piece, _ = self._tasks.pop(id_)
        if (since_s := self._begun.pop(id_, None)) is not None:
            gone_s = self.now_s - since_s
            self.worked_s += gone_s * self.machines[machine].speed
            if self.goes_on:
                self._done_s[piece] = max(self._done_s.get(piece, 0.0), gone_s // TOLD_S * TOLD_S * self.machines[machine].speed)
        tasks = self.machines[machine].tasks
        tasks.remove(id_)
        if tasks:
            first = tasks[0]
            self._begin(first)

    def stop(self, id_: str) -> None:
        if id_ in self._tasks:
            self._forget(id_)

    def _kill(self) -> None:
        """Kill one that is not the slow one, which would be no loss."""
        self._after(DIES_S, self._kill)
        victim = self.machines[str(self._draw.randrange(1, len(self.machines)))]
        if victim.online:
            victim.online = False
            for task in [*victim.tasks]:
                self._tasks[task] = victim.id, self._tasks[task][1], lambda end: None
            for task in [*victim.tasks][::-1]:
                self._forget(task)
            self._after(AWAY_S, lambda: setattr(victim, "online", True))


@dataclass(frozen=True)
class Rule:
    """One of Hearth's own, which Dask has not."""

    name: str
    without: dict[str, Any] = field(default_factory=dict)
    """These stand in its place in shared_job where it is left out."""
    options: dict[str, bool] = field(default_factory=dict)
    """The simulation is run with these instead."""


def choose_none(*_: object, **__: object) -> list[Any]:
    return []


RULES = (
    Rule("a second piece lies ready", {"AHEAD": 0}),
    Rule("the last ones are made twice", {"choose_joined": choose_none}),
    Rule("twice only where that is sooner", {"find_left_s": lambda other: math.inf}),
    Rule("the soonest done comes first", options={"in_order": False}),
    Rule("what is half made goes on elsewhere", options={"goes_on": False}),
)


ALONE = Rule("Dask alone", {"choose_joined": choose_none}, {"in_order": False, "goes_on": False})
"""It lets a second task lie ready at each worker, and has none of the other rules."""


def simulate(case: Case, rule: Rule | None = None) -> tuple[float, float]:
    """Return the time and the work that a case takes, each divided by the least possible; `rule`: the one that is left out."""
    with ExitStack() as patched:
        simulation: Any = None
        for name, value in {
            "pack": lambda request, begun: request,
            "replace": lambda given, **values: given if isinstance(given, int) else replace(given, **values),
            "begun": SimpleNamespace(set_aside=lambda files, folder: {}),
            "time": SimpleNamespace(monotonic=lambda: simulation.now_s if simulation is not None else 0.0),
            **(rule.without if rule is not None else {}),
        }.items():
            patched.enter_context(mock.patch.object(shared_job, name, value))
        simulation = Simulation(case, **(rule.options if rule is not None else {}))
        took_s = simulation.run()
    return took_s / simulation.ideal_s, simulation.worked_s / simulation.total_s


def count_pieces(helpers: int) -> int:
    """Each look takes longer the more there are of both, so 200 helpers have fewer each."""
    return helpers * (6 if helpers <= 50 else 3)


CASES = {
    "one ten times slower": lambda helpers: Case(helpers, count_pieces(helpers)),
    "and one dies each minute": lambda helpers: Case(helpers, count_pieces(helpers), dies=True),
    "and a model that only a quarter has": lambda helpers: Case(helpers, count_pieces(helpers), able=max(2, helpers // 4)),
    "as many pieces as machines": lambda helpers: Case(helpers, helpers),
    "one piece alone": lambda helpers: Case(helpers, 1),
    "pieces of half a second": lambda helpers: Case(helpers, count_pieces(helpers), piece_s=0.5),
    "pieces of ten minutes, one dies each minute": lambda helpers: Case(helpers, 3 * helpers, piece_s=600.0, dies=True),
}


def measure(helpers: Sequence[int]) -> Iterator[str]:
    names = ["all rules", ALONE.name, *(f"without: {rule.name}" for rule in RULES)]
    yield f"| | helpers | {' | '.join(names)} |"
    yield f"| --- | --- |{' --- |' * len(names)}"
    for name, make in CASES.items():
        for each in helpers:
            found = [simulate(make(each), rule) for rule in (None, ALONE, *RULES)]
            yield f"| {name} | {each} | {' | '.join(f'{time:.2f} ({work:.2f})' for time, work in found)} |"


if __name__ == "__main__":
    for line in measure([int(each) for each in sys.argv[1:]] or [4, 50, 200]):
        print(line, flush=True)
