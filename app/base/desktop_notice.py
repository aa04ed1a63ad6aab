"""A notification of the system itself, where the page can show none: macOS and Linux. On Windows the page's own is the system's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

WAIT_S: Final = 5.0
MAC: Final = ("osascript", "-e", "on run argv", "-e", "display notification (item 1 of argv) with title (item 2 of argv)", "-e", "end run")
NAME: Final = "Hearth"


def write_command(words: str, picture: Path | None) -> tuple[str, ...]:
    """Return the command that shows it; nothing where there is none. Words are arguments of their own, and no program."""
    if sys.platform == "darwin":
        return (*MAC, words, NAME)
    if sys.platform == "win32" or shutil.which("notify-send") is None:
        return ()
    icon = ("-i", str(picture)) if picture is not None else ()
    return ("notify-send", "-a", NAME, *icon, "--", NAME, words)


def show_notice(words: str, picture: Path | None = None) -> bool:
    """Show a notification; return False where the system shows none."""
    command = write_command(words, picture)
    try:
        return bool(command) and subprocess.run(command, capture_output=True, timeout=WAIT_S).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False
