"""hearth bench machines, its second half: dask's scheduler with up to 200 pretended helpers, whose engines only wait. No dask here."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from app.base import paths
from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.machines.cluster.dask_setup import TASKS_MOST
from app.machines.hub import Hub, TaskEnd, main_folder
from app.machines.joining import certificates
from app.machines.side_process import SideProcess
from app.machines.tasks.portable import Portable
from bench.report import Bound, Column, Found, Measured, Table

if TYPE_CHECKING:
    from app.machines.joining.register import Register

PRETENDED: Final = "bench.pretended_helpers"
"""It imports dask, so it runs in a process of its own."""
SPEEDS: Final = (1.0, 2.0, 4.0)
"""The helpers have these in turn: mixed hardware."""
LONGEST: Final = 10.0
"""The longest task is so many times as long as the shortest."""
SEED: Final = 17
IDEAL: Final = 1.15
JOINING_S: Final = 300
LOOK_S: Final = 0.1
PLACED: Final = Table(
    "placed", "", ("helpers",),
    (
        Column("seconds", "s in all", ".1f"), Column("ideal_s", "ideal s", ".1f"), Column("ratio", "/ ideal", ".3f", compared=True),
        Column("joined_s", "joining s", ".1f"), Column("scheduler_s", "scheduler ms", ".2f", 1e3, compared=True),
        Column("hub_s", "keeper ms", ".2f", 1e3, compared=True), Column("helpers_s", "helpers ms", ".2f", 1e3),
        Column("memory", "scheduler MiB", ".0f", 1 / (1 << 20)),
    ), width=34,
)  # fmt: skip
"""The scheduler's column counts milliseconds of processor time for each task."""


def measure_pretended(folder: Path, helpers: int, tasks: int, seconds: float) -> Iterator[Found]:
    home = paths.home(folder).create()
    speeds = [SPEEDS[number % len(SPEEDS)] for number in range(helpers)]
    lengths = draw_lengths(tasks, seconds * sum(speeds))
    hub = Hub(home, "127.0.0.1")
    try:
        folders = [let_in(home, hub.register, number) for number in range(helpers)]
        given = {
            "main": f"tls://127.0.0.1:{hub.port}",
            "helpers": [{"folder": str(each), "speed": speed} for each, speed in zip(folders, speeds, strict=True)],
        }
        began_s = time.perf_counter()
        side = SideProcess(PRETENDED, lambda: given, home.logs / "pretended.log", lambda message: None)
        try:
            wait_until_online(hub, helpers)
            joined_s = time.perf_counter() - began_s
            row = run(hub, lengths, side.pid)
        finally:
            side.close()
    finally:
        hub.close()
    ideal_s = sum(lengths) / sum(speeds)
    name = f"{helpers} pretended helpers"
    yield Measured(
        PLACED, {"helpers": f"{name}, {tasks} tasks", **row, "ideal_s": ideal_s, "ratio": row["seconds"] / ideal_s, "joined_s": joined_s}
    )
    yield Bound(f"{name}: all tasks, as multiples of the ideal time", row["seconds"] / ideal_s, most=IDEAL)


def draw_lengths(tasks: int, total_s: float) -> list[float]:
    """Draw so many lengths, the longest ten times the shortest, with this sum: seconds at speed 1."""
    drawn = random.Random(SEED)
    lengths = [LONGEST ** drawn.random() for _ in range(tasks)]
    return [each * total_s / sum(lengths) for each in lengths]


def let_in(home: Home, register: Register, number: int) -> Path:
    """Make a helper that has joined, without the conversation."""
    folder = home.scratch / f"helper-{number}"
    id_, certificate = certificates.sign_request(main_folder(home), certificates.make_request(folder))
    register.add(id_, f"pretended {number}")
    certificates.keep_membership(folder, certificates.identity_in(main_folder(home)).authority.read_text(), certificate)
    return folder


def wait_until_online(hub: Hub, helpers: int) -> None:
    limit = time.monotonic() + JOINING_S
    while sum(each.online and bool(each.models) for each in hub.list_machines()) < helpers:
        if time.monotonic() > limit:
            raise Trouble(say("bench.no-helpers", "Only some of {n} pretended helpers could join. Try fewer.", n=helpers))
        time.sleep(LOOK_S)


def run(hub: Hub, lengths: Sequence[float], helpers_pid: int | None) -> dict[str, Any]:
    """Have all tasks done; what the scheduler's process, this one and that of all helpers needed for it is told for each task."""
    scheduler, own, helpers = psutil.Process(hub.pid), psutil.Process(), psutil.Process(helpers_pid)
    before_s = [used_s(each) for each in (scheduler, own, helpers)]
    began_s = time.perf_counter()
    handing = HandingOut(hub, lengths, [each.id for each in hub.list_machines()])
    handing.begin()
    handing.done.wait()
    seconds = time.perf_counter() - began_s
    scheduler_s, hub_s, helpers_s = (used_s(each) - before for each, before in zip((scheduler, own, helpers), before_s, strict=True))
    return {
        "seconds": seconds,
        "scheduler_s": scheduler_s / len(lengths),
        "hub_s": hub_s / len(lengths),
        "helpers_s": helpers_s / len(lengths),
        "memory": scheduler.memory_info().rss,
    }


def used_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@dataclass
class HandingOut:
    """Hand tasks out as the spreader does: in their order, to each machine one and another that lies ready there; at the end an idle
    machine joins in what another has, first in what was given last. How long a task is and how fast a machine, it does not know."""

    hub: Hub
    lengths: Sequence[float]
    machines: Sequence[str]
    done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 0
    _at: dict[int, list[str]] = field(default_factory=dict)
    """The machines that have a task stand by it, in the order in which the tasks were given."""
    _given: dict[str, list[int]] = field(default_factory=dict)
    """It holds what each machine has: it is at the first, the second lies ready."""

    def begin(self) -> None:
        with self._lock:
            self._given = {machine: [] for machine in self.machines}
            for _ in range(TASKS_MOST):
                for machine in self.machines:
                    self._give(machine)

    def _give(self, machine: str) -> None:
        if self._next < len(self.lengths):
            place, self._next = self._next, self._next + 1
            self._at[place] = []
        elif self._given[machine] or not self._at:
            return
        else:
            place = max(self._at, key=lambda place: (-len(self._at[place]), place))
        self._at[place].append(machine)
        self._given[machine].append(place)
        body = f'{{"request": {{"seconds": {self.lengths[place]}}}, "files": {{}}}}'
        self.hub.submit(
            name_task(place, machine), Portable(body, {}, ""), machine, lambda machine, event: None, lambda end: self._take(place, end)
        )

    def _take(self, place: int, end: TaskEnd) -> None:
        with self._lock:
            freed = [*self._at.get(place, ())]
            for machine in freed:
                self._take_back(place, machine)
            self._at.pop(place, None)
            if not self._at and self._next == len(self.lengths):
                self.done.set()
            for machine in freed:
                self._give(machine)

    def _take_back(self, place: int, machine: str) -> None:
        """It is nothing to the hub where the task has ended there."""
        self._at[place].remove(machine)
        self._given[machine].remove(place)
        self.hub.stop(name_task(place, machine))


def name_task(place: int, machine: str) -> str:
    return f"task-{place}-{machine[:12]}"
