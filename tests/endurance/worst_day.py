"""Give an owner the worst day that guests can make: they guess, log in again, flood the queue, the disk and the lines.

`python -m tests.endurance.worst_day --seconds 60 --seed 1` says how long the owner's page took meanwhile, and ends with
code 1 where its live answer took half a second (p99), or guests held more of the queue or the disk than they may.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import random
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import psutil
from PIL import Image

from app.engine.jobs.owners import Allowance, household_of
from app.ui.state.guest_files import GUESTS_BYTES, UNDER_WAY
from tests.support import crowd
from tests.support.crowd import NESTED, Looks, Place

GUESTS = 24
"""So many things are done at once."""
ADDRESSES = 3
AT_ONCE_S = 0.5


class Guest:
    """One of those who do whatever comes to mind, drawn from a seed."""

    def __init__(self, share: str, password: str, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.share, self.password = share, password
        via = f"198.51.100.{1 + self.drawn.randrange(ADDRESSES)}"
        self.client = httpx.AsyncClient(base_url=share, timeout=20, headers={"X-Forwarded-For": via})
        self.indices: list[int] = [0]
        self.speech: dict[str, Any] = {}
        self.told: Counter[str] = Counter()
        self.acts: list[Callable[[], Awaitable[str]]] = [
            self.log_in, self.guess, self.ask, self.ask, self.speak, self.speak, self.queue, self.send_file, self.nest, self.read_slowly, self.leave_open,
        ]  # fmt: skip

    async def live(self, until_s: float) -> Counter[str]:
        await self.log_in()
        with contextlib.suppress(httpx.HTTPError, ValueError, KeyError):
            config = (await self.client.get("/config")).json()
            self.indices = [each["id"] for each in config["dependencies"]]
            self.speech = speech_from(config, f"s{id(self)}")
        while time.monotonic() < until_s:
            act = self.drawn.choice(self.acts)
            try:
                self.told[f"{act.__name__} {await act()}"] += 1
            except (httpx.HTTPError, OSError) as fault:
                self.told[f"{act.__name__} {type(fault).__name__}"] += 1
        await self.client.aclose()
        return self.told

    async def log_in(self) -> str:
        answer = await self.client.post("/hearth/login", data={"password": self.password, "name": "me"})
        return str(answer.status_code)

    async def guess(self) -> str:
        asked = [self.client.post("/hearth/login", data={"password": f"no {self.drawn.random()}"}) for _ in range(8)]
        return " ".join(sorted({str(each.status_code) for each in await asyncio.gather(*asked)}))

    async def ask(self) -> str:
        path = self.drawn.choice(["/", "/config", "/hearth/live", "/hearth/words", "/gradio_api/heartbeat/x", "/v1/models"])
        async with self.client.stream("GET", path) as answer:
            return str(answer.status_code)

    async def speak(self) -> str:
        answer = await self.client.post("/gradio_api/run/predict", json=self.speech)
        refused = "h-trouble" in answer.text or "queue" in answer.text
        return f"{answer.status_code}{' refused' if refused else ''}"

    async def queue(self) -> str:
        values: list[Any] = [None, 1, -1, "x" * self.drawn.randrange(2500), "[S1] Hello.", True, [], {}]
        body = {
            "fn_index": self.drawn.choice(self.indices),
            "session_hash": f"s{id(self)}",
            "data": [self.drawn.choice(values) for _ in range(self.drawn.randrange(25))],
        }
        path = self.drawn.choice(["run/predict", "queue/join"])
        return str((await self.client.post(f"/gradio_api/{path}", json=body)).status_code)

    async def send_file(self) -> str:
        picture, side = io.BytesIO(), self.drawn.randrange(8, 1200)
        noise = np.random.default_rng(self.drawn.randrange(2**32)).integers(0, 255, (side, side, 3), np.uint8)
        Image.fromarray(noise).save(picture, "PNG", compress_level=0)
        sent = self.drawn.choice([picture.getvalue(), picture.getvalue()[:-9], self.drawn.randbytes(1 << 20)])
        return str((await self.client.post("/gradio_api/upload", files={"files": ("a.png", sent)})).status_code)

    async def nest(self) -> str:
        body = NESTED[self.drawn.choice([*NESTED])](self.drawn.choice([20_000, 2 << 20]))
        body = self.drawn.choice([body, f'{{"fn_index": 0, "session_hash": "n", "data": {body}}}'])
        path = self.drawn.choice(["gradio_api/run/predict", "gradio_api/queue/join", "hearth/check", "hearth/login"])
        return str((await self.client.post(f"/{path}", content=body, headers=crowd.JSON)).status_code)

    async def read_slowly(self) -> str:
        reader, writer = await crowd.connect(self.share)
        cookie = f"hearth_guest={self.client.cookies.get('hearth_guest', '')}"
        writer.write(f"GET /config HTTP/1.1\r\nHost: {urlsplit(self.share).netloc}\r\nCookie: {cookie}\r\n\r\n".encode())
        for _ in range(5):
            await asyncio.wait_for(reader.read(1), 5)
            await asyncio.sleep(1)
        writer.close()
        return "read"

    async def leave_open(self) -> str:
        reader, writer = await crowd.connect(self.share)
        writer.write(crowd.raw(self.share, "/hearth/login", "password=x")[: self.drawn.randrange(120)])
        with contextlib.suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(reader.read(), self.drawn.random() * 5)
        writer.close()
        return "left"


def speech_from(config: dict[str, Any], session: str) -> dict[str, Any]:
    """What the page sends when a script is to be spoken."""
    parts = {each["id"]: each["props"] for each in config["components"]}
    (go,) = [id_ for id_, props in parts.items() if props.get("elem_id") == "speak-go"]
    (found,) = [each for each in config["dependencies"] if [go, "click"] in each["targets"]]
    asked = {"speak-text": "[S1] Hello."}
    data = [asked.get(parts[id_].get("elem_id"), parts[id_].get("value")) for id_ in found["inputs"]]
    return {"fn_index": found["id"], "data": data, "session_hash": session}


def live_as_guests(share: str, password: str, seed: int, seconds: float) -> Counter[str]:
    async def all_guests() -> Counter[str]:
        until_s = time.monotonic() + seconds
        guests = [Guest(share, password, seed * 1000 + n) for n in range(GUESTS)]
        told: Counter[str] = Counter()
        for each in await asyncio.gather(*(guest.live(until_s) for guest in guests)):
            told += each
        return told

    return asyncio.run(all_guests())


def waiting_by_household(place: Place) -> Counter[str]:
    with closing(sqlite3.connect(place.home / "hearth.sqlite3", timeout=30)) as database:
        rows = database.execute("SELECT owner FROM jobs WHERE state='queued'").fetchall()
    return Counter(household_of(owner) for (owner,) in rows)


def live_through(home: Path, seed: int, seconds: float) -> Looks:
    """Live through one such day; raise AssertionError where the owner noticed it, or guests held too much."""
    allowed = Allowance()
    with crowd.hearth(home) as place:
        process = psutil.Process(place.pid)
        before = process.memory_info().rss
        guests = crowd.crowd("live_as_guests", place.share, place.password, seed, seconds, of="tests.endurance.worst_day")
        with guests as begin, crowd.looking(place.owner) as looks:
            told = begin()
        waiting = waiting_by_household(place)
        held = sum(each.stat().st_size for each in (home / "scratch" / "uploads").rglob("*") if each.is_file())
        print(f"seed {seed}, {seconds:.0f} s, {GUESTS} guests at {ADDRESSES} addresses: {sum(told.values())} deeds")
        print(json.dumps(dict(sorted(told.items())), indent=1))
        print("\n".join(map(looks.describe, crowd.PATHS)))
        print(
            f"waiting {dict(waiting)}, uploads {held >> 20} MB, memory +{(process.memory_info().rss - before) >> 20} MB, "
            f"{process.num_threads()} threads, {process.num_fds()} files"
        )
    assert not looks.faults, looks.faults[:5]
    assert looks.percentile("/hearth/live", 0.99) < AT_ONCE_S, looks.describe()
    assert all(count <= allowed.waiting for count in waiting.values()) and waiting.total() <= max(allowed.waiting_all, len(waiting))
    assert held <= GUESTS_BYTES + UNDER_WAY * (32 << 20)
    return looks


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=60)
    asked.add_argument("--seed", type=int, default=random.randrange(1000))
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        live_through(Path(folder), given.seed, given.seconds)


if __name__ == "__main__":
    main()
