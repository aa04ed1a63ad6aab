"""Room on the disk: what jobs need before they start, and whether a fault comes from a full disk."""

from __future__ import annotations

import errno
import shutil
from typing import Final

from app.engine.jobs.database import is_full
from app.paths import Home
from app.sentence import Sentence, say

ROOM_BYTES: Final = 100 << 20
"""Free before a job starts: parts and results of a long script, a picture with its unfinished states."""
MB: Final = 1 << 20


def is_disk_full(fault: BaseException) -> bool:
    return is_full(fault) or (isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT))


def read_free_bytes(home: Home) -> int:
    return shutil.disk_usage(home.root).free


def describe_lack(home: Home, needed_bytes: int, waits: bool = True) -> Sentence | None:
    """Say how much to free and where, and whether jobs wait for it; None if there is room."""
    free = read_free_bytes(home)
    if free >= needed_bytes:
        return None
    figures = {"free": free // MB, "needed": needed_bytes // MB, "lack": -(-(needed_bytes - free) // MB)}
    if waits:
        return say(
            "disk.full",
            "The disk with {folder} is full: {free} MB are free, and the next job needs {needed} MB. Free {lack} MB there, "
            "for example by emptying the shelf's bin or removing a model. Jobs wait and then go on by themselves.",
            folder=str(home.root),
            **figures,
        )
    return say(
        "disk.full-now",
        "The disk with {folder} is full: {free} MB are free, and this needs {needed} MB. Free {lack} MB there, for example "
        "by emptying the shelf's bin or removing a model, and run the command again.",
        folder=str(home.root),
        **figures,
    )
