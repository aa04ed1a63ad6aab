"""Run Hearth's window; if it fails, show why, offer Repair, and try again after it. Where it asks for that, start anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from app.launcher import failure, repair_page, slot_lock, slots
from app.launcher.console import WINDOWS, Refused, tell
from app.launcher.install import ensure_ready
from app.launcher.slots import python_of, read_requirements

ENDED_ON_PURPOSE: Final = frozenset({0, 130, -1, -2, -15, 0xC000013A})
"""A process ended by the window, the keyboard, a closed terminal or the system exits so; the last is Windows'."""
MISTYPED: Final = 2
RESTART: Final = 75
"""A window exits so if it is to be opened anew, by what was made beside it."""
LEAVE_S: Final = 20.0
"""The processes of an ended window may take so long to end too; until then its environment cannot be exchanged."""


def run_command(command: Sequence[str]) -> int:
    """Replace this process by the command; on Windows, which cannot do that, wait for it."""
    if not WINDOWS:
        os.execv(command[0], list(command))
    return wait_for(subprocess.Popen(command))


def run_window(words: Sequence[str], folder: Path) -> int:
    """Run the window, and again after each repair of a failure; return its exit code."""
    if named := find_home(words):
        os.environ["HEARTH_HOME"] = named  # a report of a failed start lies there, too
    tries = 0
    while True:
        failed: failure.StartFailure | None
        try:
            python = python_of(ensure_ready(folder, read_requirements()))
            code, failed = run_once([str(python), "-I", "-X", "utf8", "-m", "app", *words])
        except Refused as fault:
            tell(fault.sentence, before="hearth: ")
            report = f"{fault}\n\n{failure.read_tail(folder / 'install.log')}"
            code, failed = 2, failure.describe(report, fault.sentence)
        if code == RESTART:
            return restart(words, folder)
        if failed is None:
            return code
        done = repair_page.offer_repair(failed, folder, "--no-browser" not in words, tries)
        if done == "back":
            return restart(words, folder)
        if not done:
            return code
        tries += 1


def restart(words: Sequence[str], folder: Path) -> int:
    """Start anew, by the start.py that the owner has, once nothing runs from the environment any more."""
    until_s = time.monotonic() + LEAVE_S
    while time.monotonic() < until_s:
        try:
            slot_lock.require_unused(*slots.both_slots(folder))
            break
        except Refused:
            time.sleep(0.2)
    return run_command([sys.executable, str(slots.find_place() / "start.py"), *words])


def find_home(words: Sequence[str]) -> str:
    """Return the folder that the words name for Hearth's data; "" where they name none."""
    for index, word in enumerate(words):
        if word == "--home":
            return next(iter(words[index + 1 :]), "")
        if word.startswith("--home="):
            return word.removeprefix("--home=")
    return ""


def run_once(command: list[str]) -> tuple[int, failure.StartFailure | None]:
    """Run the window once; return its exit code, and what went wrong unless it was ended on purpose. Its stderr is forwarded."""
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        left = Path(folder) / "failure.json"
        child = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, failure.FILE_VARIABLE: str(left)})
        last = bytearray()
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        passing = threading.Thread(target=forward_stderr, args=(child, last), name="last words", daemon=True)
        passing.start()
        try:
            code = wait_for(child)
        finally:
            signal.signal(signal.SIGTERM, before)
        passing.join(timeout=5)
        found = failure.read(left)
    if found is not None or code in (*ENDED_ON_PURPOSE, MISTYPED, RESTART):
        return code, found
    said = last.decode("utf-8", "replace")
    return code, failure.describe_untranslated(f"{failure.find_sentence(said)} ({code})", said)


def wait_for(child: subprocess.Popen[Any]) -> int:
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child gets it too and reports how it ends
            continue


def forward_stderr(child: subprocess.Popen[bytes], last: bytearray) -> None:
    assert child.stderr is not None
    while piece := os.read(child.stderr.fileno(), 4096):
        sys.stderr.buffer.write(piece)
        sys.stderr.flush()
        last += piece
        del last[: -failure.TAIL_BYTES]
