"""Run start.py beside the open window: it makes and tests what the next start takes. One work at a time, and it ends with the window."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any, Final

from app.base.duration import word_duration
from app.base.sentence import Sentence
from app.launcher import failure, pip_command, slots

ENDS_S: Final = 5.0
"""A work may take so long to end what it started, pip among it."""


class Beside:
    """Any thread may call."""

    def __init__(self, folder: Path) -> None:
        """`folder`: of the slots."""
        self._folder, self._lock = folder, threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._began_s = 0.0
        self.what = ""
        """It does this, or did it last: its words after `prepare`."""

    def start(self, *words: str) -> bool:
        """Begin; return False while another work goes on."""
        options: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            options = {"creationflags": subprocess.CREATE_NO_WINDOW}
        python = getattr(sys, "_base_executable", "") or sys.executable  # the environment that runs is not needed for it
        with self._lock:
            if self._is_running():
                return False
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - read once the work has ended
            (self._folder / "install.log").unlink(missing_ok=True)  # of what it tells, nothing is an earlier one's
            self._child = subprocess.Popen(
                [python, str(slots.TOP / "start.py"), "prepare", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
                **options,
            )
            self.what, self._began_s = " ".join(words), time.monotonic()
            return True

    def stop(self) -> None:
        """End it with all that it started, as Ctrl+C does. What is half made is made anew next time."""
        with self._lock:
            child, self._child, self.what = self._child, None, ""
        if child is None or child.poll() is not None:
            return
        with contextlib.suppress(OSError):
            child.terminate() if sys.platform == "win32" else os.killpg(child.pid, signal.SIGINT)
        try:
            child.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                child.kill() if sys.platform == "win32" else os.killpg(child.pid, signal.SIGKILL)

    def describe(self) -> tuple[Sentence, ...]:
        """Say how long it has been going on, and what it does now; nothing where nothing goes on."""
        if not self._is_running():
            return ()
        log = self._folder / "install.log"
        now = pip_command.describe_progress(log) if log.is_file() else ()
        return (word_duration(time.monotonic() - self._began_s), *now)

    def find_failure(self) -> str:
        """Return why the last work failed, in the system's language; "" where it did not, or goes on."""
        child, said = self._child, self._said
        if child is None or said is None or child.poll() in (None, 0):
            return ""
        said.seek(0)
        return failure.find_sentence(said.read().decode("utf-8", "replace"))

    def _is_running(self) -> bool:
        return self._child is not None and self._child.poll() is None
