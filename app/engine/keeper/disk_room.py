"""Room on the disk: what jobs need before they start, and what is said and done where a write is refused."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Final

from app.base.disk_faults import word_fault
from app.base.other_disk import is_away, word_away
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import DiskFull, QuotaMet

ROOM_BYTES: Final = 100 << 20
"""A job starts with so much free, for the parts and results of a long script, or a picture with its unfinished states."""
MB: Final = 1 << 20
AGAIN_S, AGAIN_MOST_S = 30.0, 600.0
"""A job that met a quota is tried again after this wait, which doubles each time up to the second figure."""


def read_free_bytes(folder: Path) -> int:
    """Return what is free where a folder lies, or lay before it was deleted."""
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.exists())).free


def find_fullest(home: Home) -> tuple[int, Path]:
    """Return what is free where Hearth works and where results go, whichever is less: the shelf may lie on another disk."""
    return min((read_free_bytes(folder), folder) for folder in (home.root, home.creations))


def describe_lack(home: Home, needed_bytes: int, waits: bool = True) -> Sentence | None:
    """Say how much to free and where, or which disk is not connected, and whether jobs wait for it; None if there is room."""
    if is_away(home.creations):
        return word_away(home.creations)
    free, folder = find_fullest(home)
    if free >= needed_bytes:
        return None
    figures = {"free": free // MB, "needed": needed_bytes // MB, "lack": -(-(needed_bytes - free) // MB)}
    if waits:
        return say(
            "disk.full",
            "The disk with {folder} is full: {free} MB are free, and the next job needs {needed} MB. Free {lack} MB there, "
            "for example by emptying the shelf's bin or removing a model. Jobs wait and then go on by themselves.",
            folder=str(folder),
            **figures,
        )
    return say(
        "disk.full-now",
        "The disk with {folder} is full: {free} MB are free, and this needs {needed} MB. Free {lack} MB there, for example "
        "by emptying the shelf's bin or removing a model, and run the command again.",
        folder=str(folder),
        **figures,
    )


class DiskRoom:
    """What jobs wait for: free space or, where the system refuses to write in spite of it, the next try."""

    def __init__(self, home: Home, waits: bool) -> None:
        self._home, self._waits = home, waits
        self._needed_bytes, self._again_s, self._wait_s = ROOM_BYTES, 0.0, AGAIN_S
        self._refusal: Sentence | None = None
        self._had_database = home.database.is_file()

    def find_lack(self) -> Sentence | None:
        """Say why no job may start now; None if one may."""
        if self._is_database_gone():
            return self._word_gone()
        if self._refusal is None:
            return describe_lack(self._home, self._needed_bytes, self._waits)
        if time.monotonic() < self._again_s and find_fullest(self._home)[0] < self._needed_bytes:
            return self._refusal
        return describe_lack(self._home, ROOM_BYTES, self._waits)

    def find_obstacle(self) -> Sentence | None:
        """Say what jobs wait for, also while one is tried again."""
        if self._is_database_gone():
            return self._word_gone()
        lack = describe_lack(self._home, self._needed_bytes, self._waits)
        return lack if is_away(self._home.creations) else self._refusal or lack

    def _is_database_gone(self) -> bool:
        return self._had_database and not self._home.database.exists()

    def _word_gone(self) -> Sentence:
        """SQLite goes on with a deleted file, whose rows are gone at the end."""
        return say(
            "disk.database-gone",
            "{file} was deleted or moved while Hearth was open: nothing more is made until it is back. Put it back, or quit Hearth and start it "
            "again: it lists the creations that are still there.",
            file=str(self._home.database),
        )

    def note_full(self, full: DiskFull) -> None:
        """Note that a job found no room: it starts again once there is more, and after a while where a quota refused it."""
        free, _ = find_fullest(self._home)
        self._needed_bytes = free + ROOM_BYTES
        if isinstance(full, QuotaMet):
            self._refusal = self._word_refusal(True, str(dict(full.sentence.values)["fault"]))
            self._again_s = time.monotonic() + self._wait_s
            self._wait_s = min(2 * self._wait_s, AGAIN_MOST_S)
        else:
            self._refusal = None  # room is what lacks now; otherwise the job would begin again at once, over and over

    def note_fault(self, fault: BaseException) -> None:
        """Note that the end of a job could not be stored; where there is room all the same, that is what is told."""
        if find_fullest(self._home)[0] >= ROOM_BYTES:
            self._refusal = self._word_refusal(isinstance(fault, OSError), word_fault(fault))

    def reset(self) -> None:
        """Note that something was stored."""
        self._needed_bytes, self._again_s, self._wait_s, self._refusal = ROOM_BYTES, 0.0, AGAIN_S, None

    def _word_refusal(self, by_quota: bool, fault: str) -> Sentence:
        """SQLite does not say whether a quota or a failing disk refused it."""
        free, folder = find_fullest(self._home)
        figures: dict[str, str | int] = {"folder": str(folder), "fault": fault, "free": free // MB}
        if by_quota:
            return say(
                "disk.quota",
                "The system takes no more data in {folder} ({fault}), though {free} MB are free on that disk: a quota, or the most files that it may "
                "hold. Delete files of yours there. Jobs wait and are tried again by themselves.",
                **figures,
            )
        return say(
            "disk.refuses",
            "The disk with {folder} does not take what Hearth writes ({fault}), though {free} MB are free. If you have a quota there, delete files of "
            "yours; if not, check the disk and its connection. Jobs wait and are tried again by themselves.",
            **figures,
        )
