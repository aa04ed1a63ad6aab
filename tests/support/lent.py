"""A main machine in this process, and helpers in processes of their own, on the loopback with TLS."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from app.base.paths import home
from app.engine.jobs.request import SpeechRequest
from app.engine.keeper import worker
from app.engine.keeper.keeper import Keeper
from app.engine.models.catalog import BY_ID
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import Hub
from app.machines.spreader import Spreader
from tests.support import light_painter
from tests.support.hub import cached
from tests.support.places import TOP
from tests.support.waiting import LOADING_S, until

SLOW_S = 0.3
"""A step takes so long: a picture of ten takes three seconds."""


@dataclass
class Helper:
    home: Path
    process: subprocess.Popen[str]
    log: list[str] = field(default_factory=list)

    def said(self, words: str) -> bool:
        return any(words in line for line in self.log)

    def find_below(self, words: str) -> psutil.Process:
        """Return the process below this one whose command line has these words."""
        return next(each for each in psutil.Process(self.process.pid).children() if words in " ".join(each.cmdline()))

    def list_processes(self) -> list[psutil.Process]:
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def kill(self) -> None:
        """All of it at once, as if unplugged."""
        family = self.list_processes()
        for each in family:
            with suppress(psutil.NoSuchProcess):  # the end of one ends others
                each.kill()
        psutil.wait_procs(family, timeout=20)

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()
        self.process.wait()


@dataclass
class Main:
    keeper: Keeper
    hub: Hub
    spreader: Spreader | None = None
    helpers: list[Helper] = field(default_factory=list)

    def start_helper(
        self,
        folder: Path,
        step_s: float = 0.01,
        module: str = "tests.support.light_helper",
        words: tuple[str, ...] = (),
        within: tuple[str, ...] = (),
    ) -> Helper:
        """Pair a new helper and wait until it can work. `within`: what its command is run by."""
        known = {each.id for each in self.hub.list_machines()}
        folder.mkdir(parents=True, exist_ok=True)
        light_painter.pace(folder, step_s=step_s)
        code = self.hub.open_pairing().state.code
        helper = start(folder, module, (*words, str(code)), within)
        self.helpers.append(helper)
        until(
            lambda: any(each.id not in known and each.online and each.models and not each.paused for each in self.hub.list_machines()),
            LOADING_S,
        )
        return helper

    def occupy(self, step_s: float) -> str:
        """Have the engine here begin with ten steps of something that no other machine can do."""
        light_painter.pace(self.keeper.home.root, step_s=step_s)
        job = self.keeper.submit(SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=1, only_parts=(0,))).id
        until(lambda: self.keeper.state.job == job, LOADING_S)
        return job

    def find(self, helper: Helper) -> HelpingMachine:
        return self.hub.list_machines()[self.helpers.index(helper)]


def start(folder: Path, module: str = "tests.support.light_helper", words: tuple[str, ...] = (), within: tuple[str, ...] = ()) -> Helper:
    command = [*within, sys.executable, "-m", module, *words, "--home", str(folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")]), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=TOP, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    helper = Helper(folder, process)
    assert process.stdout is not None
    threading.Thread(target=helper.log.extend, args=(process.stdout,), daemon=True).start()
    return helper


@contextmanager
def open_main(folder: Path, spreads: bool = True, pretended: str = "", host: str = "127.0.0.1") -> Iterator[Main]:
    """`spreads`: the light painter paints here too, and its batches are spread. `pretended`: the hardware by which it is planned. `host`: where
    helpers find it."""
    patched = worker.main
    worker.main = light_painter.main
    main = None
    try:
        keeper = Keeper(home(folder), pretended)
        main = Main(keeper, Hub(keeper.home, host))
        main.spreader = Spreader(keeper, main.hub).start() if spreads else None
        yield main
    finally:
        worker.main = patched
        if main is not None:
            for helper in main.helpers:
                helper.end()
            if main.spreader is not None:
                main.spreader.close()
            main.hub.close()
        keeper.close()


def put_models(folder: Path, models: Iterable[str]) -> None:
    """Put the files that downloaded models are known by into a home, without weights: the light painter reads none."""
    for model in models:
        sources = [*filter(None, [BY_ID[model].source]), *(each.source for each in BY_ID[model].companions)]
        for source in sources:
            for name in (each for each in source.files if "*" not in each):
                file = cached(home(folder).models, source.repo) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{}")
