"""Give Hearth the jobs of a long day in a short time; memory, handles, threads and scratch files must not grow with them.

`python -m tests.endurance.soak --minutes 20 --jobs 480` is eight hours at a job a minute, on tiny models. After a third
of the time for caches to fill, the middle of the last third may lie above the middle of the second by little.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from statistics import median

import psutil

from app.engine.jobs.outward import public_name
from tests.support.running import LIVE, Running, paint, speak
from tests.support.tiny_pictures import save
from tests.support.window import small_voice

MIB = 1 << 20
EVERY_S = 5.0


@dataclass(frozen=True)
class Measured:
    """What one look at Hearth finds; `jobs` have ended until then."""

    jobs: int
    window_mib: float
    engine_mib: float
    window_handles: int
    engine_handles: int
    window_threads: int
    engine_threads: int
    scratch_files: int
    temporary_files: int
    database_kib_a_job: float


GROWTH_MOST = {
    "window_mib": 15.0, "engine_mib": 40.0, "window_handles": 3, "engine_handles": 3, "window_threads": 2,
    "engine_threads": 2, "scratch_files": 60, "temporary_files": 5, "database_kib_a_job": 1.0,
}  # fmt: skip
"""The last third may lie so much above the second, each by its medians. Scratch holds the newest thirty jobs, with as many files as these have."""


def look(hearth: Running, temporary: Path) -> Measured | None:
    engine = hearth.find_engine()
    if engine is None:
        return None
    window, ended = psutil.Process(hearth.pid), sum(state not in LIVE for state in hearth.states().values())
    database = sum(path.stat().st_size for path in hearth.home.glob("hearth.sqlite3*"))
    return Measured(
        ended,
        window.memory_info().rss / MIB,
        engine.memory_info().rss / MIB,
        window.num_fds(),
        engine.num_fds(),
        window.num_threads(),
        engine.num_threads(),
        count_files(hearth.home / "scratch"),
        count_files(temporary),
        database / 1024 / max(ended, 1),
    )


def count_files(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def prepare(folder: Path) -> tuple[Running, str, str]:
    """Make a home that knows a tiny voice and a tiny painter; return their names too."""
    voice, painter = small_voice(folder / "small voice"), save("sd15", folder / "small painter")
    (home := folder / "home").mkdir()
    settings = {"models": [str(voice), str(painter)], "greeted": True}
    (home / "settings.json").write_text(json.dumps(settings))
    return Running(home), public_name(str(voice)), public_name(str(painter))


def run(folder: Path, minutes: float, jobs: int, seed: int) -> list[Measured]:
    """Ask for the jobs evenly over the time, as far as the machine follows, and look at Hearth every few seconds."""
    os.environ["TMPDIR"] = str(temporary := folder / "temporary")
    temporary.mkdir()
    hearth, voice, painter = prepare(folder)
    draw, found, began, asked = random.Random(seed), list[Measured](), time.monotonic(), 0
    hearth.start()
    try:
        while asked < jobs:
            due = (time.monotonic() - began) / (60 * minutes) * jobs
            waiting = sum(state in LIVE for state in hearth.states().values())
            if asked < due and waiting < 5:
                text = f"[S1] It is {asked} o'clock, you know." + draw.choice(("", " (pause 0.2s) [S2] And was I wrong?"))
                one = paint("a red circle", painter, draw.choice((1, 2)), asked, 4, 128)
                hearth.submit(draw.choice((speak(text, voice, asked), one)))
                asked += 1
            else:
                time.sleep(0.1)
            if len(found) * EVERY_S < time.monotonic() - began and (now := look(hearth, temporary)) is not None:
                found.append(now)
        while any(state in LIVE for state in hearth.states().values()):
            time.sleep(0.5)
        states = Counter(hearth.states().values())
        assert states == {"finished": jobs}, f"not all jobs were finished: {states}"
    finally:
        hearth.end()
    return found


def check(found: Sequence[Measured]) -> dict[str, float]:
    """Return by how much each figure grew from the second third to the last; raise where it is more than it may be."""
    third = len(found) // 3
    second, last = ([asdict(each) for each in part] for part in (found[third : 2 * third], found[2 * third :]))
    grown = {name: round(median(each[name] for each in last) - median(each[name] for each in second), 1) for name in GROWTH_MOST}
    too_much = {name: by for name, by in grown.items() if by > GROWTH_MOST[name]}
    assert not too_much, f"grew by more than allowed from the second third to the last: {too_much}"
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=480)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), args.minutes, args.jobs, args.seed)
    print(" ".join(field.name for field in fields(Measured)))
    for each in found[:: max(1, len(found) // 12)]:
        print(" ".join(f"{value:.0f}" if value > 10 else f"{value:.1f}" for value in astuple(each)))
    print(f"seed {args.seed}, {args.jobs} jobs; growth from the second third to the last: {check(found)}")


if __name__ == "__main__":
    main()
