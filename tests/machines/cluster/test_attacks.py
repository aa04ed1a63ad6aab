"""What a stranger, a removed machine and a helper that turned bad can do to the main machine: nothing. A real machines process, attacked over TLS."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import ssl
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

import distributed
import msgpack
import psutil
from distributed.comm import CommClosedError, connect
from distributed.protocol.serialize import Serialize, ToPickle

from app.base.paths import home
from app.machines.cluster import dask_setup
from app.machines.cluster.dask_setup import HANDSHAKE_S, name_address
from app.machines.cluster.scheduler import ADDRESSED, HELLO, OWN, parse_plain
from app.machines.hub import Hub, main_folder
from app.machines.joining import certificates
from app.machines.joining.certificates import Identity
from app.machines.joining.register import Register
from app.machines.joining.versions import read_versions
from tests.support.bad_helper import ANSWERED, REGISTER, Peak, ask, let_in, takes_a_task, talk, works
from tests.support.places import TOP
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    hub = Hub(home(tmp_path_factory.mktemp("main")).create(), "127.0.0.1")
    yield hub
    hub.close()


def is_refused(answer: Any) -> bool:
    return isinstance(answer, OSError) or (isinstance(answer, dict) and answer.get("status") == "uncaught-error")


class Bomb:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.file),)


def test_whoever_has_no_certificate_of_this_authority_is_refused_in_the_handshake(hub: Hub, tmp_path: Path) -> None:
    stranger = certificates.make_main(tmp_path / "stranger")
    with pytest.raises((OSError, ssl.SSLError)):
        ask(hub, stranger, {"op": HELLO}, patience_s=5)
    authority, own = main_folder(hub._home) / "authority.pem", certificates.identity_in(tmp_path / "stranger")
    pretender = Identity(authority, own.certificate, own.key)  # believes the right authority, but has its own certificate
    with pytest.raises((OSError, ssl.SSLError)):
        answer = ask(hub, pretender, {"op": HELLO}, patience_s=5)
        raise answer[0]
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname = False
    nobody.load_verify_locations(authority)
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", hub.port), 5) as raw, nobody.wrap_socket(raw) as connection:
        connection.settimeout(WAIT_S)
        if not connection.recv(1):
            raise ConnectionResetError


def test_a_helper_cannot_pose_as_the_main_machine(hub: Hub, tmp_path: Path) -> None:
    _, bad = let_in(hub, tmp_path / "bad")
    _, good = let_in(hub, tmp_path / "good")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(bad.certificate, bad.key)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    victim = good.client_context().wrap_bio(incoming, outgoing)
    server_in, server_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    attacker = server.wrap_bio(server_in, server_out, server_side=True)
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        for _ in range(4):
            for side in (victim, attacker):
                with contextlib.suppress(ssl.SSLWantReadError):
                    side.do_handshake()
                server_in.write(outgoing.read())
                incoming.write(server_out.read())


def test_a_helper_may_ask_only_what_a_worker_needs(hub: Hub, tmp_path: Path) -> None:
    _, bad = let_in(hub, tmp_path / "bad")
    assert works(hub, bad)
    names = dask_operations()
    assert {"run_function", "register-client", "gather", "broadcast", "proxy", "feed", "register_scheduler_plugin", "terminate"} <= names
    for name in sorted(names - ADDRESSED):
        (answer,) = ask(hub, bad, {"op": name, **({"client": "x", "versions": {}} if name == "register-client" else {})})
        assert answer is None or answer["exception_text"] == "PermissionError", f"{name}: {answer}"
    assert works(hub, bad)


def dask_operations() -> set[str]:
    """All that the scheduler of this version of dask answers."""

    async def read() -> set[str]:
        async with distributed.Scheduler(dashboard=False, dashboard_address="127.0.0.1:0", host="127.0.0.1", port=0) as scheduler:
            return set(scheduler.handlers)

    return asyncio.run(read())


@pytest.mark.parametrize("place", ["handshake", "message", "stream", "exception"])
def test_no_pickle_of_a_helper_is_carried_out(place: str, hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")
    bomb = tmp_path / "exploded"
    pickle.loads(pickle.dumps(Bomb(tmp_path / "control")))
    assert (tmp_path / "control").exists(), "the bomb is a dud"
    register = {**REGISTER, "address": name_address(id_), "name": id_}
    payloads: dict[str, list[dict[str, Any]]] = {
        "handshake": [{"op": HELLO, "versions": ToPickle(Bomb(bomb)), ANSWERED: False}],
        "message": [{"op": HELLO, "versions": ToPickle(Bomb(bomb))}],
        "stream": [register, {"op": "log-event", "topic": "hearth", "msg": ToPickle(Bomb(bomb)), ANSWERED: False}],
        "exception": [
            register,
            {"op": "task-erred", "key": "x", "exception": Serialize(Bomb(bomb)), "traceback": None, "stimulus_id": "y", ANSWERED: False},
        ],
    }
    answers = ask(hub, bad, *payloads[place])
    assert place in ("handshake", "message") or answers[0]["status"] == "OK", f"no worker was let in: {answers}"
    _, good = let_in(hub, tmp_path / "good")
    until(lambda: works(hub, good))
    assert not bomb.exists()


HELPER = """
import os, pickle, sys, types
from pathlib import Path
from app.machines import side_process

