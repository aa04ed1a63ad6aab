"""The tunnel of a share link: Gradio's own program and server, but verified every time, with an end to waiting, every failure a sentence, and gone with Hearth."""

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

from app import atomic_write
from app.sentence import Sentence, Trouble, say

WAIT_S: Final = 30.0
PROGRAM_BYTES: Final = 64 << 20
SAID_LETTERS: Final = 200
"""Of what a server says of itself, so that a sentence stays one."""
BESIDE: Final = """
import os, subprocess, sys, threading
try:
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
except OSError as fault:
    sys.exit(f"cannot start: {fault}")
threading.Thread(target=lambda: (os.read(0, 1), program.terminate()), daemon=True).start()
sys.exit(program.wait())
"""
"""Stands between Hearth and the program and ends it with Hearth, however Hearth ends: alone it would lead strangers to whatever takes the port next."""

# What the program says, of itself and of what the server told it. Where the way is blocked, and where the certificate is wrong, it tells nothing more.
_MADE: Final = re.compile(r"start proxy success: (\S+)")
_REFUSED: Final = re.compile(r"(?:\[E\] \[service\.go:\d+\]|start error:) (.+)")
_UNSTARTED: Final = re.compile(r"cannot start: (.+)")
_FAILED: Final = "login to server failed"
_BROKEN: Final = "try to reconnect to server"


@dataclass(frozen=True, slots=True)
class Reached:
    """Where the world gets in, what takes that down, and why nobody gets in at the moment, where that is so."""

    address: str
    take_down: Callable[[], None] = lambda: None
    lost: Callable[[], Sentence | None] = lambda: None


def tunnel(
    port: int, folder: Path, api: str = GRADIO_API_SERVER, source: str = BINARY_URL, sha256: str | None = None, wait_s: float = WAIT_S
) -> Reached:  # fmt: skip
    program = fetched(folder, source, sha256 or CHECKSUMS.get(source, ""))
    server, certificate = told_server(api)
    trusted = folder / "certificate.pem"
    trusted.write_text(certificate, "utf-8")
    line = Line([
        str(program), "http", "-n", secrets.token_urlsafe(32), "-l", str(port), "-i", "127.0.0.1", "--uc", "--sd", "random", "--ue",
        "--server_addr", server, "--disable_log_color", "--tls_enable", "--tls_trusted_ca_file", str(trusted),
    ])  # fmt: skip
    try:
        address = line.address(wait_s)
    except BaseException:
        line.end()
        raise
    return Reached(address.replace("http://", "https://", 1), line.end, line.lost)


class Line:
    """The program while it runs: its words tell how the tunnel stands. It makes a broken one again by itself, under the same address."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen([sys.executable, "-I", "-S", "-c", BESIDE, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")  # fmt: skip
        self._first: Future[str] = Future()
        self._stands = False
        threading.Thread(target=self._reading, name="tunnel", daemon=True).start()

    def address(self, wait_s: float) -> str:
        """A tunnel that is silently blocked says nothing at all."""
        try:
            return self._first.result(wait_s)
        except TimeoutError:
            raise blocked() from None

    def lost(self) -> Sentence | None:
        if self._process.poll() is not None:
            return say("tunnel.ended", "The link has ended: the program that made it has stopped, or Gradio's server has ended it. End the sharing and make a new link.")  # fmt: skip
        return None if self._stands else say("tunnel.lost", "Nobody gets in at the moment: the way to Gradio's server is broken off. It is tried again and again; the link stays the same.")  # fmt: skip

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _reading(self) -> None:
        """To the end, so that the program never waits for a full pipe."""
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                if found := _MADE.search(line):
                    self._stands = True
                    if not self._first.done():
                        self._first.set_result(found[1])
                elif _BROKEN in line:
                    self._stands = False
                elif not self._first.done() and (trouble := troubled(line)):
                    self._first.set_exception(trouble)
        if not self._first.done():
            self._first.set_exception(blocked())


def troubled(line: str) -> Trouble | None:
    if found := _REFUSED.search(line):
        return Trouble(say("tunnel.refused", "No link was made: Gradio's server for share links, or the program that asks it, says: {said}. Try again later; everything else goes on.", said=found[1].strip()[:SAID_LETTERS]))  # fmt: skip
    if found := _UNSTARTED.search(line):
        return Trouble(say("tunnel.program", "The program that makes the link does not run here: {fault}. Everything else goes on.", fault=found[1].strip()))  # fmt: skip
    return blocked() if _FAILED in line else None


def blocked() -> Trouble:
    return Trouble(say("tunnel.blocked", "The link could not be made: the tunnel is blocked on the way, perhaps by a firewall. Everything else goes on; in your own network --listen works."))  # fmt: skip


def fetched(folder: Path, source: str, sha256: str) -> Path:
    """Known by its checksum each time, not only after the download: a broken one that stayed would be run the next time."""
    if not sha256:
        raise Trouble(say("tunnel.platform", "Gradio has no program for share links on this kind of machine. Share in your own network with --listen."))  # fmt: skip
    program = folder / f"{BINARY_FILENAME}{EXTENSION}"
    if program.is_file() and digest(program) == sha256:
        return program
    program.unlink(missing_ok=True)
    try:
        with atomic_write.replacing(program) as half:
            with httpx.stream("GET", source, timeout=WAIT_S, follow_redirects=True) as answer, half.open("wb") as file:
                answer.raise_for_status()
                for piece in answer.iter_bytes():
                    file.write(piece)
                    if file.tell() > PROGRAM_BYTES:
                        raise OSError("far too large")
            if digest(half) != sha256:
                raise Trouble(say("tunnel.checksum", "The program that makes the link came with a wrong checksum and was deleted. Somebody may be meddling with your connection; try again elsewhere."))  # fmt: skip
    except (httpx.HTTPError, OSError) as fault:
        raise Trouble(say("tunnel.fetch", "The program that makes the link cannot be fetched: {fault}. Check the connection; everything else goes on.", fault=str(fault) or type(fault).__name__)) from fault  # fmt: skip
    program.chmod(0o700)
    return program


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def told_server(api: str) -> tuple[str, str]:
    try:
        answer = httpx.get(api, timeout=WAIT_S).raise_for_status().json()[0]
        return f"{answer['host']}:{int(answer['port'])}", str(answer["root_ca"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as fault:
        raise Trouble(say("tunnel.offline", "Gradio's server for share links does not answer. Check the connection; everything else goes on.")) from fault  # fmt: skip
