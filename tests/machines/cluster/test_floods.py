"""What a helper that turned bad can fill: not the memory of the main machine's machines process, nor its connections, nor other helpers' way in."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

import psutil
from distributed.comm import connect

from app.base.paths import home
from app.machines.cluster.dask_setup import HANDSHAKES_MOST, name_address
from app.machines.cluster.scheduler import CONNECTIONS_MOST
from app.machines.hub import Hub
from app.machines.joining.certificates import Identity
from tests.support.bad_helper import METRICS, REGISTER, Peak, let_in, takes_a_task, works
from tests.support.waiting import WAIT_S, until

LARGE = 48 << 20
"""No flood below may take so many bytes; each sends more than twice that."""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(home(tmp_path_factory.mktemp("main")).create(), "127.0.0.1")
    yield hub
    hub.close()


async def open_stream(hub: Hub, identity: Identity, id_: str, **changed: Any) -> Any:
    comm = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=identity.client_context(), require_encryption=True)
    await comm.write({**REGISTER, "address": name_address(id_), "name": id_, **changed})
    return comm


def name_many(number: int) -> list[str]:
    """A MiB of names that were never seen before."""
    return [f"{number}-{each}".ljust(1024, "x") for each in range(1024)]


FINISHED: dict[str, Any] = {
    "status": "OK", "run_id": 1, "nbytes": 0, "type": b"", "typename": "", "metadata": {}, "thread": 1, "startstops": [],
}  # fmt: skip
STREAMS = {
    "names of results": lambda number: [{"op": "add-keys", "keys": name_many(number), "stimulus_id": "x"}],
    "questions": lambda number: [{"op": "request-refresh-who-has", "keys": name_many(number), "stimulus_id": "x"}],
    "ends of tasks that nobody gave": lambda number: [
        {"op": "task-finished", "key": f"{number}".ljust(1 << 20, "x"), "stimulus_id": "x", **FINISHED}
    ],
    "states": lambda number: [{"op": "worker-status-change", "status": ("paused", "running")[number % 2], "stimulus_id": f"{number}".ljust(1 << 20)}],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", STREAMS)
def test_a_stream_of_anything_stays_nowhere(what: str, hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")
    process = psutil.Process(hub.pid)

    async def flood() -> None:
        stream = await open_stream(hub, bad, id_)
        await asyncio.wait_for(stream.read(), WAIT_S)
        with contextlib.suppress(OSError):  # it is cut off
            for number in range(120):
                await stream.write(STREAMS[what](number))  # what it answers is never read
        await asyncio.sleep(1.0)
        stream.abort()

    assert works(hub, bad)
    before, peak = process.memory_info().rss, Peak(process)
    asyncio.run(flood())
    assert peak.end() - before < LARGE and works(hub, bad)


@pytest.mark.slow
def test_who_reads_no_answer_is_cut_off(hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")

    async def flood() -> None:
        stream = await open_stream(hub, bad, id_)
        await asyncio.wait_for(stream.read(), WAIT_S)
        with pytest.raises(OSError):
            for number in range(300):
                ends = [
                    {"op": "task-finished", "key": f"{number}-{each}".ljust(200), "stimulus_id": "x", **FINISHED} for each in range(1000)
                ]
                await stream.write(ends)
                await asyncio.sleep(0.05)  # dask waits for nothing that it writes
        stream.abort()

    asyncio.run(flood())
    assert works(hub, bad)


@pytest.mark.slow
def test_what_a_heartbeat_tells_of_itself_stays_nowhere(hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")
    process = psutil.Process(hub.pid)

    async def flood() -> None:
        stream = await open_stream(hub, bad, id_)
        await asyncio.wait_for(stream.read(), WAIT_S)
        beats = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        for number in range(120):
            names = name_many(number)
            bandwidth = {"total": 1, "workers": dict.fromkeys(names[:512], (1, 1)), "types": dict.fromkeys(names[512:], (1, 1))}
            digests = dict.fromkeys(name_many(-number), 1)
            metrics = {**METRICS, "bandwidth": bandwidth, "digests_total_since_heartbeat": digests}
            await beats.write({"op": "heartbeat_worker", "address": "x", "now": 1.0, "metrics": metrics})
            answer = await asyncio.wait_for(beats.read(), WAIT_S)
            assert answer["status"] == "OK", answer
        for comm in (stream, beats):
            comm.abort()

    assert works(hub, bad)
    before, peak = process.memory_info().rss, Peak(process)
    asyncio.run(flood())
    assert peak.end() - before < LARGE


@pytest.mark.parametrize(
    "odd", [{"versions": {"packages": 5}}, {"server_id": 5}, {"metrics": {}}, {"status": "closing"}, {"services": 5}], ids=lambda odd: next(iter(odd))
)  # fmt: skip
def test_who_introduces_himself_oddly_keeps_nobody_out(odd: dict[str, Any], hub: Hub, tmp_path: Path) -> None:
    bad_id, bad = let_in(hub, tmp_path / "bad")
    good_id, good = let_in(hub, tmp_path / "good")

    async def introduce() -> Any:
        return await open_stream(hub, bad, bad_id, **odd)

    async def attack() -> None:
        stream = await introduce()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(stream.read(), 2)
        assert await asyncio.to_thread(takes_a_task, hub, good, good_id)
        stream.abort()

    asyncio.run(attack())


def test_one_machine_takes_no_more_connections_than_it_needs(hub: Hub, tmp_path: Path) -> None:
    _, bad = let_in(hub, tmp_path / "bad")
    _, good = let_in(hub, tmp_path / "good")
    process = psutil.Process(hub.pid)

    async def attack() -> None:
        before, held = process.num_fds(), list[Any]()
        with contextlib.suppress(OSError):
            for _ in range(3 * CONNECTIONS_MOST):
                held.append(
                    await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
                )
        assert len(held) == CONNECTIONS_MOST and process.num_fds() <= before + CONNECTIONS_MOST + 2
        assert await asyncio.to_thread(works, hub, good)
        for each in held:
            each.abort()

    asyncio.run(attack())
    deadline_s = time.monotonic() + WAIT_S
    while not works(hub, bad):
        assert time.monotonic() < deadline_s


def test_strangers_at_one_address_hold_few_connections(hub: Hub, tmp_path: Path) -> None:
    _, good = let_in(hub, tmp_path / "good")
    process = psutil.Process(hub.pid)
    before, held = process.num_fds(), list[socket.socket]()
    try:
        for _ in range(10 * HANDSHAKES_MOST):
            held.append(socket.create_connection(("127.0.0.1", hub.port), 5, source_address=("127.0.0.2", 0)))
    except OSError:
        pytest.skip("this system has one loopback address only")
    assert works(hub, good), "which waited behind them, so that they were all looked at"
    until(lambda: process.num_fds() <= before + HANDSHAKES_MOST + 2)
    for each in held:
        each.close()
