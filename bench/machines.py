"""hearth bench machines: pictures a minute with real helpers on this machine, and what a task costs beside its work. No dask here."""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

from app.base import paths
from app.base.extras import require_machines
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.keeper import Keeper
from bench.numbers import count
from bench.report import Bound, Column, Found, Measured, Remark, Table
from bench.start import start

if TYPE_CHECKING:
    from app.machines.hub import Hub, TaskEnd

MODEL: Final = "starter-painter"
SMALLEST: Final = PictureRequest("a red circle on a blue background", MODEL, steps=1, seed=1, preview_every=0)
WAIT_S: Final = 240
LOOK_S: Final = 0.05
OVERHEAD_MS: Final = 50.0
PICTURES: Final = Table(
    "pictures", "", ("helpers",),
    (
        Column("seconds", "s in all", ".1f"), Column("minute", "a minute", ".1f", compared=True), Column("alone", "x alone", ".2f"),
        Column("here", "made here", ".0f"),
    ), width=30,
)  # fmt: skip
TASK: Final = Table(
    "task", "a picture of one step", ("kind",),
    (
        Column("here_s", "here ms", ".1f", 1e3), Column("seconds", "there ms", ".1f", 1e3), Column("most_s", "most ms", ".1f", 1e3),
        Column("overhead_s", "more ms", ".1f", 1e3, compared=True),
    ), width=34,
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--helpers", type=count, nargs="*", default=[1, 2, 4], metavar="N", help="real helpers (default: 1 2 4)")
    parser.add_argument("--pictures", type=count, default=16, metavar="N", help="of a batch that they share (default: 16, the most)")
    parser.add_argument("--steps", type=count, default=20, metavar="N", help="of each picture (default: 20)")
    parser.add_argument("--singles", type=count, default=30, metavar="N", help="tasks of one step, one by one (default: 30)")
    parser.add_argument(
        "--pretended", type=count, nargs="*", default=[4, 50, 200], metavar="N", help="pretended helpers (default: 4 50 200)"
    )
    parser.add_argument("--tasks", type=count, default=10_000, metavar="N", help="of mixed length for them (default: 10000)")
    parser.add_argument("--seconds", type=count, default=120, metavar="S", help="that they would take at best (default: 120)")


def measure(args: argparse.Namespace) -> Iterator[Found]:
    require_machines()
    from bench.pretended_machines import measure_pretended

    home = paths.home(args.home).create()
    yield Remark("All on this machine, over the loopback, with TLS. Each engine uses one thread; the batch is shared with the engine here.")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch, ignore_cleanup_errors=True) as scratch:
        if args.helpers:
            yield from measure_helpers(args, Path(scratch))
        for number in args.pretended:
            yield from measure_pretended(Path(scratch) / f"pretended-{number}", number, args.tasks, args.seconds)


def measure_helpers(args: argparse.Namespace, scratch: Path) -> Iterator[Found]:
    from app.machines.hub import Hub
    from app.machines.spreader import Spreader

    keeper = Keeper(paths.home(scratch / "main"))
    with ExitStack() as ends:
        ends.callback(keeper.close)
        hub = Hub(keeper.home, "127.0.0.1")
        ends.callback(hub.close)
        paint(keeper, args, 0)  # loads the model
        alone = paint(keeper, args, 1)
        yield measured("none", alone, alone, args)
        for there in range(max(args.helpers)):
            ends.enter_context(lend(hub, scratch / "helpers" / str(there)))
            for number in range(2):
                run_task(hub, f"first-{there}-{number}", hub.list_machines()[there].id)  # loads the model
            if there == 0:
                yield from measure_task(keeper, hub, args.singles)
            if there + 1 in args.helpers:
                spreader = Spreader(keeper, hub).start()
                try:
                    yield measured(str(there + 1), paint(keeper, args, there + 2), alone, args)
                finally:
                    spreader.close()


def measured(helpers: str, found: tuple[float, int], alone: tuple[float, int], args: argparse.Namespace) -> Measured:
    seconds, here = found
    minute = args.pictures / seconds * 60
    return Measured(
        PICTURES, {"helpers": f"helpers: {helpers}", "seconds": seconds, "minute": minute, "alone": alone[0] / seconds, "here": here}
    )


def paint(keeper: Keeper, args: argparse.Namespace, seed: int) -> tuple[float, int]:
    """Paint a batch; return its seconds, and how many of its pictures were made here."""
    request = PictureRequest(SMALLEST.prompt, MODEL, steps=args.steps, batch=args.pictures, seed=1000 * seed, preview_every=0)
    began_s = time.perf_counter()
    job = keeper.submit(request).id
    expect_finished(list(keeper.follow(job))[-1])
    seconds = time.perf_counter() - began_s
    return seconds, sum("machine" not in each.plan for each in keeper.shelf.list_of_job(job))


def expect_finished(event: object) -> Finished:
    if isinstance(event, Failed):
        raise Trouble(event.sentence, *event.objections)
    assert isinstance(event, Finished)
    return event


def lend(hub: Hub, root: Path) -> ExitStack:
    """Start `hearth lend` in a process of its own and wait until it can work; the result ends it."""
    known = {each.id for each in hub.list_machines()}
    ends = ExitStack()
    process = ends.enter_context(start(["lend", str(hub.open_pairing().state.code)], root))
    limit = time.monotonic() + WAIT_S
    while not any(each.id not in known and each.online and MODEL in each.models and not each.paused for each in hub.list_machines()):
        if time.monotonic() > limit or process.poll() is not None:
            ends.close()
            raise Trouble(say("bench.no-helper", "A helper did not start. Run it by hand to see why: {hearth} lend CODE."))
        time.sleep(LOOK_S)
    return ends


def measure_task(keeper: Keeper, hub: Hub, singles: int) -> Iterator[Found]:
    """Have the smallest real task done here and by a helper in turn. What it takes there and not here is what sending it costs."""
    helper, here_s, there_s = hub.list_machines()[0].id, list[float](), list[float]()
    for number in range(singles):
        began_s = time.perf_counter()
        expect_finished(list(keeper.follow(keeper.submit(SMALLEST).id))[-1])
        here_s.append(time.perf_counter() - began_s)
        there_s.append(run_task(hub, f"single-{number}", helper))
    here, there = median(here_s), median(there_s)
    row = {"kind": f"one by one, {singles} times", "here_s": here, "seconds": there, "most_s": max(there_s), "overhead_s": there - here}
    yield Measured(TASK, row)
    yield Bound("ms that a task takes there and not here", (there - here) * 1e3, most=OVERHEAD_MS)


def run_task(hub: Hub, name: str, machine: str) -> float:
    """Return the seconds from a task's submission to its picture's arrival."""
    from app.machines.tasks.portable import pack

    ended = threading.Event()
    ends: list[TaskEnd] = []  # whose name is known to the type checker alone

    def end(told: TaskEnd) -> None:
        ends.append(told)
        ended.set()

    began_s = time.perf_counter()
    hub.submit(name, pack(SMALLEST), machine, lambda machine, event: None, end)
    if not ended.wait(WAIT_S):
        raise Trouble(say("bench.no-helper", "A helper did not start. Run it by hand to see why: {hearth} lend CODE."))
    expect_finished(ends[0].event)
    return time.perf_counter() - began_s
