"""Kill the engine and the server at random while jobs of every kind run; nothing that was finished may be lost.

`python -m tests.endurance.kills --jobs 30 --kills 60 --seed 1` uses the starter models and a home of its own, and ends
with code 1 at the first thing that is lost, made twice, left running, or ended as nothing that can be gone on with.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from PIL import Image

from tests.support.running import LIVE, Running, paint, repaint, speak, speak_for_program

ENDED_WELL = ("finished", "stopped")
CAN_GO_ON = ("interrupted", "failed")
POLITE_END_S = 5.0
"""A Hearth that is asked to end does so within this time, whatever it does."""
SLEEP_S = 15.0
"""So long everything stands still, as on a laptop whose lid is closed."""
ORPHAN_S = 20.0
"""An engine whose server was killed notices within this time."""
WORDS = ("The moon is bright.", "Good morning, my friend.", "Please open the window.", "Why are you sorry?", "Not today.", "Good night.")
"""They are short, so that a job of several parts is soon spoken."""
PARTS = ("picture-*.png", "part-*.wav")


@dataclass
class Record:
    """What was seen to be finished: by job, each part's file and the hash of its bytes."""

    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    creations: dict[str, str] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    after_parts: int = 0

    def note(self, hearth: Running) -> None:
        """Compare with what was seen before: parts stay as they are until their job has ended, creations for good."""
        states = hearth.states()
        for job, state in states.items():
            now = hash_parts(hearth.folder(job))
            before = self.parts.setdefault(job, {})
            for name, digest in before.items():
                found = state == "finished" or now.get(name) == digest or is_delivered(hearth, job, digest)
                assert found, f"{job} ({state}): {name} was finished and is gone or another now"
            before.update(now)
        creations = {path: job for job, path in hearth.creations()}
        for path in self.creations:
            assert path in creations, f"{path} was on the shelf and is not there any more"
        for path in creations:
            assert has_come(Path(path)), f"{path} is on the shelf, but there is no such file"
        self.creations |= creations


def is_delivered(hearth: Running, job: str, digest: str, within_s: float = 5.0) -> bool:
    """Tell whether what is gone from a job's folder is on its way to the shelf: there, or its job has ended since."""
    deadline = time.monotonic() + within_s
    while hearth.states()[job] != "finished":
        if digest in {hashlib.sha256(path.read_bytes()).hexdigest() for path in (hearth.home / "creations").glob("*.*")}:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def has_come(path: Path, within_s: float = 5.0) -> bool:
    """Tell whether a file is there; it follows its row in a moment."""
    deadline = time.monotonic() + within_s
    while not path.is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    return path.is_file()


def hash_parts(folder: Path) -> dict[str, str]:
    """Hash what counts as finished: a picture, and a part of a script with its settings beside it."""
    found = {}
    for path in (path for pattern in PARTS for path in folder.glob(pattern)):
        with suppress(FileNotFoundError):  # it was moved to the shelf at this moment
            if path.suffix == ".png" or path.with_suffix(".json").is_file():
                found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def jobs(count: int, draw: random.Random, start: Path) -> list[Callable[[Running], None]]:
    """Every kind in turn: one line, a script, one picture, a batch, a picture from a picture, a program's line."""
    kinds: list[Callable[[int], Callable[[Running], None]]] = [
        lambda seed: speak(f"[S1] {draw.choice(WORDS)}", seed=seed),
        lambda seed: speak(" (pause 0.2s) ".join(f"[S{1 + n % 2}] {draw.choice(WORDS)}" for n in range(6)), seed=seed),
        lambda seed: paint("a red circle above a blue square", seed=seed),
        lambda seed: paint("a green star", batch=4, seed=seed),
        lambda seed: repaint("a yellow circle", start),
        lambda seed: speak_for_program(draw.choice(WORDS)),
    ]
    return [kinds[place % len(kinds)](place + 1) for place in range(count)]


def kill(hearth: Running, what: str, record: Record) -> None:
    """End what was drawn. The server is started again; the engine comes back by itself."""
    record.kills[what] += 1
    engine = hearth.find_engine()
    if what == "engine":
        if engine is not None:
            with suppress(psutil.Error):
                engine.kill()
        return
    if what == "sleep":
        os.killpg(hearth.pid, signal.SIGSTOP)
        time.sleep(SLEEP_S)
        os.killpg(hearth.pid, signal.SIGCONT)
        return
    if what == "server":
        assert hearth.process is not None
        hearth.process.kill()
        hearth.process.wait()
        if engine is not None:
            with suppress(psutil.NoSuchProcess):
                engine.wait(timeout=ORPHAN_S)
    else:
        hearth.end(getattr(signal, what), within_s=POLITE_END_S)
    record.note(hearth)
    hearth.start()
    go_on(hearth)


