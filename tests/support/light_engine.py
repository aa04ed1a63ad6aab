"""An engine's process without torch: real, killed for real, started in a moment. It speaks the keeper's language and writes parts to disk."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.base.paths import Home
from app.base.sentence import say
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import Reading
from app.engine.jobs.events import END, Failed, Finished, Loading, PartDone, Step
from app.engine.jobs.messages import Beat, JobEvent, Quit, Ready, Report, Run, Stop
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.tasks import MaintenanceTask
from app.engine.keeper import worker
from app.engine.keeper.child import Child
from app.engine.models.on_disk import find_limits
from app.engine.speech.sound import spoken_parts
from app.engine.speech.text import script

if TYPE_CHECKING:
    import pytest

SENDING = threading.Lock()
LIVES = "lives.json"
"""In the home's folder it says what each life of the engine does: how many parts it finishes before it dies, where it dies ("never": it loads
for ever), what place it blocks, and after how many parts it does nothing more."""


def replace_engines(patch: pytest.MonkeyPatch) -> None:
    """Let every engine that starts be one of these. Where the system can fork, a server that has imported this file once forks them."""
    patch.setattr(worker, "main", main)
    if "forkserver" in multiprocessing.get_all_start_methods():
        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload([__name__])
        patch.setattr(multiprocessing, "get_context", lambda _: forks)


def replace_ends(patch: pytest.MonkeyPatch, ends: Iterator[Failed]) -> None:
    """Let the next jobs end as these say, whatever their engine tells."""
    receive = Child.receive

    def replaced(child: Child) -> Iterator[Report]:
        for report in receive(child):
            end = next(ends, None) if isinstance(report, JobEvent) and isinstance(report.event, END) else None
            yield JobEvent(report.job, end) if isinstance(report, JobEvent) and end is not None else report

    patch.setattr(Child, "receive", replaced)


def main(pipe: Connection, home: Home, pretended: str, log: Path) -> None:
    plan = home.root / LIVES
    lives = json.loads(plan.read_text()) if plan.is_file() else []
    life = lives.pop(0) if lives else {}
    if life:  # whole or not at all: where it is killed meanwhile, or the disk is full, no engine after it could start
        left = plan.with_suffix(".new")
        left.write_text(json.dumps(lives))
        left.replace(plan)
    if life.get("dies") == "start":
        die()
    told(pipe, Ready(Hardware(kind="cpu", name="light")))
    threading.Thread(target=beat, args=(pipe,), daemon=True).start()
    while not isinstance(order := pipe.recv(), Quit):
        if isinstance(order, Run):
            run(pipe, home, order, life)


def told(pipe: Connection, report: Report) -> None:
    with SENDING:
        pipe.send(report)


def beat(pipe: Connection) -> None:
    """Beat until nobody hears it any more; then end at once, as the real engine does."""
    with contextlib.suppress(OSError):
        while True:
            told(pipe, Beat(Reading(), "", None))
            time.sleep(0.5)
    os._exit(0)


def run(pipe: Connection, home: Home, order: Run, life: dict[str, object]) -> None:
    request, job = order.request, Path(order.folder)
    if isinstance(request, MaintenanceTask):
        return told(pipe, JobEvent(order.job, Finished((), 0.0, 0.0, "checks", 0)))
    assert isinstance(request, SpeechRequest)
    told(pipe, JobEvent(order.job, Loading("light", say("test.loading", "loading"))))
    if life.get("dies") == "loading":
        die()
    if life.get("dies") == "never":
        return ignore_stop(pipe)
    parts = script.parse_script(request.text, find_limits(home, request.model)).parts
    made = 0
    for index, part in enumerate(parts):
        if spoken_parts.find(SPOKEN.shown(job, index)) is None:
            if made == life.get("parts", len(parts)) and "fails" in life:
                return told(pipe, JobEvent(order.job, Failed(say("test.fails", "the disk is full"), cure="open-folder")))
            if made == life.get("parts", len(parts)):
                die()
            speak(job, index, part.text)
            made += 1
            if made == life.get("waits"):
                return tell_part(pipe, order.job, job, index, part.text, len(parts))
        tell_part(pipe, order.job, job, index, part.text, len(parts))
    if blocks := life.get("blocks"):
        Path(str(blocks)).mkdir()
    if life.get("dies") == "joining":
        die()
    target = job / "speech.wav"
    target.write_bytes(SPOKEN.shown(job, 0).read_bytes())
    told(pipe, JobEvent(order.job, Finished((str(target),), 1.0, 1.0, "frames", 0, 1.0)))


def tell_part(pipe: Connection, name: str, job: Path, index: int, words: str, parts: int) -> None:
    told(pipe, JobEvent(name, Step(index + 1, parts, 1.0, "frames", None, Reading(), part=index, parts=parts)))
    told(pipe, JobEvent(name, PartDone(index, parts, str(SPOKEN.shown(job, index)), words, 5, 0.5)))


def ignore_stop(pipe: Connection) -> None:
    """As a load that never ends: the process beats, and its job does not see that it is to stop."""
    while not isinstance(pipe.recv(), Stop):
        pass
    asked_s = time.monotonic()
    while True:
        told(pipe, Beat(Reading(), "", 0.0, unheard_s=time.monotonic() - asked_s))
        time.sleep(0.05)


def speak(job: Path, index: int, text: str, whole: bool = True) -> None:
    tone = (0.2 * np.sin(np.arange(8000) * (0.05 + 0.01 * index))).astype(np.float32)
    codes = np.zeros((4, 1), np.int16)
    part = spoken_parts.SpokenPart(text, 5, "light", 0.5, whole, codes, SPOKEN.shown(job, index))
    spoken_parts.save(part, tone, 16000)


def die() -> None:
    time.sleep(0.05)  # what was said is heard first
    os.kill(os.getpid(), 9)
