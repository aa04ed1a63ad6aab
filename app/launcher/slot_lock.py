"""Know which processes run from an environment: each holds the byte of its number in a file, and a slot is emptied under all of them.

The system frees a byte when its holder dies. The standard library only. POSIX also frees it when its holder closes the
file, however often opened: who holds a slot does not look at it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from app.base.sentence import say
from app.launcher.console import Refused

SPAN = 1 << 30  # above all numbers of processes, and the most that Windows locks at once
HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


@functools.cache
def hold(slot: Path | None = None) -> None:
    """Hold the slot, by default that of this Python, until this process ends, also as another program in its place."""
    slot = slot or Path(sys.prefix)
    if not (slot / "hearth.json").is_file():  # an environment of somebody else's
        return
    with contextlib.suppress(OSError):  # a disk without locks, or another user's checkout
        file = os.open(slot.with_suffix(".lock"), os.O_RDONLY | os.O_CREAT, 0o666)
        os.set_inheritable(file, True)
        _lock(file, os.getpid() % SPAN, 1, hold=True)


def require_unused(*slots: Path) -> None:
    """Refuse to go on while a process runs from these slots."""
    for slot in slots:
        with _opened(slot) as file:
            _refuse_holders(file)


@contextlib.contextmanager
def emptied(slot: Path) -> Iterator[None]:
    """Let nobody start from this slot meanwhile; refuse where somebody runs from it, this process included."""
    if slot.resolve() == Path(sys.prefix).resolve():
        raise Refused(
            say(
                "start.own-python",
                "Hearth was started with the Python in {slot}, which it would remove. Run the same with the system's Python.",
                slot=str(slot),
            )
        )
    with _opened(slot) as file:
        while not _try_lock(file, 0, SPAN):
            _refuse_holders(file)
        yield


@contextlib.contextmanager
def _opened(slot: Path) -> Iterator[int]:
    file = os.open(slot.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield file
    finally:
        os.close(file)  # and with it the lock


def _refuse_holders(file: int) -> None:
    if holders := _find_holders(file, 0, SPAN):
        raise Refused(
            say(
                "start.is-open",
                "Hearth is open ({count:process|processes} {processes}): its window, or a command such as speak or lend. "
                "Close it, then run the same again. Nothing was changed.",
                count=len(holders),
                processes=tuple(map(str, holders)),
            )
        )


def _find_holders(file: int, start: int, length: int) -> list[int]:
    """Return the locked bytes of a range: halve it where it cannot be locked."""
    if _try_lock(file, start, length):
        with contextlib.suppress(OSError):
            _unlock(file, start, length)
        return []
    half = length // 2
    return [*_find_holders(file, start, half), *_find_holders(file, start + half, half)] if half else [start]


def _try_lock(file: int, start: int, length: int) -> bool:
    try:
        _lock(file, start, length)
    except OSError as fault:
        return fault.errno not in HELD  # a disk without locks knows of nobody
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, start: int, length: int, hold: bool = False) -> None:
        """Lock a range alone, at once or not at all; with `hold`, wait up to 10 s."""
        os.lseek(file, start, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK if hold else msvcrt.LK_NBLCK, length)

    def _unlock(file: int, start: int, length: int) -> None:
        os.lseek(file, start, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, length)

else:
    import fcntl

    def _lock(file: int, start: int, length: int, hold: bool = False) -> None:
        """Lock a range alone, at once or not at all; with `hold`, wait, and only against those who want it alone."""
        fcntl.lockf(file, fcntl.LOCK_SH if hold else fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)

    def _unlock(file: int, start: int, length: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, length, start)
