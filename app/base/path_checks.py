"""Path checks that never raise: invalid names and vanished files count as missing."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # the name is too long, or has a character that is not allowed
        return False


def size_bytes(path: Path) -> int:
    """Return the size of a file or folder; 0 if there is none."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # as above
        return 0


def find_path(wanted: str) -> Path | None:
    """Return the path of an existing file or folder, with ~ expanded."""
    try:
        path = Path(wanted).expanduser()
        return path.resolve() if wanted and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: ~ of an unknown user
        return None
