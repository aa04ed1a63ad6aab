"""Hearth's window, watched by start.py: where it ends badly, what went wrong is shown, with Repair, and then it is tried again.

Runs under any Python, so it imports nothing but the standard library and `start`; the page lives in `app.launcher.repair_page`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

LEFT: Final = "HEARTH_FAILURE"
"""Names the file in which Hearth leaves what went wrong for whoever started it."""
TAIL_BYTES: Final = 16 << 10
ENDED: Final = frozenset({0, 130, -1, -2, -15, 0xC000013A})
"""Exit codes of one that was told to end: by the window or the keyboard, by a terminal that went away, by the system; the last is Windows'."""
MISTYPED: Final = 2


@dataclass(frozen=True, slots=True)
class Failure:
    """`english` and `chinese` are one sentence; `report` is for whoever looks after Hearth, without the name of this person's home."""

    english: str
    chinese: str
    report: str


def failure(told: str, report: str) -> Failure:
    return Failure(told, told, report.replace(str(Path.home()), "~"))


def kept(file: Path) -> Failure | None:
    """What Hearth left, if it did."""
    try:
        said = json.loads(file.read_text("utf-8"))
        return Failure(**said)
    except (OSError, ValueError, TypeError):
        return None


def keep(file: Path, failed: Failure) -> None:
    file.write_text(json.dumps(asdict(failed)), "utf-8")


def opened(words: Sequence[str], folder: Path) -> int:
    """Hearth's window; and where it ends badly, a page that says why and offers Repair, after which it is tried again."""
    import start

    tries = 0
    while True:
        failed: Failure | None
        try:
            python = start.python_of(start.ready(folder, start.wanted()))
            code, failed = attempt([str(python), "-I", "-X", "utf8", "-m", "app", *words])
        except start.Refused as fault:
            start.tell(f"hearth: {fault}")
            code, failed = 2, failure(str(fault), f"{fault}\n\n{tail(folder / 'install.log')}")
        if failed is None:
            return code
        from app.launcher.repair_page import offered

        if not offered(failed, folder, "--no-browser" not in words, tries):
            return code
        tries += 1


def attempt(command: list[str]) -> tuple[int, Failure | None]:
    """Its exit code, and what went wrong where it did not end by somebody's will. Its last words are kept while they are passed on."""
    with tempfile.TemporaryDirectory(prefix="hearth-") as folder:
        left = Path(folder) / "failure.json"
        child = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, LEFT: str(left)})
        last = bytearray()
        before = signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        passing = threading.Thread(target=passed_on, args=(child, last), name="last words", daemon=True)
        passing.start()
        try:
            code = ended(child)
        finally:
            signal.signal(signal.SIGTERM, before)
        passing.join(timeout=5)
        found = kept(left)
    if found is not None or code in ENDED or code == MISTYPED:
        return code, found
    said = last.decode("utf-8", "replace")
    return code, failure(f"{sentence_in(said)} ({code})", said)


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
        del last[:-TAIL_BYTES]


def written(failed: Failure) -> Path:
    import start

    for folder in (start.data_folder() / "logs", Path(tempfile.gettempdir())):
        file = folder / "hearth-did-not-start.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{failed.english}\n\n{failed.report}\n", "utf-8")
        except OSError:
            continue
        return file
    raise OSError("there is no folder to write to")


def tail(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def sentence_in(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    ours = [line.removeprefix("hearth: ") for line in lines if line.startswith("hearth: ")]
    return (ours or lines or ["?"])[-1]
