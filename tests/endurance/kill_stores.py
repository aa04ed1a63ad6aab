"""Kill a keeper's process at random moments, while jobs end and creations are deleted, restored and backed up beside them.

`python -m tests.endurance.kill_stores --kills 40 --seed 1` runs hundreds of jobs on an engine without torch, so that most
kills hit a write. It ends with code 1 if a start fails, or a job, file or row is lost, doubled or without the other.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import psutil

from app.base.paths import home
from app.engine.jobs import backups
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper import worker
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.open_database import open_database
from app.ui.state.settings import Settings
from tests.support import light_engine
from tests.support.places import TOP

WAITING = 3
LIFE_S = 4.0
CALM_S = 60.0
"""At the end, without kills: the jobs that are left end within this time."""


def live(folder: Path, seed: int, first: int, more: bool) -> None:
    """The child's part: go on with what was interrupted, queue jobs, and do with the shelf what people do, until killed."""
    worker.main = light_engine.main
    place, draw, number = home(folder), random.Random(seed), first
    keeper, settings = Keeper(place), Settings(place.settings)
    mine = [job.id for job in keeper.interrupted]
    for job in mine:
        keeper.resume(job)
    print(json.dumps({"up": number}), flush=True)
    while more or any(keeper.get_progress(job).end is None for job in mine):
        if more and sum(keeper.get_progress(job).end is None for job in mine) < WAITING:
            words = "[S1] The water is warm today." + f" (pause 0.{number % 9 + 1}s) The water is warm." * (1 + number % 2)
            mine.append(keeper.submit(SpeechRequest(words, seed=number, format=draw.choice(("wav", "flac", "opus")))).id)
            print(json.dumps({"queued": number}), flush=True)
            number += 1
        binned = draw.random() < 0.5
        found = [each for each in keeper.shelf.find(Search(binned=binned, most=3)) if keeper.journal.get(each.job).state == "finished"]
        if found and draw.random() < 0.4:
            (keeper.shelf.restore if binned else keeper.shelf.delete)(draw.choice(found).id)
        if draw.random() < 0.15:
            settings.put({"drafts": {"speak-text": f"draft {number}"}})
        if draw.random() < 0.05:
            backups.make_backup(place)
        time.sleep(draw.random() * 0.1)
    keeper.close()
    print(json.dumps({"calm": True}), flush=True)


def begin(folder: Path, seed: int, first: int, more: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.endurance.kill_stores", "--live", str(folder), str(seed), str(first), str(int(more))]
    started = subprocess.Popen(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None and started.stderr is not None
    if not started.stdout.readline():
        raise AssertionError(f"no start: {started.stderr.read()[-2000:]}")
    return started


def kill(started: subprocess.Popen[str]) -> list[int]:
    """Kill the process, and return the numbers of the jobs that it told to have queued."""
    engines = psutil.Process(started.pid).children(recursive=True)
    started.kill()
    told = started.communicate()[0].splitlines()
    for engine in engines:
        with suppress(psutil.Error):
            engine.kill()
    return [values["queued"] for values in map(json.loads, filter(_is_whole, told)) if "queued" in values]


def _is_whole(line: str) -> bool:
    return line.endswith("}")


def run(folder: Path, kills: int, seed: int) -> Counter[str]:
    draw, queued, first = random.Random(seed), set[int](), 1
    for number in range(kills):
        started = begin(folder, seed * 1000 + number, first, more=True)
        time.sleep(draw.random() * LIFE_S)
        queued.update(kill(started))
        first = max(queued, default=0) + 2  # one more may be in the journal than was told
    calm = begin(folder, seed, first, more=False)
    told, faults = calm.communicate(timeout=CALM_S)
    assert "calm" in told, faults[-2000:]
    return check(folder, queued)


def check(folder: Path, queued: set[int]) -> Counter[str]:
    place = home(folder)
    with closing(open_database(place, alone=True)) as database:
        shelf = Shelf(database, place.creations)
        shelf.find_moved()
        rows = [*shelf.find(Search(most=-1)), *shelf.find(Search(binned=True, most=-1))]
        jobs = {json.loads(row["request"])["seed"]: row["state"] for row in database.query("SELECT request, state FROM jobs")}
    made = Counter(row.settings["seed"] for row in rows)
    files = {path for path in place.creations.rglob("*.*") if path.is_file() and not path.name.startswith(".")}
    assert queued <= jobs.keys(), f"queued and gone: {sorted(queued - jobs.keys())}"
    assert set(jobs.values()) == {"finished"}, Counter(jobs.values())
    assert made == Counter(list(jobs)), f"lost {sorted(jobs.keys() - made)}, twice {[each for each in made if made[each] > 1]}"
    assert not (without := [row.path.name for row in rows if row.condition]), f"rows without their file: {without}"
    assert not (unlisted := files - {row.path for row in rows}), f"files without a row: {unlisted}"
    return Counter(jobs=len(jobs), binned=sum(row.binned for row in rows))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--live"]:
        folder, seed, first, more = arguments[1:]
        live(Path(folder), int(seed), int(first), bool(int(more)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = parser.parse_args(arguments)
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        print(f"seed {asked.seed}", flush=True)
        counted = run(Path(folder) / "home", asked.kills, asked.seed)
    print(f"{asked.kills} kills: {dict(counted)}; nothing lost in {time.monotonic() - begun_s:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
