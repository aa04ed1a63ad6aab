"""Open a share link with Gradio's own tunnel program (frpc) and server.

Gradio's class verifies the program only after a download, waits without a deadline if it prints nothing, and leaves it
running if Hearth is killed. Here the checksum is checked before every run, waiting has an end, and every failure is a sentence.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from gradio.networking import GRADIO_API_SERVER
from gradio.tunneling import BINARY_FILENAME, BINARY_URL, CHECKSUMS, EXTENSION

from app.base import atomic_write
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble

WAIT_S: Final = 30.0
PROGRAM_BYTES: Final = 64 << 20
QUOTE_LETTERS: Final = 200
"""So many letters of a server's own message are quoted."""
WATCHDOG: Final = """
import os, subprocess, sys, threading
try:
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
except OSError as fault:
    sys.exit(f"cannot start: {fault}")
threading.Thread(target=lambda: (os.read(0, 1), program.terminate()), daemon=True).start()
sys.exit(program.wait())
"""
"""Run the program and end it with Hearth, however that ends: else strangers would reach the port's next user."""

# The lines of frpc 0.3 that matter. A blocked connection and a wrong certificate both look like a failed login.
_OPENED: Final = re.compile(r"start proxy success: (\S+)")
_REFUSED: Final = re.compile(r"(?:\[E\] \[service\.go:\d+\]|start error:) (.+)")
_UNSTARTED: Final = re.compile(r"cannot start: (.+)")
_FAILED: Final = "login to server failed"
_RECONNECTING: Final = "try to reconnect to server"


@dataclass(frozen=True, slots=True)
class OpenTunnel:
    """The public address, a function that closes it, and the reason if it is offline."""

    address: str
    close: Callable[[], None] = lambda: None
    find_fault: Callable[[], Sentence | None] = lambda: None


def open_tunnel(
    port: int, folder: Path, api: str = GRADIO_API_SERVER, source: str = BINARY_URL, sha256: str | None = None, wait_s: float = WAIT_S
) -> OpenTunnel:
    program = fetch_program(folder, source, sha256 or CHECKSUMS.get(source, ""))
    server, certificate = find_server(api)
    trusted = folder / "certificate.pem"
    trusted.write_text(certificate, "utf-8")
    process = TunnelProcess(
        [
            str(program),
            "http",
            "-n",
            secrets.token_urlsafe(32),
            "-l",
            str(port),
            "-i",
            "127.0.0.1",
            "--uc",
            "--sd",
            "random",
            "--ue",
            "--server_addr",
            server,
            "--disable_log_color",
            "--tls_enable",
            "--tls_trusted_ca_file",
            str(trusted),
        ]
    )
    try:
        address = process.wait_for_address(wait_s)
    except BaseException:
        process.end()
        raise
    return OpenTunnel(address.replace("http://", "https://", 1), process.end, process.find_fault)


class TunnelProcess:
    """The running program, whose output tells the tunnel's state. It reconnects by itself, keeping the address."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WATCHDOG, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._first: Future[str] = Future()
        self._connected = False
        threading.Thread(target=self._read_output, name="tunnel", daemon=True).start()

    def wait_for_address(self, wait_s: float) -> str:
        """Return the address, or raise a Trouble: at the latest after `wait_s`, because a blocked program may say nothing."""
        try:
            return self._first.result(wait_s)
        except TimeoutError:
            raise tunnel_blocked() from None

    def find_fault(self) -> Sentence | None:
        if self._process.poll() is not None:
            return say(
                "tunnel.ended", "The link has ended: its program stopped, or Gradio's server closed it. End sharing and create a new link."
            )
        return (
            None
            if self._connected
            else say(
                "tunnel.lost",
                "The link is offline: the connection to Gradio's server was lost. Hearth keeps reconnecting; the address stays the same.",
            )
        )

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read_output(self) -> None:
        """Read to the end, so that the program never blocks on a full pipe."""
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                if found := _OPENED.search(line):
                    self._connected = True
                    if not self._first.done():
                        self._first.set_result(found[1])
                elif _RECONNECTING in line:
                    self._connected = False
                elif not self._first.done() and (trouble := parse_trouble(line)):
                    self._first.set_exception(trouble)
        if not self._first.done():
            self._first.set_exception(tunnel_blocked())


def parse_trouble(line: str) -> Trouble | None:
    if found := _REFUSED.search(line):
        return Trouble(
            say(
                "tunnel.refused",
                "No link was created. Gradio's share server or its program reports: {said}. Try again later; "
                "everything else keeps working.",
                said=found[1].strip()[:QUOTE_LETTERS],
            )
        )
    if found := _UNSTARTED.search(line):
        return Trouble(
            say(
                "tunnel.program",
                "The tunnel program does not run on this machine: {fault}. Share in your own network with --listen instead.",
                fault=found[1].strip(),
            )
        )
    return tunnel_blocked() if _FAILED in line else None


def tunnel_blocked() -> Trouble:
    return Trouble(
        say(
            "tunnel.blocked",
            "No link was created: the connection to Gradio's share server is blocked, perhaps by a firewall. "
            "Share in your own network with --listen instead.",
        )
    )


def fetch_program(folder: Path, source: str, sha256: str) -> Path:
    """Return the program, downloaded unless it exists. Its checksum is checked before every run."""
    if not sha256:
        raise Trouble(
            say(
                "tunnel.platform",
                "Gradio offers no tunnel program for this kind of machine. Share in your own network with --listen instead.",
            )
        )
    program = folder / f"{BINARY_FILENAME}{EXTENSION}"
    if program.is_file() and sha256_of(program) == sha256:
        return program
    program.unlink(missing_ok=True)
    try:
        with atomic_write.replacing(program) as half:
            with httpx.stream("GET", source, timeout=WAIT_S, follow_redirects=True) as answer, half.open("wb") as file:
                answer.raise_for_status()
                for piece in answer.iter_bytes():
                    file.write(piece)
                    if file.tell() > PROGRAM_BYTES:
                        raise OSError("the file is far too large")
            if sha256_of(half) != sha256:
                raise Trouble(
                    say(
                        "tunnel.checksum",
                        "The downloaded tunnel program had a wrong checksum and was deleted. "
                        "Someone may be tampering with your connection; try another network.",
                    )
                )
    except (httpx.HTTPError, OSError) as fault:
        raise Trouble(
            say(
                "tunnel.fetch",
                "The tunnel program could not be downloaded: {fault}. Check the connection, then try again.",
                fault=str(fault) or type(fault).__name__,
            )
        ) from fault
    program.chmod(0o700)
    return program


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_server(api: str) -> tuple[str, str]:
    """Ask Gradio for its share server: the address and the certificate to trust."""
    try:
        answer = httpx.get(api, timeout=WAIT_S).raise_for_status().json()[0]
        return f"{answer['host']}:{int(answer['port'])}", str(answer["root_ca"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as fault:
        raise Trouble(say("tunnel.offline", "Gradio's share server does not answer. Check the connection, then try again.")) from fault
