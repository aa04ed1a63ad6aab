"""The machines process of a helper: it keeps a worker at the main machine, and comes back by itself when the connection was lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from distributed.comm import Comm, connect
from distributed.core import Status

from app.machines.cluster import dask_setup
from app.machines.cluster.dask_setup import Listener, Message, Pipe
from app.machines.cluster.scheduler import EVENT_TOPIC, HELLO
from app.machines.cluster.worker import Ask, Errands, HelperWorker, fetch
from app.machines.joining.certificates import identity_in, read_id
from app.machines.joining.versions import read_versions

AGAIN_S, AGAIN_MOST_S = 1.0, 30.0
"""The wait before the main machine is tried again; it doubles up to the second figure."""
HELLO_S: Final = 10.0


class Helper:
    def __init__(self, pipe: Listener, arguments: dict[str, Any]) -> None:
        folder = Path(arguments["folder"])
        identity = identity_in(folder)
        self._id, self._security = read_id(identity.certificate.read_text()), dask_setup.make_security(identity)
        self._main, self._scratch = arguments["main"], Path(arguments["scratch"])
        self._announced: list[str] = []
        """Addresses at which somebody says that the main machine is; only its certificate tells."""
        self._pipe, self._errands = pipe, Errands(pipe, self._scratch / "files")
        self._models = ModelFetch(pipe, self._ask_for_block)
        self._closing, self._paused = asyncio.Event(), False
        self._facts: Any = None
        self._worker: HelperWorker | None = None

    def hear(self, message: Message) -> None:
        match message["op"]:
            case "pause":
                self._paused = bool(message["paused"])
                if self._paused:
                    self._errands.give_all_back()
                self._apply_pause()
            case "facts":
                self._facts = message["facts"]
                self._send_facts()
            case "answer":
                if self._worker is not None:
                    self._worker.log_event(EVENT_TOPIC, {"question": message["question"], "answer": message["answer"]})
            case "announced":
                self._announced = message["addresses"]
            case "fetch-model":
                self._models.start(message)
            case "leave-model":
                self._models.leave()
            case "close":
                self._closing.set()
                self._errands.give_all_back()
            case _:
                self._errands.hear(message)

    def _ask_for_block(self, **values: Any) -> dict[str, Any]:
        """Called in the thread that fetches a model."""
        if (worker := self._worker) is None:
            raise ConnectionError
        return worker.ask("hearth_fetch", **values)

    def _apply_pause(self) -> None:
        if self._worker is not None and self._worker.status in (Status.running, Status.paused):
            self._worker.status = Status.paused if self._paused else Status.running

    def _send_facts(self) -> None:
        if self._worker is not None and self._facts is not None:
            self._worker.log_event(EVENT_TOPIC, {"facts": self._facts})

    async def run(self) -> None:
        wait_s = AGAIN_S
        while not self._closing.is_set():
            try:
                if not await self._find_main():
                    return
                await self._work()
                wait_s = AGAIN_S
            except (OSError, RuntimeError, ValueError) as fault:  # dask raises RuntimeError around what kept a worker from starting
                self._pipe.tell("offline", fault=str(fault)[:200])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait_s)
            wait_s = min(2 * wait_s, AGAIN_MOST_S)

    async def _find_main(self) -> bool:
        """Greet the main machine where it was last, else where it is announced. Raise OSError if nobody answers who has its certificate."""
        try:
            return await self._greet(self._main)
        except (OSError, RuntimeError, ValueError):
            for address in self._announced:
                with contextlib.suppress(OSError, RuntimeError, ValueError):
                    return await self._move(address)
            raise

    async def _move(self, address: str) -> bool:
        welcome = await self._greet(address)
        self._main = address
        self._pipe.tell("moved", address=address)
        return welcome

    async def _greet(self, address: str) -> bool:
        """Ask whether this machine may still come; tell the keeper why not."""
        comm = await connect(address, timeout=HELLO_S, **self._security.get_connection_args("worker"))
        try:
            answer = comm.remote_info if "refused" in comm.remote_info else await asyncio.wait_for(_say_hello(comm), HELLO_S)
        finally:
            comm.abort()
        refused = answer.get("refused") if isinstance(answer, dict) else "odd"
        if refused:
            self._pipe.tell("refused", reason=refused, versions=answer.get("versions") if isinstance(answer, dict) else None)
        return not refused

    async def _work(self) -> None:
        options = {"host": "127.0.0.1", "protocol": "tls", "name": self._id, "contact_address": dask_setup.name_address(self._id)}
        directory = self._scratch / "dask"
        directory.mkdir(parents=True, exist_ok=True)
        worker = HelperWorker(
            self._main, self._errands, security=self._security, local_directory=str(directory), death_timeout=HELLO_S, **options
        )
        async with worker as self._worker:
            self._pipe.tell("online")
            self._apply_pause()
            self._send_facts()
            ends = [asyncio.ensure_future(worker.finished()), asyncio.ensure_future(self._closing.wait())]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()
        self._worker = None
        self._pipe.tell("offline", fault="")


async def _say_hello(comm: Comm) -> Any:
    await comm.write({"op": HELLO, "versions": read_versions()})
    return await comm.read()


async def serve(connection: Any, arguments: dict[str, Any]) -> None:
    """Lend until the keeper says `close` or is gone, or the main machine refuses this one."""
    pipe = Pipe(connection)
    helper = Helper(pipe, arguments)
    pipe.listen(asyncio.get_running_loop(), helper.hear)
    await helper.run()


TOLD_S: Final = 1.0
"""How often the keeper's process is told how far it is."""
_PART: Final = ".part"


class ModelFetch:
    def __init__(self, pipe: Listener, ask: Ask) -> None:
        """`ask`: the main machine, for a block; it raises whatever where there is none."""
        self._pipe, self._ask = pipe, ask
        self._turn, self._attempt = threading.Lock(), 0

    def start(self, message: Message) -> None:
        """Fetch what a message names, in place of what was fetched before."""
        self._attempt += 1
        values = (self._attempt, message["model"], message["files"], Path(message["folder"]))
        threading.Thread(target=self._wait_and_run, args=values, name="model-fetch", daemon=True).start()

    def leave(self) -> None:
        self._attempt += 1

    def _wait_and_run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        with self._turn:  # the one before may have a block on its way to the same file
            self._run(attempt, model, files, folder)

    def _run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        done, told_s = 0, time.monotonic()
        try:
            for sha256, size in files.items():
                part = folder / f"{sha256}{_PART}"
                for length in fetch(partial(self._ask, model=model), sha256, size, part):
                    if self._attempt != attempt:
                        return
                    done += length
                    if time.monotonic() - told_s > TOLD_S:
                        told_s = time.monotonic()
                        self._pipe.tell("model-step", model=model, done=done, missing=sum(files.values()))
                part.replace(folder / sha256)
        except Exception as fault:  # the connection, the disk, or bytes that are not as they were said to be
            self._pipe.tell("model-lost", model=model, fault=str(fault)[:200])
            return
        self._pipe.tell("model-here", model=model)
