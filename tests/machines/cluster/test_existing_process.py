"""The client of a foreign Dask cluster: what a worker says late, cannot say or says of another version, and a full disk here."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines.cluster import existing_process, existing_worker
from app.machines.cluster.existing_process import Worker, Workers
from app.machines.joining.versions import COMPARED, read_versions
from tests.support.waiting import WAIT_S

Said = dict[str, Any]
FACTS: Said = {"card": "a card", "models": [], "paused": False}


class Told:
    """The keeper's side of the pipe."""

    def __init__(self) -> None:
        self.said = list[tuple[str, Said]]()

    def tell(self, op: str, **values: Any) -> None:
        self.said.append((op, values))

    def take(self) -> list[str]:
        ops = [op for op, _ in self.said]
        self.said.clear()
        return ops


class Client:
    """Dask's client, with one worker that answers as a test wants."""

    def __init__(self) -> None:
        self.versions, self.look = (answer_with(read_versions()), answer_with(FACTS))
        self.asked = list[Any]()

    def subscribe_topic(self, *_: Any) -> None: ...

    async def run(self, function: Any, *_: Any, workers: list[str]) -> Said:
        self.asked.append(function)
        return {workers[0]: await (self.versions if function is read_versions else self.look)()}

    async def scatter(self, *_: Any, **__: Any) -> None: ...

    def submit(self, *_: Any, **__: Any) -> Awaitable[Any]:
        return answer_with({"event": {"event": "Finished"}, "files": {"picture-0.png": b"x"}})()


def answer_with(said: Any) -> Callable[[], Awaitable[Any]]:
    async def answer() -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    return answer


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def told() -> Told:
    return Told()


def look(told: Told, client: Client, worker: Worker) -> None:
    async def run() -> None:
        workers = Workers(told, client)  # type: ignore[arg-type]
        workers._workers["w"] = worker
        await workers._look("w", worker)

    asyncio.run(run())


def test_a_worker_that_answers_late_is_asked_again(client: Client, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_process, "ANSWER_S", 0.01)
    worker = Worker("tls://w", "w", looking=True)
    client.look = asyncio.Event().wait
    look(told, client, worker)
    assert told.take() == ["machine", "late"] and not worker.looking
    client.look = answer_with(FACTS)
    look(told, client, worker)
    assert told.said == [("facts", {"machine": "w", "facts": FACTS})]
    told.take()
    client.look = asyncio.Event().wait
    look(told, client, worker)
    assert told.take() == [], "it is at work, and has said what is there"


def test_a_worker_without_hearth_is_told_from_a_late_one(client: Client, told: Told) -> None:
    worker = Worker("tls://w", "w")
    client.versions = answer_with(ModuleNotFoundError("app"))
    look(told, client, worker)
    assert told.said[1:] == [("versions", {"machine": "w", "versions": {}})]
    client.versions, client.look = answer_with(read_versions()), answer_with(RuntimeError("no torch"))
    look(told, client, worker)
    assert told.said[2:] == [("versions", {"machine": "w", "versions": {}})], "it cannot start"
    client.look = answer_with(FACTS)
    look(told, client, worker)
    assert told.said[-1][0] == "facts"


def test_no_engine_is_started_where_versions_differ(client: Client, told: Told) -> None:
    client.versions = answer_with(dict.fromkeys(COMPARED, "0"))
    look(told, client, Worker("tls://w", "w"))
    assert told.take() == ["machine", "versions"] and existing_worker.look not in client.asked


def test_one_look_at_a_worker_is_under_way(client: Client, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_process, "LOOK_S", 0.0)
    monkeypatch.setattr(existing_process, "FACTS_S", 0.0)
    there, looks = {"workers": {"tls://w": {"name": "w"}}}, list[int]()
    client.versions = asyncio.Event().wait

    class Scheduler:
        async def identity(self) -> Said:
            looks.append(len(looks))
            if len(looks) > 5:
                raise OSError
            return there

    async def run() -> None:
        client.scheduler = Scheduler()  # type: ignore[attr-defined]
        with pytest.raises(OSError):
            await Workers(told, client).watch()  # type: ignore[arg-type]

    asyncio.run(run())
    assert len(looks) == 6 and len(client.asked) == 1


def test_a_result_that_the_disk_cannot_take_ends_its_task(
    client: Client, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the worker has it until it counts as silent."""

    def refuse(folder: Path, end: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(existing_process, "keep_files", refuse)

    async def run() -> None:
        workers = Workers(told, client)  # type: ignore[arg-type]
        workers._workers["w"] = Worker("tls://w", "w")
        workers.submit("t", "{}", {}, "w", str(tmp_path))
        await asyncio.wait_for(asyncio.gather(*workers._under_way, return_exceptions=True), WAIT_S)

    asyncio.run(run())
    assert told.said[-1] == ("end", {"id": "t", "event": None, "files": {}})
