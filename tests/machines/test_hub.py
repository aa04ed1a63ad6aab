"""The port that helpers know: kept over restarts and kills, also of a process that does not listen yet; given up only to another program."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import home
from app.machines import helping_machine, side_process
from app.machines import hub as hub_module
from app.machines.existing import Cluster
from app.machines.helping_machine import is_at_work
from app.machines.hub import Hub
from app.machines.side_process import SideProcess
from app.machines.tasks.portable import Portable
from tests.support.other_functions import set_in
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.long


class Side:
    """A machines process that does nothing but listen; it keeps what it is told."""

    pid = None

    def __init__(self, module: str, arguments: Any, log: Path, hear: Callable[[dict[str, Any]], None], *_: Any) -> None:
        self.told = list[tuple[str, dict[str, Any]]]()
        hear({"op": "listening", "port": 1})

    def tell(self, op: str, **values: Any) -> None:
        self.told.append((op, values))

    def close(self) -> None: ...


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """No process of its own."""
    monkeypatch.setattr(hub_module, "SideProcess", Side)
    hub = Hub(home(tmp_path).create(), "127.0.0.1")
    yield hub
    hub.close()


def test_a_worker_that_answered_late_gets_work_once_it_has(hub: Hub, tmp_path: Path) -> None:
    hub.cluster, id_ = Cluster("tls://here:1", tmp_path), "1" * 32
    hub._hear({"op": "machine", "machine": id_, "name": "w", "online": True})
    for message in ({"op": "late"}, {"op": "versions", "versions": {}}):
        hub._hear({**message, "machine": id_})
        assert hub.list_machines()[0].refused is not None
        hub._hear({"op": "facts", "machine": id_, "facts": {}})
        assert hub.list_machines()[0].refused is None


def test_a_cluster_that_is_left_between_two_of_its_processes_leaves_nobody(hub: Hub, tmp_path: Path) -> None:
    hub.cluster, hub._cluster_side = Cluster("tls://here:1", tmp_path), Side("", None, tmp_path, lambda message: None)  # type: ignore[assignment]
    hub._hear({"op": "machine", "machine": "1" * 32, "name": "w", "online": True})
    hub._cluster_ended()
    assert hub.name("1" * 32) == "w", "it comes back"
    hub.remove("1" * 32)
    assert hub.list_machines() == [] and hub.name("1" * 32) == ""


def test_a_list_goes_over_the_tasks_once(hub: Hub) -> None:
    """It took 21 ms of processor time for 200 machines with 400 tasks, several times a second."""

    class Given(dict[str, Any]):
        walks = 0

        def items(self) -> Any:
            Given.walks += 1
            return super().items()

        __iter__ = None  # type: ignore[assignment]

    hub._given, ids = Given(), [f"{number:032x}" for number in range(20)]
    for id_ in ids:
        hub.register.add(id_, "box")
        hub._online.add(id_)
    for task, id_ in (("a", ids[3]), ("b", ids[5]), ("c", ids[3])):
        hub.submit(task, Portable("{}", {}, task), id_, lambda machine, event: None, lambda end: None)
    found = {each.id: (each.tasks, each.doing) for each in hub.list_machines() if each.tasks}
    assert found == {ids[3]: (("a", "c"), "a"), ids[5]: (("b",), "b")} and Given.walks == 1


def test_a_machine_that_is_removed_is_dropped_once(hub: Hub) -> None:
    """By another process, also while the machines process is dead and nobody tells that it went."""
    side = hub._side
    assert isinstance(side, Side)
    for id_ in ("1" * 32, "2" * 32):
        hub.register.add(id_, "box")
        hub._hear({"op": "machine", "machine": id_, "online": True})
    hub.register.remove("1" * 32)
    for _ in range(3):
        assert [each.id for each in hub.list_machines()] == ["2" * 32]
    assert side.told == [("drop", {"machine": "1" * 32})]
    hub._hear({"op": "machine", "machine": "1" * 32, "online": True})  # it came just before
    hub.list_machines()
    assert len(side.told) == 2
    hub.register.remove("2" * 32)
    hub._side_ended()
    hub.list_machines()
    assert len(side.told) == 2, "its connection ended with the process"


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_the_port_stays_until_another_program_has_it(tmp_path: Path) -> None:
    place = home(tmp_path).create()
    hub = Hub(place, "127.0.0.1")
    port = hub.port
    try:
        for _ in range(2):  # the second time before it listens
            first = hub.pid
            assert first is not None
            psutil.Process(first).kill()
            until(lambda first=first: hub.pid != first)
        until(lambda: is_listening(port), LOADING_S)
        assert hub.port == port
    finally:
        hub.close()
    assert not is_listening(port)
    with socket.create_server(("127.0.0.1", port)):
        hub = Hub(place, "127.0.0.1")
        assert hub.port != port and is_listening(hub.port)
        hub.close()


@pytest.mark.slow
def test_a_machines_process_that_the_system_does_not_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As without memory for one. It used to end the thread that tries."""
    hub, refusals, start = Hub(home(tmp_path).create(), "127.0.0.1"), [1, 2], SideProcess._start

    def refuse_twice(side: SideProcess) -> None:
        if refusals:
            raise OSError(errno.ENOMEM, f"Cannot allocate memory {refusals.pop()}")
        start(side)

    monkeypatch.setattr(SideProcess, "_start", refuse_twice)
    monkeypatch.setattr(hub_module, "AGAIN_S", 0.01)
    try:
        first = hub.pid
        assert first is not None
        psutil.Process(first).kill()
        until(lambda: hub.pid != first)
        assert not refusals
    finally:
        hub.close()


