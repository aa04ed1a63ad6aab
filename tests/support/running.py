"""A Hearth that runs as its owner runs it: started, asked over HTTP, killed, started again."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.support.places import TOP

LIVE = ("queued", "running")


@dataclass
class Running:
    """One home, and the Hearth that is open in it now."""

    home: Path
    address: str = ""
    process: subprocess.Popen[str] | None = None
    program: tuple[str, ...] = ("-m", "app")
    """Python runs it to open Hearth."""
    log: list[str] = field(default_factory=list)

    def start(self) -> None:
        command = [sys.executable, *self.program, "open", "--no-browser", "--home", str(self.home)]
        self.process = subprocess.Popen(
            command,
            cwd=TOP,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.address = found[0]
                threading.Thread(target=self.log.extend, args=(self.process.stdout,), daemon=True).start()
                return
        raise AssertionError(f"Hearth did not start: {''.join(self.log[-20:])}")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def find_engine(self) -> psutil.Process | None:
        with suppress(psutil.Error):
            for child in psutil.Process(self.pid).children():
                if "spawn_main" in " ".join(child.cmdline()):
                    return child
        return None

    def end(self, with_signal: int = signal.SIGTERM, within_s: float = 30) -> float:
        """Return how long it took; whatever of its processes is left after that is an orphan."""
        assert self.process is not None
        family = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        began = time.monotonic()
        self.process.send_signal(with_signal)
        _, alive = psutil.wait_procs(family, timeout=within_s)
        self.process.wait()
        assert not alive, f"still there {within_s} s after signal {with_signal}: {[each.cmdline() for each in alive]}"
        return time.monotonic() - began

    def ask(self, path: str, body: Any = None, timeout_s: float = 30) -> Any:
        request = urllib.request.Request(
            self.address + path, None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return json.loads(answer.read() or b"null")

    def post(self, path: str) -> None:
        with urllib.request.urlopen(urllib.request.Request(self.address + path, b""), timeout=30):
            pass

    def ask_beside(self, path: str, body: Any) -> None:
        """Ask what answers only when the job is done; nobody waits for the answer, and a killed server gives none."""

        def wait() -> None:
            with suppress(OSError, ValueError):
                self.ask(path, body, timeout_s=3600)

        threading.Thread(target=wait, daemon=True).start()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "hearth.sqlite3", timeout=30)) as database:
            return database.execute(query).fetchall()

    def states(self) -> dict[str, str]:
        return dict(self.rows("SELECT id, state FROM jobs ORDER BY created_s"))

    def creations(self) -> list[tuple[str, str]]:
        return self.rows("SELECT job, path FROM creations")

    def folder(self, job: str) -> Path:
        return self.home / "scratch" / "jobs" / job

    def submit(self, ask: Callable[[Running], None]) -> str:
        """Ask for one job; return its id as soon as the journal has it."""
        before = set(self.states())
        ask(self)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if new := set(self.states()) - before:
                (job,) = new
                return job
            time.sleep(0.05)
        raise AssertionError(f"a job that was asked for never came into the journal: {''.join(self.log[-30:])}")


def speak(text: str, model: str = "", seed: int = 1) -> Callable[[Running], None]:
    return lambda hearth: hearth.ask("/gradio_api/call/speak", {"data": [text, "", model, seed, 1.0, "wav"]})


def paint(
    prompt: str, model: str = "", batch: int = 1, seed: int = 1, steps: int | None = None, side: int | None = None
) -> Callable[[Running], None]:
    return lambda hearth: hearth.ask("/gradio_api/call/paint", {"data": [prompt, "", model, side, side, steps, seed, batch]})


def repaint(prompt: str, start: Path) -> Callable[[Running], None]:
    picture = base64.b64encode(start.read_bytes()).decode()
    body = {"prompt": prompt, "init_images": [picture], "denoising_strength": 0.7, "steps": 20, "width": 256, "height": 256}
    return lambda hearth: hearth.ask_beside("/sdapi/v1/img2img", body)


def speak_for_program(text: str) -> Callable[[Running], None]:
    return lambda hearth: hearth.ask_beside("/v1/audio/speech", {"input": text, "model": "", "voice": ""})
