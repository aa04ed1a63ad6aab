"""A crowd at a Hearth of its own process, and an owner who looks at the page meanwhile: how long does the page take?"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import json
import os
import random
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support.places import TOP

SPEECH = {"input": "[S1] Hello.", "model": "tts-1", "voice": "alloy", "response_format": "wav"}
JSON = {"Content-Type": "application/json"}
NESTED = {
    "deep": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "wide": lambda size: "[" + ",".join(["[]"] * (size // 3)) + "]",
    "bushy": lambda size: '{"a":' * 90 + "[" + ",".join(['{"path":[{}]}'] * (size // 14)) + "]" + "}" * 90,
}


@dataclass(frozen=True)
class Place:
    """Where a Hearth is open: the owner's page, the share link, its password."""

    owner: str
    share: str
    password: str
    home: Path
    pid: int = 0

    def jobs(self) -> list[str]:
        """List what was accepted; a job whose client has gone is stopped."""
        with contextlib.closing(sqlite3.connect(self.home / "hearth.sqlite3", timeout=30)) as database:
            return [id_ for (id_,) in database.execute("SELECT id FROM jobs")]


@contextmanager
def hearth(home: Path) -> Iterator[Place]:
    """A process with the real servers and limits. Its engine never starts, so that jobs wait for as long as it lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.crowd", str(home)],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None and process.stdin is not None
    try:
        told = next((line for line in process.stdout if line.startswith("{")), "")
        yield Place(**{**json.loads(told), "home": home, "pid": process.pid})
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


def serve(folder: Path) -> None:
    """The child's part: open, tell where, and close when nobody listens any more."""
    from app.base.paths import home
    from app.ui import share
    from app.ui.launch import LaunchOptions, build_guards, start_server
    from app.ui.process_limits import prepare_environment
    from app.ui.share import Share
    from app.ui.state.desk import Desk
    from app.ui.state.settings import Settings
    from tests.support.guests import no_tunnel
    from tests.support.waiting import Idle

    place = home(folder).create()
    prepare_environment(place)
    keeper = Idle(place)
    desk = Desk(keeper, Settings(place.settings))
    sharing = Share(desk, no_tunnel)
    owner = start_server(LaunchOptions(place), desk, None, share.routes(sharing), build_guards(place)[0])
    sharing.begin(1)
    seen = sharing.view()
    print(json.dumps({"owner": owner, "share": seen["address"], "password": seen["password"]}), flush=True)
    sys.stdin.read()
    os._exit(0)


@dataclass
class Looks:
    """How long the page took, each time that its owner looked."""

    took_s: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def percentile(self, path: str, share: float) -> float:
        times = sorted(self.took_s[path]) or [0.0]
        return times[min(len(times) - 1, int(share * len(times)))]

    def describe(self, path: str = "/hearth/live") -> str:
        p50, p99 = (self.percentile(path, share) * 1000 for share in (0.5, 0.99))
        return f"{path}: p50 {p50:.0f} ms, p99 {p99:.0f} ms, most {self.percentile(path, 1) * 1000:.0f} ms, {len(self.took_s[path])} looks"


PATHS = ("/hearth/live", "/", "/sdapi/v1/interrupt")
"""The live answers are asked eight times of ten, as the page does; the page and Stop get the rest."""


@contextmanager
def looking(address: str, every_s: float = 0.05) -> Iterator[Looks]:
    looks, done = Looks({path: [] for path in PATHS}), threading.Event()

    def look(path: str) -> None:
        line = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        began = time.monotonic()
        try:
            line.request("POST" if "interrupt" in path else "GET", path, b"{}" if "interrupt" in path else None, JSON)
            answer = line.getresponse()
            answer.read()
            if answer.status != 200:
                looks.faults.append(f"{path}: {answer.status}")
        except OSError as fault:
            looks.faults.append(f"{path}: {fault!r}")
        finally:
            line.close()
            looks.took_s[path].append(time.monotonic() - began)

    def go_on() -> None:
        turn = 0
        while not done.is_set():
            look(PATHS[0] if turn % 10 < 8 else PATHS[turn % 10 - 7])
            turn += 1
            done.wait(every_s)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield looks
    finally:
        done.set()
        thread.join()


@contextmanager
def crowd(attack: str, *given: Any, of: str = "tests.support.crowd") -> Iterator[Callable[[], Any]]:
    """A function of a module in a process of its own, so that it does not slow down who looks; the value begins it and
    returns its outcome."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.crowd", "attack", json.dumps([of, attack, *given])],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    def begin() -> Any:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    try:
        yield begin
    finally:
        process.kill()
        process.communicate()


def attack(module: str, name: str, *given: Any) -> None:
    """The child's part."""
    run = getattr(importlib.import_module(module), name)
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(run(*given)), flush=True)
    time.sleep(600)  # its lines stay open


def raw(address: str, path: str, body: str, head: str = "") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: application/json\r\n{head}"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    found = urlsplit(address)
    return await asyncio.open_connection(found.hostname, found.port)


