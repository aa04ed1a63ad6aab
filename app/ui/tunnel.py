"""The tunnel of a share link: Gradio's own program and server, but verified every time, with an end to waiting, and every failure a sentence."""

from __future__ import annotations

import hashlib
import queue
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

import httpx
from gradio.networking import GRADIO_API_SERVER
from gradio.tunneling import BINARY_FILENAME, BINARY_URL, CHECKSUMS, EXTENSION

from app.sentence import Trouble, say

WAIT_S: Final = 30.0
PROGRAM_BYTES: Final = 64 << 20
_MADE: Final = re.compile(r"start proxy success: (\S+)")
_REFUSED: Final = ("login to server failed", "connect to server error")


def tunnel(
    port: int, folder: Path, api: str = GRADIO_API_SERVER, source: str = BINARY_URL, sha256: str | None = None, wait_s: float = WAIT_S
) -> tuple[str, Callable[[], None]]:  # fmt: skip
    """The address that the world reaches this port by, and what takes it down."""
    program = fetched(folder, source, sha256 or CHECKSUMS.get(source, ""))
    server, certificate = told_server(api)
    trusted = folder / "certificate.pem"
    trusted.write_text(certificate, "utf-8")
    command = [
        str(program), "http", "-n", secrets.token_urlsafe(32), "-l", str(port), "-i", "127.0.0.1", "--uc", "--sd", "random", "--ue",
        "--server_addr", server, "--disable_log_color", "--tls_enable", "--tls_trusted_ca_file", str(trusted),
    ]  # fmt: skip
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")  # fmt: skip
    except OSError as fault:
        raise Trouble(say("tunnel.program", "The program that makes the link does not run here: {fault}. Everything else goes on.", fault=str(fault))) from fault  # fmt: skip
    try:
        address = said_address(process, wait_s)
    except BaseException:
        ended(process)
        raise
    return address.replace("http://", "https://", 1), lambda: ended(process)


def fetched(folder: Path, source: str, sha256: str) -> Path:
    """Known by its checksum each time, not only after the download: a broken one that stayed would be run the next time."""
    if not sha256:
        raise Trouble(say("tunnel.platform", "Gradio has no program for share links on this kind of machine. Share in your own network with --listen."))  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{BINARY_FILENAME}{EXTENSION}"
    if program.is_file() and digest(program) == sha256:
        return program
    program.unlink(missing_ok=True)
    half = program.with_suffix(".part")
    try:
        with httpx.stream("GET", source, timeout=WAIT_S, follow_redirects=True) as answer, half.open("wb") as file:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                file.write(piece)
                if file.tell() > PROGRAM_BYTES:
                    raise OSError("far too large")
        if digest(half) != sha256:
            raise Trouble(say("tunnel.checksum", "The program that makes the link came with a wrong checksum and was deleted. Somebody may be meddling with your connection; try again elsewhere."))  # fmt: skip
        half.replace(program)
    except (httpx.HTTPError, OSError) as fault:
        raise Trouble(say("tunnel.fetch", "The program that makes the link cannot be fetched: {fault}. Check the connection; everything else goes on.", fault=str(fault) or type(fault).__name__)) from fault  # fmt: skip
    finally:
        half.unlink(missing_ok=True)
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


def said_address(process: subprocess.Popen[str], wait_s: float) -> str:
    """Read in a thread of its own: a tunnel that is silently blocked says nothing at all."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=_reading, args=(process.stdout, lines), name="tunnel", daemon=True).start()
    limit_s = time.monotonic() + wait_s
    while (left_s := limit_s - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left_s)
        except queue.Empty:
            break
        if line is None or any(each in line for each in _REFUSED):
            break
        if found := _MADE.search(line):
            return found[1]
    raise Trouble(say("tunnel.blocked", "The link could not be made: the tunnel is blocked on the way, perhaps by a firewall. Everything else goes on; in your own network --listen works."))  # fmt: skip


def _reading(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    """To the end, so that the program never waits for a full pipe; only the first lines are of interest."""
    for line in stream:
        if lines.qsize() < 1000:
            lines.put(line)
    lines.put(None)


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
