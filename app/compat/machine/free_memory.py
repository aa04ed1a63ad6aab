"""Read how much of the computer's memory programs can still take at once. psutil's answer for macOS leaves out most of the files that it caches."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import Final

import psutil

_ASKS: Final = ("/usr/bin/vm_stat",)
_GIVEN_BACK: Final = ("Pages free", "Pages purgeable", "File-backed pages")
"""What macOS gives to whoever asks for memory, without compressing or writing anything: nothing in it is lost."""
_HOLDS_S: Final = 1.0
_latest: tuple[float, int] = 0.0, 0
"""When macOS was asked, and its answer: a program is started for it."""


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
        return subprocess.run(_ASKS, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def parse_vm_stat(text: str) -> int:
    """Return the bytes that are given back at once; 0 if the text says nothing of them."""
    size = re.search(r"page size of (\d+) bytes", text)
    counts = [re.search(rf"^{name}: +(\d+)\.?$", text, re.MULTILINE) for name in _GIVEN_BACK]
    return int(size[1]) * sum(int(each[1]) for each in counts if each) if size else 0