def waiting_calls(address: str, count: int, within_s: float, path: str = "/v1/audio/speech") -> Counter[str]:
    """Calls that wait for their job; return how many still wait, and what the others were told."""

    async def call() -> str:
        reader, writer = await connect(address)
        writer.write(raw(address, path, json.dumps(SPEECH)))
        try:
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), within_s)).decode().lower()
        except TimeoutError:
            return "waits"
        writer.close()
        return head.split()[1] + (" retry" if "retry-after:" in head else "")

    async def all_calls() -> Counter[str]:
        return Counter(await asyncio.gather(*(call() for _ in range(count))))

    return asyncio.run(all_calls())


def gradio_joins(address: str, count: int) -> Counter[int]:
    """What Gradio's client sends for /speak, all at once; return the statuses."""

    async def all_joins() -> Counter[int]:
        async with httpx.AsyncClient(base_url=address, timeout=120, limits=httpx.Limits(max_connections=None)) as asked:
            config = (await asked.get("/config")).json()
            (index,) = [each["id"] for each in config["dependencies"] if each["api_name"] == "speak"]
            data = ["[S1] Hello.", "", "", None, 1.0, "wav"]

            async def join(n: int) -> int:
                body = {"fn_index": index, "data": data, "session_hash": f"crowd{n % 7}"}
                return (await asked.post("/gradio_api/queue/join", json=body)).status_code

            return Counter(await asyncio.gather(*map(join, range(count))))

    return asyncio.run(all_joins())


def nested_bodies(address: str, paths: list[str], count: int, size: int, cookie: str = "") -> Counter[str]:
    """Bodies of `size` bytes that are nothing but structure, several at once."""
    head = f"Cookie: {cookie}\r\n" if cookie else ""

    async def send(path: str, text: str) -> str:
        reader, writer = await connect(address)
        with contextlib.suppress(ConnectionError):
            writer.write(raw(address, path, text, head))
            await writer.drain()
        try:
            return (await asyncio.wait_for(reader.readline(), 60)).decode().split()[1]
        except (TimeoutError, ConnectionError, IndexError):
            return "cut off"
        finally:
            writer.close()

    async def all_bodies() -> Counter[str]:
        texts = [make(size) for make in NESTED.values()]
        joined = [f'{{"fn_index": 0, "session_hash": "n", "data": [{text}]}}' for text in texts]
        sent = [send(path, text) for path in paths for text in (*texts, *joined) for _ in range(count)]
        return Counter(await asyncio.gather(*sent))

    return asyncio.run(all_bodies())


def slow_readers(address: str, count: int, seconds: float, path: str = "/config") -> int:
    """Each reads one byte a second; return how many are still served."""
    lines = []
    for _ in range(count):
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        line.connect((urlsplit(address).hostname, urlsplit(address).port))
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\n\r\n".encode())
        line.settimeout(5)
        lines.append(line)
    end_s, served = time.monotonic() + seconds, 0
    while time.monotonic() < end_s:
        served = 0
        for line in lines:
            with contextlib.suppress(OSError):
                served += bool(line.recv(1))
        time.sleep(1)
    return served


def half_open(address: str, count: int, seconds: float, seed: int = 1) -> int:
    """Lines that begin a request and never end it; each one that is closed is opened again."""
    drawn, lines, opened = random.Random(seed), list[socket.socket](), 0
    whole = f"POST /v1/audio/speech HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Length: 999\r\n\r\n{{"
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        while len(lines) < count:
            line = socket.socket()
            line.settimeout(2)
            try:
                line.connect((urlsplit(address).hostname, urlsplit(address).port))
                line.sendall(whole[: drawn.randrange(len(whole))].encode())
            except OSError:
                line.close()
                break
            line.setblocking(False)
            lines.append(line)
            opened += 1
        time.sleep(0.2)
        for line in [*lines]:
            try:
                ended = not line.recv(4096)
            except BlockingIOError:
                continue
            except OSError:
                ended = True
            if ended:
                line.close()
                lines.remove(line)
    return opened


def submit(address: str, count: int, within_s: float = 90) -> Counter[str]:
    """What each call of Gradio's own client was told, as far as it was told anything. Its 500 threads would take the
    server's processors as well, and give up after 5 s; other computers' do not, so these come last."""
    from gradio_client import Client

    if sys.platform != "win32":
        os.nice(19)
    client = Client(address, max_workers=count, verbose=False)
    calls = [client.submit("[S1] Hello.", api_name="/speak") for _ in range(count)]
    end_s = time.monotonic() + within_s
    told: Counter[str] = Counter()
    while time.monotonic() < end_s and told.total() < count:
        told = Counter(str(call.exception()) for call in calls if call.done())
        time.sleep(0.5)
    return told


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        attack(*json.loads(sys.argv[2]))
    else:
        serve(Path(sys.argv[1]))
