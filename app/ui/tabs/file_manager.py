"""Open the system's file manager at a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from app.base.sentence import say
from app.base.trouble import Trouble


def reveal(path: Path) -> None:
    """Open the file's folder, with the file selected where the file manager can do that."""
    command: str | list[str]
    if sys.platform == "darwin":
        command = ["open", "-R", str(path)]
    elif os.name == "nt":
        command = f'explorer /select,"{path}"'  # explorer wants quotes around the path alone
    else:
        command = ["xdg-open", str(path.parent)]
    try:
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError as fault:
        raise Trouble(say("shelf.no-manager", "Could not open a file manager. The file is at {path}.", path=str(path))) from fault
