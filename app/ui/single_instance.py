"""Allow one running Hearth per data folder, and find the address of the running one."""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from filelock import FileLock, Timeout
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.sentence import say
from app.base.stored_json import is_right
from app.base.trouble import Trouble

START_S: Final = 20.0
"""A running instance may take so long from its lock to its first answer."""
PING_PATH: Final = "hearth/ping"
FRONT_PATH: Final = "hearth/front"
PORT_MOST: Final = 65_535


class StoredFacts(TypedDict):
    address: str
    id: str
    process: int


FACTS: Final = TypeAdapter(StoredFacts)


class Instance:
    def __init__(self, folder: Path) -> None:
        self._lock, self._facts, self._port = FileLock(folder / "open.lock", timeout=0), folder / "open.json", folder / "open-port"
        self.id = secrets.token_hex(16)

    def acquire(self) -> bool:
        """Try to become the only instance. The system frees the lock when its holder dies."""
        try:
            self._lock.acquire()
        except Timeout:
            return False
        self._facts.unlink(missing_ok=True)  # left by an instance that died
        return True

    def publish(self, address: str) -> None:
        """Write down the address for a second start to find, and its port for the next first one."""
        atomic_write.write_text(self._facts, json.dumps({"address": address, "id": self.id, "process": os.getpid()}))
        atomic_write.write_text(self._port, str(urlsplit(address).port))

    def find_last_port(self) -> int | None:
        """Return the port that the last instance had; None where it cannot be told."""
        try:
            port = int(self._port.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return port if 0 < port <= PORT_MOST else None

    def release(self) -> None:
        if self._lock.is_locked:
            self._facts.unlink(missing_ok=True)
            self._lock.release()

    def find_running(self, wait_s: float = START_S) -> str:
        """Return the address of the instance that holds the lock, once it answers."""
        limit_s = time.monotonic() + wait_s
        process = 0
        while True:
            facts = self._read_facts()
            process = facts.get("process", process)
            if facts and is_answering(facts["address"], facts["id"]):
                return str(facts["address"])
            if time.monotonic() > limit_s:
                break
            time.sleep(0.2)
        raise Trouble(
            say(
                "open.silent",
                "Hearth is already running (process {process}) but does not answer. End that process, then start Hearth again.",
                process=process,
            )
        )

    def _read_facts(self) -> dict[str, Any]:
        try:
            facts = json.loads(self._facts.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return facts if is_right(FACTS, facts) else {}


def is_answering(address: str, id_: str) -> bool:
    """Return whether this very instance answers, not another program that now has its port."""
    try:
        # Its certificate names the public host, not loopback; the id proves that it is this Hearth.
        answer = httpx.get(f"{address.rstrip('/')}/{PING_PATH}", timeout=2, trust_env=False, verify=False)
        return answer.status_code == 200 and answer.json().get("id") == id_
    except (httpx.HTTPError, ValueError):
        return False


def bring_to_front(address: str) -> bool:
    """Ask the running instance to show its own window; return False where it has none."""
    try:
        answer = httpx.post(f"{address.rstrip('/')}/{FRONT_PATH}", json={}, timeout=10, trust_env=False)
        return answer.status_code == 200 and bool(answer.json().get("window"))
    except (httpx.HTTPError, ValueError):
        return False


def ping_route(id_: str) -> Route:
    def ping(request: Request) -> Response:
        return JSONResponse({"id": id_})

    return Route(f"/{PING_PATH}", ping)
