"""Path checks that never raise: invalid names and vanished files count as missing."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or with a sign that no name may have
        return False


def size_bytes(path: Path) -> int:
    """None of a file that is not there, or has gone since it was listed."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def find_path(wanted: str) -> Path | None:
    """A file or a folder, with ~ understood."""
    try:
        path = Path(wanted).expanduser()
        return path.resolve() if wanted and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: ~ of a person who is not known
        return None
