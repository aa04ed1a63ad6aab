"""Read how much of the computer's memory programs can still take at once. psutil's answer for macOS leaves out most of the files that it caches."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Final

import psutil

_ASKS: Final = ("/usr/bin/vm_stat",)
_GIVEN_BACK: Final = ("Pages free", "Pages purgeable", "File-backed pages")
"""macOS gives these to whoever asks for memory, without compressing or writing anything: nothing in them is lost."""
_HOLDS_S: Final = 1.0
_latest: tuple[float, int] = 0.0, 0
"""It holds when macOS was asked, and its answer: a program is started for it."""


def read_available_bytes() -> int:
    available = int(psutil.virtual_memory().available)
    return max(available, _ask_mac()) if sys.platform == "darwin" else available


def _ask_mac() -> int:
    global _latest
    asked_s, answer = _latest
    if not asked_s or time.monotonic() - asked_s > _HOLDS_S:
        answer = parse_vm_stat(_run())
        _latest = time.monotonic(), answer
    return answer


def _run() -> str:
    try:
        # Without close_fds Python has the system start it, where fork() would first copy all tables of an engine's memory.
        return subprocess.run(_ASKS, capture_output=True, text=True, timeout=5, check=False, close_fds=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def parse_vm_stat(text: str) -> int:
    """Return the bytes that are given back at once; 0 if the text says nothing of them."""
    size = text.partition("page size of ")[2].partition(" ")[0]
    counts = {name: count.strip(" .") for name, _, count in (line.partition(":") for line in text.splitlines())}
    pages = sum(int(counts[name]) for name in _GIVEN_BACK if counts.get(name, "").isdecimal())
    return int(size) * pages if size.isdecimal() else 0