class Bomb:
    def __reduce__(self):
        return os.mkdir, (sys.argv[1],)

async def serve(connection, arguments):
    for each in (bool, Bomb()):
        try:
            print("read:", pickle.loads(pickle.dumps(each)))
        except PermissionError as fault:
            print("refused:", fault)

sys.modules["served"] = types.SimpleNamespace(serve=serve)
side_process.run(None, "served", {}, Path(sys.argv[2]))
"""
"""It starts like a machines process; in place of what it serves, it reads what a main machine may send."""


def test_a_pickle_names_nothing_else_in_the_machines_process(tmp_path: Path) -> None:
    """A helper reads those of its main machine."""
    bomb, log = tmp_path / "exploded", tmp_path / "machines.log"
    subprocess.run([sys.executable, "-c", HELPER, str(bomb), str(log)], cwd=TOP, check=True, timeout=300)
    said = log.read_text("utf-8").splitlines()
    assert said == ["read: <class 'bool'>", f"refused: a pickle names {os.mkdir.__module__}.mkdir, which no machine may send"]
    assert not bomb.exists()


def test_a_removed_machine_learns_that_and_nothing_it_says_is_read(hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")

    async def attack() -> None:
        open_one = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        await open_one.write({"op": HELLO, "versions": read_versions()})
        assert await asyncio.wait_for(open_one.read(), WAIT_S) == {"versions": read_versions()}
        Register(main_folder(hub._home)).remove(id_)  # as another process does, of which this one is told nothing
        late = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        assert late.remote_info["refused"] == "removed"
        for comm in (open_one, late):
            with contextlib.suppress(OSError):  # it is closed already
                await comm.write({"op": HELLO, "versions": read_versions()})
            with pytest.raises(CommClosedError):
                await asyncio.wait_for(comm.read(), WAIT_S)

    asyncio.run(attack())


def test_a_machine_that_another_process_removed_is_dropped(hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")

    async def stay() -> None:
        stream = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        await stream.write({**REGISTER, "address": name_address(id_), "name": id_})
        await asyncio.wait_for(stream.read(), WAIT_S)
        await asyncio.to_thread(until, lambda: any(each.id == id_ and each.online for each in hub.list_machines()))
        Register(main_folder(hub._home)).remove(id_)
        hub.list_machines()
        with pytest.raises(CommClosedError):
            while True:
                await asyncio.wait_for(stream.read(), WAIT_S)

    asyncio.run(stay())
    until(lambda: id_ not in hub._online)


def test_other_versions_are_refused_with_what_the_main_machine_has(hub: Hub, tmp_path: Path) -> None:
    id_, old = let_in(hub, tmp_path / "old")
    (answer,) = ask(hub, old, {"op": HELLO, "versions": {**read_versions(), "dask": "2020.1"}})
    assert answer == {"refused": "versions", "versions": read_versions()}
    until(lambda: any(each.refused is not None for each in hub.list_machines()))
    (said,) = (each.refused for each in hub.list_machines() if each.id == id_)
    assert said is not None and said.key == "unused.versions" and dict(said.values)["helper"] == "2020.1"
    ask(hub, old, {**REGISTER, "address": name_address(id_), "name": id_})
    until(lambda: all(each.refused is None for each in hub.list_machines()))


def test_files_of_tasks_that_one_does_not_have_are_not_given(hub: Hub, tmp_path: Path) -> None:
    _, bad = let_in(hub, tmp_path / "bad")
    for name in OWN - {HELLO}:
        asked = {"op": name, "task": "x-1", "sha256": "0" * 64, "offset": 0, "name": "a.png", "data": b"", "last": True, "event": None}
        assert ask(hub, bad, asked) == [{"refused": "not-yours"}]


def test_only_what_a_machine_was_asked_to_fetch_is_given(hub: Hub, tmp_path: Path) -> None:
    id_, bad = let_in(hub, tmp_path / "bad")
    _, other = let_in(hub, tmp_path / "other")
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    asked = {"op": "hearth_fetch", "model": "files:x", "sha256": "1" * 64, "offset": 0}
    hub.want(id_, "files:x", "{}", {"1" * 64: file})
    assert ask(hub, bad, asked) == [{"refused": "not-yours"}], "it is not at work, so nothing was offered to it"
    register = {**REGISTER, "address": name_address(id_), "name": id_}

    async def attack() -> list[Any]:
        stream = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        try:
            await stream.write(register)
            await asyncio.wait_for(stream.read(), WAIT_S)
            hub.want(id_, "files:x", "{}", {"1" * 64: file})
            while not any(
                each.get("op") == "hearth-want" for each in await asyncio.wait_for(stream.read(), WAIT_S) if isinstance(each, dict)
            ):
                pass
            odd: list[dict[str, object]] = [
                {"offset": -1},
                {"offset": "0"},
                {"sha256": str(file)},
                {"sha256": "2" * 64},
                {"model": "files:y"},
                {"model": ["files:x"]},
            ]
            given = await talk(hub, bad, dict(asked), *({**asked, **each} for each in odd))
            return [*given, *await talk(hub, other, dict(asked))]
        finally:
            stream.abort()

    given = asyncio.run(attack())
    assert given[0] == {"data": b"weights"} and given[1:] == [{"refused": "not-yours"}] * 7


def test_nothing_listens_but_the_scheduler(hub: Hub) -> None:
    process = psutil.Process(hub.pid)
    listening = {each.laddr.port for each in process.net_connections() if each.status == psutil.CONN_LISTEN}
    assert listening == {hub.port}


@pytest.mark.parametrize("size", [1 << 62, 3 << 30, (64 << 20) + 1])
def test_a_message_that_is_too_large_is_not_even_begun(size: int, hub: Hub, tmp_path: Path) -> None:
    """Dask would set memory aside for whatever size is said to come."""
    _, bad = let_in(hub, tmp_path / "bad")
    assert works(hub, bad)
    before = psutil.Process(hub.pid).memory_info()

    async def attack() -> None:
        comm = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=bad.client_context(), require_encryption=True)
        await comm.stream.write(struct.pack("Q", size))
        with pytest.raises(OSError):  # it is cut off
            await asyncio.wait_for(comm.read(), 10)

    asyncio.run(attack())
    after = psutil.Process(hub.pid).memory_info()
    assert works(hub, bad) and after.vms - before.vms < 64 << 20 and after.rss - before.rss < 64 << 20


async def send_raw(hub: Hub, identity: Identity, *frames: bytes) -> Any:
    comm = await connect(f"tls://127.0.0.1:{hub.port}", timeout=WAIT_S, ssl_context=identity.client_context(), require_encryption=True)
    whole = struct.pack(f"Q{len(frames)}Q", len(frames), *map(len, frames)) + b"".join(frames)
    try:
        await comm.stream.write(struct.pack("Q", len(whole)) + whole)
        return await asyncio.wait_for(comm.read(), WAIT_S)
    except OSError as fault:
        return fault
    finally:
        comm.abort()


def test_nothing_that_is_compressed_is_unpacked(hub: Hub, tmp_path: Path) -> None:
    """A small message would become gigabytes before anybody looks at it."""
    _, bad = let_in(hub, tmp_path / "bad")
    packed = zlib.compress(b"\0" * (64 << 20))
    inside = {"num-sub-frames": 1, "compression": ["zlib"], "pickled-obj": b""}
    answer = asyncio.run(send_raw(hub, bad, msgpack.packb({"op": HELLO, "versions": {"__Pickled__": 1}}), msgpack.packb(inside), packed))
    assert isinstance(answer, OSError) and works(hub, bad)


def name(module: str, word: str) -> bytes:
    """In a pickle."""
    return b"".join(b"\x8c" + bytes([len(each)]) + each.encode() for each in (module, word)) + b"\x93"


PICKLES = {
    "an attribute of the one function": b"\x80\x04" + name("app.machines.cluster.work", "run_task") + b"N}\x8c\x0c__qualname__\x8c\x01xs\x86b.",
    "an attribute of a class of dask's": b"\x80\x04"
    + name("dask._expr", "LLGExpr") + b"N}\x8c\x0e__dask_graph__" + name("builtins", "bool") + b"s\x86b.",
    "memory": b"\x80\x04Nr" + struct.pack("<I", 30_000_000) + b".",
}  # fmt: skip


@pytest.mark.parametrize("what", PICKLES)
def test_no_pickle_of_a_helper_is_read(what: str, hub: Hub, tmp_path: Path) -> None:
    """Not even one that names nothing but what is allowed: it can set attributes of that, and fill the memory."""
    id_, bad = let_in(hub, tmp_path / "bad")
    assert works(hub, bad)
    process = psutil.Process(hub.pid)
    before = process.memory_info().rss
    peak = Peak(process)
    inside = msgpack.packb({"num-sub-frames": 0, "pickled-obj": PICKLES[what]})
    answer = asyncio.run(send_raw(hub, bad, msgpack.packb({"op": HELLO, "versions": read_versions(), "x": {"__Pickled__": 1}}), inside))
    assert isinstance(answer, OSError) and peak.end() - before < 64 << 20
    ask(hub, bad, {**REGISTER, "address": name_address(id_), "name": id_})
    assert takes_a_task(hub, bad, id_)


def test_many_small_values_fill_no_memory(hub: Hub, tmp_path: Path) -> None:
    """An empty table takes one byte on its way and 64 in memory; a list is set aside for as many as it says that it has."""
    _, bad = let_in(hub, tmp_path / "bad")
    assert works(hub, bad)
    process, count = psutil.Process(hub.pid), 4_000_000
    before, peak, began = process.memory_info().rss, Peak(process), process.cpu_times()
    tables = b"\xdd" + struct.pack(">I", count) + b"\x80" * count
    rows = b"\xdc" + struct.pack(">H", 1000) + (b"\xdc" + struct.pack(">H", 4000) + b"\x80" * 4000) * 1000
    nested = (b"\xdd" + struct.pack(">I", 400_000)) * 500 + b"\xc0" * 1_000_000
    answers = [asyncio.run(send_raw(hub, bad, each)) for each in (tables, rows, nested)]
    assert all(isinstance(each, OSError) for each in answers)
    took = process.cpu_times()
    assert peak.end() - before < 100 << 20 and took.user + took.system - began.user - began.system < 10 and works(hub, bad)


def test_what_a_worker_says_is_read_whole() -> None:
    from distributed.protocol import dumps
    from distributed.protocol.utils import pack_frames

    said = [{"op": "log-event", "msg": {"data": b"x" * (1 << 20), "names": ("a",) * 1000, "set": {"b"}, "n": 1.5, "none": None}}]
    assert parse_plain(memoryview(pack_frames(dumps(said)))) == (said[0],)
    failed = [{"op": "task-erred", "exception": Serialize(OSError("/home/me")), "key": "x"}]
    assert parse_plain(memoryview(pack_frames(dumps(failed)))) == ({"op": "task-erred", "exception": "", "key": "x"},)


def test_an_error_tells_no_path(hub: Hub, tmp_path: Path) -> None:
    _, bad = let_in(hub, tmp_path / "bad")
    for odd in ({"op": "register-client"}, {"op": HELLO, "comm": 1}):
        (answer,) = ask(hub, bad, odd)
        assert is_refused(answer) and "/" not in str(answer) and ".py" not in str(answer)


@pytest.mark.slow
def test_strangers_who_say_nothing_are_sent_away(hub: Hub) -> None:
    """They would otherwise take up the connections that a process may have."""
    silent = [socket.create_connection(("127.0.0.1", hub.port), 5) for _ in range(20)]
    try:
        for each in silent:
            each.settimeout(HANDSHAKE_S + 10)
            assert each.recv(1) == b""
    finally:
        for each in silent:
            each.close()


@pytest.mark.slow
def test_a_forged_announcement_leads_nowhere(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody announces himself as the main machine, with its id, which everybody can see."""
    from app.machines.cluster import helper_process
    from app.machines.cluster.helper_process import Helper

    monkeypatch.setattr(helper_process, "HELLO_S", 3.0)  # dask tries all that long where nobody listens, as at the first address
    let_in(hub, tmp_path / "good")
    stranger = certificates.make_main(tmp_path / "stranger")
    told, found, nobody = list[tuple[str, dict[str, Any]]](), list[str](), "tls://127.0.0.1:9"

    class Pipe:
        def tell(self, op: str, **values: Any) -> None:
            told.append((op, values))

    async def look(with_true_one: bool) -> bool:
        async with distributed.Scheduler(
            dashboard=False,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            port=0,
            protocol="tls",
            security=dask_setup.make_security(stranger),
        ) as impostor:
            helper: Any = Helper(Pipe(), {"folder": str(tmp_path / "good"), "main": nobody, "scratch": str(tmp_path)})
            announced = [impostor.port, *([hub.port] if with_true_one else [])]
            helper._near = SimpleNamespace(find=lambda id_: [("127.0.0.1", port) for port in announced])
            try:
                return bool(await helper._find_main())
            finally:
                found.append(helper._main)

    with pytest.raises(OSError):
        asyncio.run(look(False))
    assert asyncio.run(look(True)) and told == [] and found == [nobody, f"tls://127.0.0.1:{hub.port}"]
