"""hearth bench start: from a command to a page, an engine, a first step and a first sound, through real processes."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from app.base import paths
from bench.loading import measure_loading
from bench.numbers import count
from bench.report import Column, Found, Measured, Remark, Table
from bench.warm_engine import time_warm_engine

SCRIPT: Final = "[S1] hello. good morning."
PROMPT: Final = "a red circle on a blue background"
WAIT_S: Final = 240
LOOK_S: Final = 0.02
TOP: Final = Path(__file__).resolve().parents[1]
STAGES: Final = Table(
    "stages", "seconds from the command on", ("command", "stage"),
    (Column("seconds", "median s", ".2f", compared=True), Column("least_s", "least s"), Column("most_s", "most s")), width=52,
)  # fmt: skip
EVENTS: Final = {"loading": "engine ready, model loading", "step": "first step", "sound": "first sound", "finished": "done"}
"""Each event of a command, at its first time, is the end of this stage."""

Times = dict[tuple[str, str], list[float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="times that each command is started (default: 3)")
    parser.add_argument("--no-window", action="store_true", help="without the window: what speaks and paints only")

    parser.add_argument(
        "--no-loading", action="store_true", help="without the memory of loading, which needs 5 GB of disk and 7 GB of memory"
    )


def measure(args: argparse.Namespace) -> Iterator[Found]:
    home, times = paths.home(args.home).create(), Times()
    yield Remark("Python's bytecode is compiled and files are in memory: one start of each, which does not count, comes first.")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch, ignore_cleanup_errors=True) as scratch:
        for number in range(args.rounds + 1):
            root, kept = Path(scratch) / str(number), Times() if number == 0 else times
            if not args.no_window:
                time_window(root / "open", kept)
            time_command("speak", [SCRIPT, "--model", "starter-voice"], root / "speak", kept)
            time_command("paint", [PROMPT, "--model", "starter-painter"], root / "paint", kept)
        time_warm_engine(Path(scratch) / "warm", args.rounds, times)
    for (command, stage), seconds in times.items():
        yield Measured(
            STAGES, {"command": command, "stage": stage, "seconds": median(seconds), "least_s": min(seconds), "most_s": max(seconds)}
        )
    if not args.no_loading:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch) as scratch:
            yield from measure_loading(home, Path(scratch))


@contextmanager
def start(words: list[str], root: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command of Hearth's in a home of its own; end it."""
    command = [sys.executable, "-m", "app", *words, "--home", str(root)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):  # what is measured is a start that finds its bytecode
        environment["PYTHONPYCACHEPREFIX"] = str(root.parents[1] / "bytecode")
    process = subprocess.Popen(command, cwd=TOP, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(WAIT_S)
        assert process.stdout is not None
        process.stdout.close()


def time_window(root: Path, times: Times) -> None:
    """Time the window: its address, its page, its engine."""
    began_s = time.perf_counter()

    def note(stage: str) -> None:
        times.setdefault(("hearth open", stage), []).append(time.perf_counter() - began_s)

    with start(["open", "--no-browser", "--lang", "en"], root) as process:
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/", line)))
        note("address told")
        fetch(address)
        note("page served")
        while not json.loads(fetch(f"{address}hearth/live"))["strip"]["machine"]:
            time.sleep(LOOK_S)
        note("engine ready")


def fetch(address: str) -> bytes:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=WAIT_S) as answer:
        return bytes(answer.read())


def time_command(name: str, words: list[str], root: Path, times: Times) -> None:
    """Time when a command that speaks or paints first tells each kind of event."""
    began_s, seen = time.perf_counter(), set[str]()
    with start([name, *words, "--seed", "1", "--json"], root) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)["event"]
            if event in EVENTS and event not in seen:
                seen.add(event)
                times.setdefault((f"hearth {name}", EVENTS[event]), []).append(time.perf_counter() - began_s)
