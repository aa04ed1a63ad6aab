"""Files that may not be used for a while: without their permissions and, for the system's owner, without the right to pass over them."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VERSION: Final = 0x20080522
"""In this version of Linux's capget and capset, a set has 64 bits in two halves."""
PASS_OVER: Final = 0b110
"""The two bits are CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Half(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def denied(path: Path, mode: int = 0) -> Iterator[None]:
    """Give a file or folder this mode, and let this thread obey it even as root."""
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        with _obeying():
            yield
    finally:
        path.chmod(before)


@contextmanager
def _obeying() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, halves = _Header(VERSION, 0), (_Half * 2)()
    assert libc.capget(ctypes.byref(header), halves) == 0
    before = halves[0].effective
    halves[0].effective = before & ~PASS_OVER
    assert libc.capset(ctypes.byref(header), halves) == 0
    try:
        yield
    finally:
        halves[0].effective = before
        assert libc.capset(ctypes.byref(header), halves) == 0
