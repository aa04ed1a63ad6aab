"""Pairing over real TLS on the loopback: the code works once and for its time, both sides prove it, and an attacker between them gets nothing."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.machines.joining import certificates, endpoint, join
from app.machines.joining.channel import MESSAGE_BYTES, Channel
from app.machines.joining.code import Code, draw_secret, parse_code
from app.machines.joining.endpoint import AT_ONCE, WRONG_MOST, Pairing
from app.machines.joining.join import find_membership, leave
from app.machines.joining.register import Register
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.long

VERSIONS = {"Hearth": "1.0", "Python": "3.11", "dask": "2026.8.0", "distributed": "2026.8.0"}
Open = Callable[..., tuple[Pairing, Code]]
OVER = ("machines.code-used", "machines.no-answer", "machines.nobody-there")
"""Whoever comes with a code that has ended is told one of these: the listener closes at its next look, which is a moment later."""


@pytest.fixture(autouse=True)
def same_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    for side in (endpoint, join):
        monkeypatch.setattr(side, "read_versions", lambda: dict(VERSIONS))
    monkeypatch.setattr(endpoint, "WRONG_S", 0.0)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    return tmp_path / "main"


@pytest.fixture
def register(main: Path) -> Register:
    return Register(main)


@pytest.fixture
def opened(main: Path, register: Register) -> Iterator[Open]:
    pairings = []

    def open_(**options: object) -> tuple[Pairing, Code]:
        pairings.append(Pairing(main, register, "Studio", 41999, host="127.0.0.1", **options))  # type: ignore[arg-type]
        return pairings[-1], pairings[-1].open()

    yield open_
    for pairing in pairings:
        pairing.close()


def note_let_in(pairing: Pairing, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each who connects from now on whether there was room for him: that stays, while what he holds is given back at any moment."""
    let_in, begin = list[bool](), pairing._begin

    def begin_noted(address: str) -> bool:
        let_in.append(begin(address))
        return let_in[-1]

    monkeypatch.setattr(pairing, "_begin", begin_noted)
    return let_in


def refused(code: Code, folder: Path) -> str:
    with pytest.raises(Trouble) as trouble:
        join.join(code, folder, "Box")
    assert not folder.exists() and not folder.with_name(f"{folder.name}.joining").exists(), "an attempt that failed left something"
    return trouble.value.sentence.key


def test_a_machine_joins_once_and_its_certificate_is_for_its_own_key(opened: Open, main: Path, register: Register, tmp_path: Path) -> None:
    pairing, code = opened()
    membership = join.join(parse_code(str(code).lower().replace("-", " ")), tmp_path / "box", "My box\n\x07")
    assert (membership.name, membership.host, membership.port) == ("Studio", "127.0.0.1", 41999)
    found = find_membership(tmp_path / "box")
    assert found is not None and found[0] == membership
    id_ = certificates.read_id(found[1].certificate.read_text())
    (machine,) = register.list_machines()
    assert (machine.id, machine.name) == (id_, "My box") and pairing.state.joined == machine
    assert str(pairing.state.said) == "My box can now help."
    if os.name == "posix":
        for key in (found[1].key, main / "own.key", main / "authority.key"):
            assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert refused(code, tmp_path / "other") in OVER
    with contextlib.suppress(AttributeError):
        pairing._thread.join(5)  # type: ignore[union-attr]
    with pytest.raises(OSError):
        socket.create_connection((code.host, code.port), 1)  # nothing listens once the code is used
    leave(tmp_path / "box")
    assert find_membership(tmp_path / "box") is None


def test_a_wrong_secret_is_refused_and_guessing_ends_the_code(opened: Open, register: Register, tmp_path: Path) -> None:
    pairing, code = opened()
    for _ in range(WRONG_MOST):
        assert pairing.state.code == code
        assert refused(Code(code.host, code.port, draw_secret()), tmp_path / "box") == "machines.wrong-code"
    assert pairing.state.code is None and pairing.state.said is not None and pairing.state.said.key == "machines.guessed"
    assert refused(code, tmp_path / "box") in OVER
    assert register.list_machines() == []


