"""Whether a path that somebody typed is there. A name that no file system takes is not there, and no accident."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or with a sign that no name may have
        return False


def found(wanted: str) -> Path | None:
    """A file or a folder, with ~ understood."""
    try:
        path = Path(wanted).expanduser()
        return path.resolve() if wanted and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: ~ of a person who is not known
        return None
