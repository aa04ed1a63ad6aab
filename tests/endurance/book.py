"""Speak a whole book with the starter voice while its engine is killed, Hearth is shut and the disk fills up: complete, memory flat, the page quick.

`python -m tests.endurance.book --letters 500000 --kills 10 --seed 1` makes up a book, has its chapters spoken one after the other, and ends
with code 1 at the first part that is lost or changed, where memory grows or where the page gets slow. `--home` on a file system of its own
(`mount -t tmpfs -o size=3g none FOLDER`) has it filled once; anywhere else that is left out, and said. With `--at-once` an engine without torch
speaks every part at once, so that a whole book takes minutes; the window's memory is looked at then, and Hearth is killed where it is shut else.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
import psutil

from app.__main__ import main as open_hearth
from app.base import paths
from app.base.paths import Home
from app.compat.machine.meter import Reading
from app.engine.jobs.events import Finished, PartDone, Step
from app.engine.jobs.messages import JobEvent, Run
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import SpeechRequest
from app.engine.keeper import worker
from app.engine.kinds import KINDS
from app.engine.models.on_disk import find_limits
from app.engine.speech.book.book import Book
from app.engine.speech.book.read_book import read_book
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.subtitles import read_cues, strip_tags
from tests.endurance.kills import Record, finish, go_on, kill
from tests.endurance.prose import make_up
from tests.support import light_engine
from tests.support.books import save_epub
from tests.support.running import LIVE, Running, speak

CHAPTERS, CHAPTER_LETTERS = 25, (1_000, 20_000)
"""Each chapter has so many letters, at least and at most."""
KIND: Final = "dialogue"
LOOK_S: Final = 1.0
GROWTH_MOST_MIB: Final = 40.0
"""Window or engine grows at most so much, from the second third to the last."""
SLOWER_MOST: Final = 3.0
"""An answer to the page may take so many times as long as before; the engine has the processor besides."""
QUICK_MS: Final = 50.0
"""What lies below is quick, however much more it is."""
FILL_S: Final = 600.0
FRAME_RATE: Final = 16000
AT_ONCE: Final = ("-c", "from tests.endurance.book import serve; serve()")
MIB: Final = 1 << 20


@dataclass
class Seen:
    windows_mib: list[float] = field(default_factory=list)
    engines_mib: list[float] = field(default_factory=list)
    answers_ms: list[float] = field(default_factory=list)
    filled: bool = False


def serve() -> None:
    """Open Hearth with an engine that speaks at once; what it is told stands on the command line."""
    worker.main = speak_at_once
    open_hearth()


def speak_at_once(pipe: Connection, home: Home, pretended: str, log: Path) -> None:
    light_engine.run = run_at_once
    light_engine.main(pipe, home, pretended, log)


def run_at_once(pipe: Connection, home: Home, order: Run, life: dict[str, object]) -> None:
    """Make sounds as long as the parts are to be, and join them as the engine does."""
    request, job = order.request, Path(order.folder)
    if not isinstance(request, SpeechRequest):
        return light_engine.told(pipe, JobEvent(order.job, Finished((), 0.0, 0.0, "checks", 0)))
    parts = parse_script(request.text, find_limits(home, request.model)).parts
    for index, part in enumerate(parts):
        if pipe.poll():  # it is to end, or to stop
            return None
        file, frames = SPOKEN.shown(job, index), round(part.seconds * FRAME_RATE)
        if spoken_parts.find(file) is None:
            step = Step(index + 1, len(parts), 1.0, "frames", 60.0, Reading(), part=index, parts=len(parts))
            light_engine.told(pipe, JobEvent(order.job, step))
            tone = (0.2 * np.sin(np.arange(frames) * 0.05)).astype(np.float32)
            spoken_parts.save(
                spoken_parts.SpokenPart(part.text, 5, "light", part.seconds, True, np.zeros((4, 1), np.int16), file), tone, FRAME_RATE
            )
        light_engine.told(pipe, JobEvent(order.job, PartDone(index, len(parts), str(file), part.text, 5, part.seconds)))
    files, seconds = KINDS["speech"].join(home, request, job, range(len(parts)), job)
    return light_engine.told(pipe, JobEvent(order.job, Finished(files, 1.0, 1.0, "frames", 0, seconds)))


def write_book(path: Path, letters: int, seed: int) -> Book:
    rng = random.Random(seed)
    pages, source = {}, make_up(KIND, rng)
    each = min(max(letters // CHAPTERS, CHAPTER_LETTERS[0]), CHAPTER_LETTERS[1])
    for chapter in range(math.ceil(letters / each)):
        body, most = "", min(each, letters - chapter * each)
        while len(body) < most:
            body += f"<p>{next(source)}</p>\n"
        pages[f"{chapter:03}.xhtml"] = f"<h1>Chapter {chapter + 1}</h1>{body}"
    save_epub(path, pages, {page: f"Chapter {number}" for number, page in enumerate(pages, 1)})
    with path.open("rb") as file:
        return read_book(file, path.name)


def look(hearth: Running, seen: Seen) -> None:
    """Ask for what the page asks for, and read the memory of both processes."""
    began = time.monotonic()
    hearth.ask("/hearth/live?charts=1")
    seen.answers_ms.append(1000 * (time.monotonic() - began))
    engine = hearth.find_engine()
    if engine is not None:
        with suppress(psutil.Error):  # it may be killed meanwhile
            seen.engines_mib.append(engine.memory_info().rss / MIB)
            seen.windows_mib.append(psutil.Process(hearth.pid).memory_info().rss / MIB)


def count_parts(hearth: Running, parts: Mapping[str, int]) -> int:
    """Count the parts that are made; those of a finished chapter may be tidied away by now."""
    states = hearth.states()
    return sum(
        count if states[job] == "finished" else sum(1 for _ in hearth.folder(job).glob("part-*.wav")) for job, count in parts.items()
    )


def fill_disk(hearth: Running, seen: Seen) -> None:
    """Fill the file system of the home until a job waits for room; then make room again."""
    room = hearth.home / "fills the disk"
    with room.open("wb") as file:
        try:
            while True:
                file.write(bytes(MIB))
        except OSError:
            pass
    deadline = time.monotonic() + FILL_S
    while not seen.filled and time.monotonic() < deadline:
        strip = hearth.ask("/hearth/live")
        seen.filled = bool((strip.get("standing") or {}).get("text")) or "failed" in hearth.states().values()
        time.sleep(LOOK_S)
    room.unlink()
    assert seen.filled, f"the disk was full for {FILL_S} s, and nobody said so"


def run(home: Path, letters: int, kills: int, seed: int, at_once: bool = False) -> Seen:
    draw, record, seen, hearth = random.Random(seed), Record(), Seen(), Running(home)
    if at_once:
        hearth.program = AT_ONCE
    book = write_book(home.parent / "book.epub", letters, seed)
    own_disk = os.path.ismount(home)
    hearth.start()
    try:
        idle = Seen()
        for _ in range(20):
            look(hearth, idle)
        limits = find_limits(paths.home(home), "starter-voice")
        scripts = {hearth.submit(speak(each.script, seed=seed)): each.script for each in book.chapters}
        parts = {job: len(parse_script(script, limits).parts) for job, script in scripts.items()}
        total = sum(parts.values())
        print(f"{len(book.chapters)} chapters, {total} parts; the idle page answers in {median(idle.answers_ms):.0f} ms", flush=True)
        marks = sorted(draw.sample(range(1, total), min(kills, total - 1)))
        deeds = (
            dict.fromkeys(marks, "engine") | {total // 2: "server" if at_once else "SIGTERM"} | ({total // 3: "disk"} if own_disk else {})
        )
        while any(state in LIVE for state in hearth.states().values()):
            time.sleep(LOOK_S)
            look(hearth, seen)
            made = count_parts(hearth, parts)
            for mark in [each for each in sorted(deeds) if each <= made]:
                deed = deeds.pop(mark)
                record.note(hearth)
                if deed == "disk":
                    fill_disk(hearth, seen)
                else:
                    kill(hearth, deed, record)
                go_on(hearth)
                print(f"{made} of {total} parts: {deed}", flush=True)
        finish(hearth, record, within_s=24 * 3600)
    finally:
        if hearth.process is not None and hearth.process.poll() is None:
            hearth.end()
    check(hearth, scripts, record, idle, seen, at_once)
    if not own_disk:
        print("the disk was not filled: the home has no file system of its own")
    return seen


def list_words(text: str) -> list[str]:
    """List what subtitles and script have in common: words and figures, as they are written."""
    return re.findall(r"\w+", text.casefold())


def check(hearth: Running, scripts: Mapping[str, str], record: Record, idle: Seen, seen: Seen, at_once: bool) -> None:
    assert set(hearth.states().values()) == {"finished"}, hearth.states()
    made = {job: Path(path) for job, path in hearth.creations()}
    assert len(hearth.creations()) == len(made) == len(scripts), "a chapter is missing on the shelf, or there twice"
    for job, script in scripts.items():
        said = " ".join(strip_tags(each.text) for each in read_cues(made[job]))
        assert list_words(said) == list_words(script), f"{made[job]} does not say its chapter, word by word"
    grown = {"window": grow(seen.windows_mib), "engine": grow(seen.engines_mib)}
    assert max(grown.values()) < GROWTH_MOST_MIB, f"memory grew by {grown} MiB"
    before, now = median(idle.answers_ms), median(seen.answers_ms)
    most = {"window": round(max(seen.windows_mib)), "engine": round(max(seen.engines_mib))}
    print(
        f"kills {dict(record.kills)}; memory at most {most} MiB, it grew by {grown} MiB; the page answered in {now:.0f} ms, idle in {before:.0f} ms"
    )
    assert at_once or now < max(QUICK_MS, SLOWER_MOST * before), "the page was slow"


def grow(found: Sequence[float]) -> float:
    third = len(found) // 3
    return round(median(found[2 * third :]) - median(found[third : 2 * third]), 1) if third else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", type=int, default=500_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", action="store_true", help="speak with an engine without torch")
    parser.add_argument("--home", type=Path, help="an empty folder; a temporary one if it is left out")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(args.home or Path(folder) / "home", args.letters, args.kills, args.seed, args.at_once)


if __name__ == "__main__":
    main()
