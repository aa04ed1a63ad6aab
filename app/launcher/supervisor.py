"""Run Hearth's window and watch it: where it ends badly, show why with a Repair button, and try again after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.launcher import failure, repair_page
from app.launcher.console import Refused, tell
from app.launcher.install import ready
from app.launcher.slots import python_of, wanted

ENDED: Final = frozenset({0, 130, -1, -2, -15, 0xC000013A})
"""Exit codes of one that was told to end: by the window or the keyboard, by a terminal that went away, by the system; the last is Windows'."""
MISTYPED: Final = 2


def opened(words: Sequence[str], folder: Path) -> int:
    """Hearth's window; and where it ends badly, a page that says why and offers Repair, after which it is tried again."""
    tries = 0
    while True:
        failed: failure.Failure | None
        try:
            python = python_of(ready(folder, wanted()))
            code, failed = attempt([str(python), "-I", "-X", "utf8", "-m", "app", *words])
        except Refused as fault:
            tell(f"hearth: {fault}")
            code, failed = 2, failure.in_english(str(fault), f"{fault}\n\n{failure.tail(folder / 'install.log')}")
        if failed is None:
            return code
        if not repair_page.offered(failed, folder, "--no-browser" not in words, tries):
            return code
        tries += 1


def attempt(command: list[str]) -> tuple[int, failure.Failure | None]:
    """Its exit code, and what went wrong where it did not end by somebody's will. Its last words are kept while they are passed on."""
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        left = Path(folder) / "failure.json"
        child = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, failure.LEFT: str(left)})
        last = bytearray()
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        passing = threading.Thread(target=passed_on, args=(child, last), name="last words", daemon=True)
        passing.start()
        try:
            code = ended(child)
        finally:
            signal.signal(signal.SIGTERM, before)
        passing.join(timeout=5)
        found = failure.read(left)
    if found is not None or code in ENDED or code == MISTYPED:
        return code, found
    said = last.decode("utf-8", "replace")
    return code, failure.in_english(f"{failure.sentence_in(said)} ({code})", said)


def ended(child: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child has it too, and says how it ends
            continue


def passed_on(child: subprocess.Popen[bytes], last: bytearray) -> None:
    assert child.stderr is not None
    while piece := os.read(child.stderr.fileno(), 4096):
        sys.stderr.buffer.write(piece)
        sys.stderr.flush()
        last += piece
        del last[:-failure.TAIL_BYTES]