def test_after_ten_minutes_the_code_is_over(opened: Open, register: Register, tmp_path: Path) -> None:
    now_s = 0.0
    pairing, code = opened(clock=lambda: now_s)
    now_s = endpoint.VALID_S + 1
    assert refused(code, tmp_path / "box") in OVER
    assert pairing._thread is not None
    pairing._thread.join(5)
    assert pairing.state.code is None and pairing.state.said is not None and pairing.state.said.key == "machines.code-over"
    assert register.list_machines() == []


def test_time_that_runs_out_in_the_middle_counts(opened: Open, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, make = 0.0, certificates.make_request

    def make_late(folder: Path) -> str:
        nonlocal now_s
        now_s = endpoint.VALID_S + 1
        return make(folder)

    monkeypatch.setattr(endpoint, "TICK_S", 1.0)  # the listener looks at the clock later than this takes
    monkeypatch.setattr(certificates, "make_request", make_late)
    _, code = opened(clock=lambda: now_s)
    assert refused(code, tmp_path / "box") == "machines.code-used"
    assert register.list_machines() == []


@pytest.mark.parametrize("name", VERSIONS)
def test_other_versions_are_told_on_both_sides_and_the_code_stays(
    name: str, opened: Open, register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairing, code = opened()
    monkeypatch.setattr(join, "read_versions", lambda: {**VERSIONS, name: "0.9"})
    with pytest.raises(Trouble) as trouble:
        join.join(code, tmp_path / "box", "Box")
    sentence = str(trouble.value.sentence)
    assert name in sentence and "0.9 on the helper" in sentence and f"{VERSIONS[name]} on the main one" in sentence
    assert str(pairing.state.said) == f"Box could not join. {sentence}" and register.list_machines() == []
    monkeypatch.setattr(join, "read_versions", lambda: dict(VERSIONS))
    join.join(code, tmp_path / "box", "Box")


class Between:
    """Somebody in the network who answers in the main machine's place, with a certificate of his own, and passes on what he likes."""

    def __init__(self, folder: Path, target: Code, change: Callable[[dict[str, object]], None]) -> None:
        own = certificates.make_main(folder)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(own.certificate, own.key)
        self.target, self.change, self.ends = target, change, list[dict[str, object]]()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.code = Code("127.0.0.1", self.listener.getsockname()[1], target.secret)
        threading.Thread(target=self.pass_on, daemon=True).start()

    def pass_on(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            contextlib.suppress(Exception),
            self.listener,
            self.listener.accept()[0] as plain,
            self.context.wrap_socket(plain, server_side=True) as near,
            socket.create_connection((self.target.host, self.target.port)) as raw,
            context.wrap_socket(raw) as far,
        ):
            helper, main = (Channel(each, time.monotonic() + WAIT_S) for each in (near, far))
            main.send(helper.receive())
            answer = main.receive()
            self.change(answer)
            helper.send(answer)
            main.send(helper.receive())
            self.ends.append(main.receive())
            helper.send(self.ends[-1])


def test_whoever_stands_between_gets_no_certificate_and_plants_none(opened: Open, register: Register, tmp_path: Path) -> None:
    _, code = opened()
    passive = Between(tmp_path / "evil", code, lambda answer: None)
    assert refused(passive.code, tmp_path / "box") == "machines.wrong-code"
    own_authority = (tmp_path / "evil" / "authority.pem").read_text()
    active = Between(tmp_path / "evil", code, lambda answer: answer.update(authority=own_authority))
    assert refused(active.code, tmp_path / "box") == "machines.wrong-code"
    assert [end for each in (passive, active) for end in each.ends] == [{"refused": "secret"}] * 2
    assert register.list_machines() == []


def test_a_main_machine_that_does_not_know_the_secret_is_found_out(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, code = opened()
    monkeypatch.setattr(endpoint, "is_proof", lambda *_: True)  # one that lets in whoever comes
    assert refused(Code(code.host, code.port, draw_secret()), tmp_path / "box") == "machines.not-the-main"


def test_a_proof_sent_again_in_another_conversation_is_none(opened: Open, register: Register, tmp_path: Path) -> None:
    _, code = opened()
    said: list[dict[str, object]] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    original = Channel.send
    try:
        Channel.send = lambda self, message: (said.append(message), original(self, message))[1]  # type: ignore[method-assign]
        join.join(Code(code.host, code.port, code.secret), tmp_path / "box", "Box")
    finally:
        Channel.send = original  # type: ignore[method-assign]
    hello = next(each for each in said if "hello" in each)
    proven = next(each for each in said if "request" in each)
    pairing, again = opened()
    pairing.state = replace(pairing.state, code=replace(again, secret=code.secret))  # even if the secret were drawn twice
    with socket.create_connection((again.host, again.port)) as raw, context.wrap_socket(raw) as connection:
        channel = Channel(connection, time.monotonic() + WAIT_S)
        channel.send(hello)
        channel.receive()
        channel.send(proven)
        assert channel.receive() == {"refused": "secret"}
    assert len(register.list_machines()) == 1


@pytest.mark.parametrize(
    "rubbish", [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, (MESSAGE_BYTES + 1).to_bytes(4, "big") + b"x" * 100, b"\0\0\0\x02[]", b""]
)
def test_rubbish_harms_nothing(rubbish: bytes, opened: Open, tmp_path: Path) -> None:
    _, code = opened()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError), socket.create_connection((code.host, code.port)) as raw:
        raw.sendall(rubbish)
    with contextlib.suppress(OSError), socket.create_connection((code.host, code.port)) as raw, context.wrap_socket(raw) as connection:
        connection.sendall(rubbish)
    join.join(code, tmp_path / "box", "Box")


def test_connections_held_open_end_by_themselves(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "TICK_S", 0.02)
    _, code = opened()
    silent = [socket.create_connection((code.host, code.port)) for _ in range(AT_ONCE)]
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(Trouble):
            join.join(code, tmp_path / "box", "Box")
            break
    assert find_membership(tmp_path / "box") is not None
    for each in silent:
        each.close()


def test_silent_connections_of_one_address_keep_nobody_out(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "HELLO_S", 600.0)  # whoever waited until they are sent away would give up before
    _, code = opened()
    silent = list[socket.socket]()
    try:
        for _ in range(60):
            silent.append(socket.create_connection((code.host, code.port), source_address=("127.0.0.2", 0)))
    except OSError:
        pytest.skip("this system has one loopback address only")
    join.join(code, tmp_path / "box", "Box")
    for each in silent:
        each.close()


def test_what_strangers_hold_is_given_back(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "HELLO_S", 0.2)
    pairing, code = opened()
    let_in = note_let_in(pairing, monkeypatch)
    silent = [socket.create_connection((code.host, code.port)) for _ in range(endpoint.EACH_AT_ONCE)]
    until(lambda: let_in == [True] * endpoint.EACH_AT_ONCE)
    for each in silent:
        each.settimeout(WAIT_S)
        assert each.recv(1) == b""
        each.close()
    until(lambda: pairing._talking.total() == 0)


def test_a_used_code_is_told_as_such(opened: Open, tmp_path: Path) -> None:
    pairing, code = opened()
    join.join(code, tmp_path / "box", "Box")
    assert pairing._thread is not None
    pairing._thread.join()
    with pytest.raises(Trouble, match="already used"):
        join.join(code, tmp_path / "other", "Other")


def test_who_sends_a_byte_now_and_then_holds_no_turn(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time for the socket; all of them together do not."""
    patience_s = endpoint.HELLO_S
    monkeypatch.setattr(endpoint, "HELLO_S", 1.0)
    pairing, code = opened()
    let_in = note_let_in(pairing, monkeypatch)
    slow, ended = [socket.create_connection((code.host, code.port)) for _ in range(endpoint.EACH_AT_ONCE)], threading.Event()

    def drip() -> None:
        for byte in b"\x16\x03\x01\x20\x00" + b"\x01" * 1000:
            for each in slow:
                with contextlib.suppress(OSError):
                    each.send(bytes([byte]))
            if ended.wait(0.3):
                return

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        until(lambda: let_in == [True] * endpoint.EACH_AT_ONCE)
        until(lambda: pairing._talking.total() == 0)
        monkeypatch.setattr(endpoint, "HELLO_S", patience_s)  # for one who means it
        join.join(code, tmp_path / "box", "Box")
    finally:
        ended.set()
        dripping.join()
        for each in slow:
            each.close()


@pytest.mark.parametrize("change", [{"host": 3}, {"port": "x"}, {"name": None}], ids=str)
def test_a_damaged_membership_is_none(change: dict[str, object], opened: Open, tmp_path: Path) -> None:
    _, code = opened()
    join.join(code, tmp_path / "box", "Box")
    file = tmp_path / "box" / "lends-to.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    assert find_membership(tmp_path / "box") is None