@pytest.mark.slow
def test_a_machine_that_says_nothing_of_its_task_is_no_longer_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, id_ = Hub(home(tmp_path).create(), "127.0.0.1"), "1" * 32
    try:
        hub.register.add(id_, "box")
        hub._online.add(id_)
        assert is_at_work(hub.list_machines()[0])
        hub.submit("t", Portable("{}", {}, "a ball"), id_, lambda machine, event: None, lambda end: None)
        now_s = [time.monotonic() + helping_machine.SILENT_S + 1]
        set_in(monkeypatch, helping_machine, "time", monotonic=lambda: now_s[0])
        hub._hear({"op": "facts", "machine": id_, "facts": {}})
        (silent,) = hub.list_machines()
        assert not is_at_work(silent) and silent.failed is not None and "it said nothing" in str(silent.failed)
        hub._hear({"op": "event", "id": "t", "machine": id_, "event": None})
        assert is_at_work(hub.list_machines()[0])
        now_s[0] += helping_machine.SILENT_S + 1
        hub.stop("t")
        assert is_at_work(hub.list_machines()[0]), "what it does not have it need not speak of"
    finally:
        hub.close()


@pytest.mark.slow
def test_what_is_begun_goes_once_it_was_looked_at(tmp_path: Path) -> None:
    hub, file, seen = Hub(home(tmp_path).create(), "127.0.0.1"), tmp_path / "part-000.wav", list[bytes]()
    try:
        look = lambda name, path: seen.append(path.read_bytes())  # noqa: E731
        hub.submit("t", Portable("{}", {}, "a ball"), "1" * 32, lambda machine, event: None, lambda end: None, begun=look)
        for task in ("t", "ended"):
            file.write_bytes(b"sound")
            hub._hear({"op": "begun", "id": task, "name": file.name, "path": str(file)})
            assert not file.exists() and seen == [b"sound"], task
    finally:
        hub.close()


def test_strangers_cannot_fill_the_disk_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "machines.log"
    with log.open("ab") as file:
        file.write(b"x" * (side_process.LOG_BYTES + 1))
        file.flush()
        threading.Thread(target=side_process.bound_log, args=(log, 0.01), daemon=True).start()
        until(lambda: log.stat().st_size == 0)
        file.write(b"later")
    until(lambda: log.read_bytes() == b"later")


@pytest.mark.slow
def test_the_machines_process_bounds_its_log(tmp_path: Path) -> None:
    place = home(tmp_path).create()
    (place.logs / "machines.log").write_bytes(b"x" * (side_process.LOG_BYTES + 1))
    hub = Hub(place, "127.0.0.1")
    try:
        until(lambda: (place.logs / "machines.log").stat().st_size < side_process.LOG_BYTES)
    finally:
        hub.close()
