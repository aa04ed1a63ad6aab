"""On a helper: look for its main machine in the network while it does not answer where it was, as routers give other addresses."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.machines.joining.certificates import read_authority
from app.machines.joining.join import move
from app.machines.nearby import Nearby

PATIENCE_S: Final = 5.0
"""A main machine that starts again is there sooner."""


class MainFinder:
    """Called by one thread, but for `note_move`."""

    def __init__(self, folder: Path, tell: Callable[..., None]) -> None:
        """`folder`: of the pairing. `tell`: to the machines process, which tries the addresses and believes only the certificate."""
        self._folder, self._tell = folder, tell
        self._near: Nearby | None = None
        self._id, self._told = "", list[str]()
        self._lost_s = time.monotonic()

    def look(self, online: bool) -> None:
        """Look for the main machine if it is not there; to be called again and again."""
        if online:
            self._lost_s = time.monotonic()
            self.close()
        elif self._near is None:
            if time.monotonic() - self._lost_s > PATIENCE_S:
                self._id, self._near = read_authority(self._folder), Nearby()
        else:
            found = [name_url(host, port) for host, port in self._near.find(self._id)]
            if found != self._told:
                self._told = found
                self._tell("announced", addresses=found)

    def note_move(self, address: str) -> None:
        """Store where the main machine has answered."""
        host, _, port = address.removeprefix("tls://").rpartition(":")
        move(self._folder, host.strip("[]"), int(port))

    def close(self) -> None:
        if self._near is not None:
            self._near.close()
            self._near, self._told = None, []


def name_url(host: str, port: int) -> str:
    return f"tls://[{host}]:{port}" if ":" in host else f"tls://{host}:{port}"
