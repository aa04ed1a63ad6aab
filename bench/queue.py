"""hearth bench queue: what a hundred queued jobs cost beside one, and how much of it is the keeper's own."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from app.base import paths
from app.base.sentence import fill
from app.base.trouble import Trouble
from app.engine.jobs.events import Failed, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.keeper import Keeper
from bench.numbers import count
from bench.report import Bound, Column, Found, Measured, Table

JOB: Final = PictureRequest("a red circle on a blue background", "starter-painter", steps=1, seed=1, preview_every=0)
"""No real job is smaller: one step of the starter painter, and its picture."""
KEEPERS_MS: Final = 20.0
GROWTH: Final = 1.1
QUEUE: Final = Table(
    "queue", "", ("jobs",),
    (
        Column("seconds", "s in all", ".2f"), Column("each_s", "ms a job", ".1f", 1e3, compared=True),
        Column("keeper_s", "keeper ms", ".1f", 1e3, compared=True), Column("submit_s", "queueing ms", ".1f", 1e3, compared=True),
    ), width=30,
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=count, default=100, metavar="N", help="jobs that are queued at once (default: 100)")
    parser.add_argument(
        "--singles", type=count, default=10, metavar="N", help="jobs that are asked for one by one, beside them (default: 10)"
    )


def measure(args: argparse.Namespace) -> Iterator[Found]:
    home = paths.home(args.home).create()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch, ignore_cleanup_errors=True) as scratch:
        keeper = Keeper(paths.home(Path(scratch) / "home"))
        try:
            run_jobs(keeper, 2)  # loads the model
            ones = [run_jobs(keeper, 1) for _ in range(args.singles)]
            many = run_jobs(keeper, args.jobs)
        finally:
            keeper.close()
    one = {name: median(each[name] for each in ones) for name in many}
    yield Measured(QUEUE, {"jobs": fill("one job, {n} {n:time|times}", {"n": args.singles}), **one})
    yield Measured(QUEUE, {"jobs": fill("{n} {n:job|jobs} at once", {"n": args.jobs}), **many})
    yield Bound("ms of the keeper's processor time for each queued job", many["keeper_s"] * 1e3, most=KEEPERS_MS)
    yield Bound(f"{args.jobs} jobs, as multiples of {args.jobs} times one", many["each_s"] / one["each_s"], most=GROWTH)


def run_jobs(keeper: Keeper, count: int) -> dict[str, float]:
    """Queue so many jobs and wait for the last. The keeper is this process: its processor time is what the jobs cost beside the engine."""
    keepers, began_s = psutil.Process(), time.perf_counter()
    before = keepers.cpu_times()
    jobs = [keeper.submit(JOB) for _ in range(count)]
    queued_s = time.perf_counter() - began_s
    for job in jobs:
        end = list(keeper.follow(job.id))[-1]
        if isinstance(end, Failed):
            raise Trouble(end.sentence, *end.objections)
        assert isinstance(end, Finished)
    seconds, after = time.perf_counter() - began_s, keepers.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return {"seconds": seconds, "each_s": seconds / count, "keeper_s": used_s / count, "submit_s": queued_s / count}