def go_on(hearth: Running) -> None:
    """Do what the page offers after a start: go on with every job that was interrupted."""
    for job, state in hearth.states().items():
        if state in CAN_GO_ON:
            hearth.post(f"/hearth/queue/{job}/go-on")


def wait_for_part(hearth: Running, known: Mapping[str, Mapping[str, str]], within_s: float) -> bool:
    """Wait until the running job has finished a part that is not among the known ones, and is not done yet."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        running = [job for job, state in hearth.states().items() if state == "running"]
        if any(hash_parts(hearth.folder(job)).keys() - known.get(job, {}).keys() for job in running):
            return True
        if not any(state in LIVE for state in hearth.states().values()):
            return False
        time.sleep(0.05)
    return False


def run(home: Path, count: int, kills: int, seed: int) -> Record:
    draw, record, hearth = random.Random(seed), Record(), Running(home)
    start = home.parent / "start.png"
    Image.new("RGB", (256, 256), (200, 120, 40)).save(start)
    hearth.start()
    try:
        for ask in (waiting := jobs(count, draw, start))[:6]:
            hearth.submit(ask)
        waiting = waiting[6:]
        for place in range(kills):
            while waiting and sum(state in LIVE for state in hearth.states().values()) < 4:
                hearth.submit(waiting.pop(0))
            if place % 2:
                record.after_parts += wait_for_part(hearth, record.parts, 90)
            else:
                time.sleep(draw.uniform(0, 12))
            record.note(hearth)
            kill(hearth, draw.choices(("engine", "server", "sleep", "SIGTERM", "SIGINT", "SIGHUP"), (6, 4, 1, 1, 1, 1))[0], record)
            go_on(hearth)
            print(f"kill {place + 1} of {kills}: {dict(Counter(hearth.states().values()))}", flush=True)
        for ask in waiting:
            hearth.submit(ask)
        finish(hearth, record)
    finally:
        if hearth.process is not None and hearth.process.poll() is None:
            hearth.end(within_s=POLITE_END_S)
    check(hearth, record, count)
    return record


def finish(hearth: Running, record: Record, within_s: float = 1800) -> None:
    """Let everything end in peace; what says it can be gone on with must then go on."""
    deadline = time.monotonic() + within_s
    while any(state not in ENDED_WELL for state in hearth.states().values()):
        go_on(hearth)
        record.note(hearth)
        assert time.monotonic() < deadline, f"not ended in {within_s} s: {hearth.rows('SELECT id, state, words FROM jobs')}"
        time.sleep(1)
    record.note(hearth)


def check(hearth: Running, record: Record, count: int) -> None:
    states = hearth.states()
    assert len(states) == count, f"{count} jobs were accepted, {len(states)} are in the journal"
    made = Counter(job for job, _ in hearth.creations())
    pictures = {hashlib.sha256(Path(path).read_bytes()).hexdigest() for _, path in hearth.creations() if path.endswith(".png")}
    for job in states:
        finished_pictures = {name: digest for name, digest in record.parts[job].items() if name.endswith(".png")}
        assert set(finished_pictures.values()) <= pictures, f"{job}: a finished picture is not on the shelf"
        # A program's job whose call broke off while it waited is stopped, and has made nothing.
        wanted = len(finished_pictures) or int(states[job] == "finished" or bool(record.parts[job]))
        assert made[job] >= wanted, f"{job} ({states[job]}): {made[job]} creations, {wanted} were finished, of {sorted(record.parts[job])}"
    assert "" not in made, f"{made['']} creations have lost their job"
    assert max(made.values()) <= 4, f"something is on the shelf more often than it was asked for: {made}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        record = run(Path(folder, "home"), args.jobs, args.kills, args.seed)
    print(
        f"seed {args.seed}: {args.jobs} jobs, {args.kills} kills {dict(record.kills)}, {record.after_parts} after a finished part; "
        f"nothing lost in {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
