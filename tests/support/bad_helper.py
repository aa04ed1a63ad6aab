"""A helper that turned bad: let in as pairing does, it says whatever it likes over TLS. And how much memory that costs the main machine."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import psutil
from distributed.comm import connect

from app.machines.cluster.dask_setup import name_address
from app.machines.cluster.scheduler import HELLO
from app.machines.hub import Hub, main_folder
from app.machines.joining import certificates
from app.machines.joining.certificates import Identity
from app.machines.joining.versions import read_versions
from app.machines.tasks.portable import Portable
from tests.support.waiting import WAIT_S


def let_in(hub: Hub, folder: Path) -> tuple[str, Identity]:
    """Sign a helper's key and enter it, as pairing does."""
    main = main_folder(hub._home)
    id_, certificate = certificates.sign_request(main, certificates.make_request(folder))
    hub.register.add(id_, folder.name)
    return id_, certificates.keep_membership(folder, (main / "authority.pem").read_text(), certificate)


ANSWERED = "test: wait for an answer"


async def talk(hub: Hub, identity: Identity, *messages: dict[str, Any], patience_s: float = WAIT_S) -> list[Any]:
    """Send messages over one connection; return the answers, up to where it was closed."""
    comm = await connect(f"tls://127.0.0.1:{hub.port}", timeout=patience_s, ssl_context=identity.client_context(), require_encryption=True)
    answers = []
    try:
        for message in messages:
            answered = message.pop(ANSWERED, True)
            await comm.write(message)
            if answered:
                answers.append(await asyncio.wait_for(comm.read(), WAIT_S))
        if not answered:
            await asyncio.sleep(0.2)  # what was written last arrives first
    except (TimeoutError, OSError) as fault:
        answers.append(fault)
    finally:
        comm.abort()
    return answers


def ask(hub: Hub, identity: Identity, *messages: dict[str, Any], patience_s: float = WAIT_S) -> list[Any]:
    return asyncio.run(talk(hub, identity, *messages, patience_s=patience_s))


def works(hub: Hub, identity: Identity) -> bool:
    return ask(hub, identity, {"op": HELLO, "versions": read_versions()}) == [{"versions": read_versions()}]


METRICS = {
    "cpu": 0.0, "memory": 0, "time": 0.0, "task_counts": {}, "bandwidth": {"total": 1, "workers": {}, "types": {}}, "digests_total_since_heartbeat": {},
    "managed_bytes": 0, "spilled_bytes": {"memory": 0, "disk": 0}, "transfer": {}, "event_loop_interval": 0.0, "host_disk_io": {},
}  # fmt: skip
REGISTER: dict[str, Any] = {
    "op": "register-worker", "reply": False, "status": "running", "nthreads": 1, "now": 0.0, "resources": {}, "memory_limit": 0,
    "local_directory": "", "services": {}, "nanny": None, "pid": 1, "versions": {}, "metrics": METRICS, "extra": {}, "stimulus_id": "x",
    "server_id": "x",
}  # fmt: skip


def takes_a_task(hub: Hub, identity: Identity, id_: str) -> bool:
    async def wait() -> bool:
        stream = await connect(
            f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=identity.client_context(), require_encryption=True
        )
        try:
            await stream.write({**REGISTER, "address": name_address(id_), "name": id_})
            await asyncio.wait_for(stream.read(), WAIT_S)
            task = Portable(json.dumps({"files": {}}), {}, "a task")
            hub.submit(f"task-{id_}", task, id_, lambda machine, event: None, lambda end: None)
            while True:
                said = await asyncio.wait_for(stream.read(), WAIT_S)
                if any(each.get("op") == "compute-task" for each in said if isinstance(each, dict)):
                    return True
        finally:
            hub.stop(f"task-{id_}")
            stream.abort()

    return asyncio.run(wait())


class Peak:
    """The most memory that a process takes meanwhile."""

    def __init__(self, process: psutil.Process) -> None:
        self._process, self._ended, self._most = process, threading.Event(), 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            self._most = max(self._most, self._process.memory_info().rss)

    def end(self) -> int:
        self._ended.set()
        self._thread.join()
        return max(self._most, self._process.memory_info().rss)
