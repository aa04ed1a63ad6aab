"""The system's own notification, by the command that shows one; nothing where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

WAIT_S: Final = 5.0
NAME: Final = "Hearth"
MAC: Final = ("osascript", "-e", "on run argv", "-e", "display notification (item 1 of argv) with title (item 2 of argv)", "-e", "end run")
WINDOWS_FOLDER: Final = r"C:\Windows"
WINDOWS: Final = """
$null = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$made = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$lines = $made.GetElementsByTagName('text')
$null = $lines.Item(0).AppendChild($made.CreateTextNode($env:HEARTH_TITLE))
$null = $lines.Item(1).AppendChild($made.CreateTextNode($env:HEARTH_WORDS))
$shows = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($shows).Show([Windows.UI.Notifications.ToastNotification]::new($made))
"""
"""PowerShell, which each Windows has, shows it under its own name: only a program that is registered may show one."""


def find_powershell() -> str:
    """Return it with its path: without, Windows would take one of that name from the working folder first."""
    return rf"{os.environ.get('SYSTEMROOT', WINDOWS_FOLDER)}\System32\WindowsPowerShell\v1.0\powershell.exe"


def write_command(words: str, picture: Path | None) -> tuple[str, ...]:
    """Return the command that shows it; nothing where there is none. Words are arguments or variables of their own, and no program. Only Linux shows a
    picture of ours."""
    if sys.platform == "darwin":
        return (*MAC, words, NAME)
    if sys.platform == "win32":
        return (find_powershell(), "-NoProfile", "-NonInteractive", "-Command", WINDOWS)
    if shutil.which("notify-send") is None:
        return ()
    icon = ("-i", str(picture)) if picture is not None else ()
    return ("notify-send", "-a", NAME, *icon, "--", NAME, words)


def show_notice(words: str, picture: Path | None = None) -> bool:
    """Show a notification; return False where the system shows none."""
    command = write_command(words, picture)
    hidden = 0
    if sys.platform == "win32":
        hidden = subprocess.CREATE_NO_WINDOW
    told = {**os.environ, "HEARTH_TITLE": NAME, "HEARTH_WORDS": words}
    try:
        return (
            bool(command) and subprocess.run(command, capture_output=True, timeout=WAIT_S, creationflags=hidden, env=told).returncode == 0
        )
    except (OSError, subprocess.SubprocessError):
        return False
