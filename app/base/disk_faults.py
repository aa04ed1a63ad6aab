"""Tell from an error what is wrong with a disk: no room, or a file that cannot be used now though it may be whole."""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_ROOM_ON_WINDOWS: Final = frozenset({39, 112, 1295})
"""They are ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL and ERROR_DISK_QUOTA_EXCEEDED, of which Python maps one to ENOSPC."""
SQLITE_NO_ROOM: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
"""SQLite reports a used-up quota, and a full disk where it makes its own files, as an I/O error."""
SQLITE_NO_ACCESS: Final = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH})


PLENTY_BYTES: Final = 1 << 30
"""With more than this free, a write that finds no room met a quota or another limit."""


def is_disk_full(fault: BaseException) -> bool:
    """Tell whether a write found no room, on the disk or within a quota, so that a later try may succeed."""
    if isinstance(fault, OSError):
        return fault.errno in NO_ROOM or getattr(fault, "winerror", None) in NO_ROOM_ON_WINDOWS
    return _read_sqlite_code(fault) in SQLITE_NO_ROOM


def is_database_refused(fault: BaseException) -> bool:
    """Tell whether SQLite may not open or write a file, which says nothing about what it holds."""
    return _read_sqlite_code(fault) in SQLITE_NO_ACCESS


def word_fault(fault: BaseException) -> str:
    """Return the system's own words for an error, without the path."""
    return getattr(fault, "strerror", None) or str(fault) or type(fault).__name__


def _read_sqlite_code(fault: BaseException) -> int:
    return int(getattr(fault, "sqlite_errorcode", 0)) & 0xFF if isinstance(fault, sqlite3.Error) else 0
