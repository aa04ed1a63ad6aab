"""The port at which helpers find the main machine: kept over restarts, as they know it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Final

from app.base import atomic_write
from app.machines.joining.code import PORT_MOST

_FILE: Final = "port.json"


def read_port(folder: Path) -> int:
    """Return the port that helpers know; 0 if there is none yet."""
    try:
        port = json.loads((folder / _FILE).read_text())
    except (OSError, ValueError):
        return 0
    return port if isinstance(port, int) and 0 < port <= PORT_MOST else 0


def keep_port(folder: Path, port: int) -> None:
    atomic_write.write_text(folder / _FILE, json.dumps(port))


def reserve_port(folder: Path) -> int:
    """Return the port that helpers know; choose one that is free now where nobody knows any."""
    port = read_port(folder)
    if not port:
        with socket.socket() as listener:
            listener.bind(("", 0))
            port = listener.getsockname()[1]
        keep_port(folder, port)
    return port
