"""One Hearth at a time for one home: a lock that the system frees when its holder dies, and the way to the one that runs."""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path
from typing import IO, Any, Final

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import atomic_write
from app.sentence import Trouble, say

START_S: Final = 20.0
"""So long the other one may take from its lock to its first answer."""
PING: Final = "hearth/ping"


class Instance:
    def __init__(self, folder: Path) -> None:
        self._lock, self._facts = folder / "open.lock", folder / "open.json"
        self._held: IO[str] | None = None
        self.id = secrets.token_hex(16)

    def take(self) -> bool:
        """Whether we are the only one now."""
        held = self._lock.open("a+")
        if not locked(held):
            held.close()
            return False
        self._held = held
        self._facts.unlink(missing_ok=True)  # Left by one that died.
        return True

    def tell(self, address: str) -> None:
        """Where we answer, for a second one."""
        atomic_write.write_text(self._facts, json.dumps({"address": address, "id": self.id, "process": os.getpid()}))

    def leave(self) -> None:
        if self._held is not None:
            self._facts.unlink(missing_ok=True)
            self._held.close()
            self._held = None

    def other(self, wait_s: float = START_S) -> str:
        """The address of the one that holds the lock, once it answers."""
        limit_s = time.monotonic() + wait_s
        process = 0
        while True:
            facts = self._read()
            process = facts.get("process", process)
            if facts and answers(facts["address"], facts["id"]):
                return str(facts["address"])
            if time.monotonic() > limit_s:
                break
            time.sleep(0.2)
        raise Trouble(say("open.silent", "Hearth runs already (process {process}), but it does not answer. End that process, then start Hearth again.", process=process))  # fmt: skip

    def _read(self) -> dict[str, Any]:
        try:
            facts = json.loads(self._facts.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) and {"address", "id"} <= set(facts) else {}


def answers(address: str, id_: str) -> bool:
    """That one, and not another program that has its port by now."""
    try:
        # Its certificate names the machine's public name, not loopback; the id says that it is ours.
        said = httpx.get(f"{address.rstrip('/')}/{PING}", timeout=2, trust_env=False, verify=False)
        return said.status_code == 200 and said.json().get("id") == id_
    except (httpx.HTTPError, ValueError):
        return False


def route(id_: str) -> Route:
    def ping(request: Request) -> Response:
        return JSONResponse({"id": id_})

    return Route(f"/{PING}", ping)


def locked(file: IO[str]) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
