"""Fuzz every route of the owner's and the guests' servers over real sockets. Run: python tests/fuzz_routes.py --requests 20000 --seed 1"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

import gradio as gr
from starlette.routing import BaseRoute

from app.ui import share
from app.ui.access.gradio_fence import IN_USE, OURS
from app.ui.access.login_form import LOGIN_PATH
from tests.support.both_servers import served
from tests.support.nasty import TEXTS, break_object, break_text, draw_value

ANSWER_S: Final = 30.0
GOOD: Final[dict[str, tuple[Any, ...]]] = {
    "text": ("[S1] Hello there.",), "kind": ("speech", "picture"), "model": ("starter-voice", "starter-painter", ""), "id": (1, 2), "name": ("Ada",),
    "value": ("sd15", ""), "hours": (1,), "prompt": ("a boat at sunset",), "input": ("Hello.",), "voice": ("alloy",), "size": ("64x64", "auto"),
    "seed": (5, -1), "steps": (2,), "n": (1,), "speed": (1.0, 1.5), "width": (64,), "height": (64,), "batch_size": (1,), "cfg_scale": (7,),
    "response_format": ("mp3", "b64_json", "url"), "stream_format": ("audio", "sse"), "init_images": (["iVBORw0KGgo="],), "session_hash": ("abc",),
    "fn_index": (0, 1, 2), "data": ([], ["a"]), "job": ("0123",), "act": (
        "up", "remove", "limits", "send-away", "delete", "forget", "pause", "favourite", "begin", "again", "get", "add", "where", "creations", "free",
        "go-on", "let-go", "restore", "end", "stop",
    ),
    "skip": ("0", "60"), "ids": ("1,2",), "words": ("boat",), "as": ("gtx-1060",), "format": ("mp3",), "path": ("style.css", "../x"),
    "api_name": ("predict", "speak"),
}  # fmt: skip
"""A field's good values get a request past the first check; a name that is not here gets a short word."""
NAMES: Final = tuple(GOOD)
DIFFERENT_TYPES: Final = (
    "application/json", "application/json", "application/json", "application/json", "application/json; charset=klingon", "text/plain", "",
    "multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "multipart/form-data; boundary=\xff; charset=klingon",
)  # fmt: skip
HEADERS: Final = (
    ("Origin", "http://["), ("Origin", "null"), ("Origin", "http://a.b:99999999"), ("Referer", "http://["), ("Cookie", "hearth_language=\xff; a"),
    ("Accept-Language", "zh;q=\xff"), ("Content-Length", "9" * 5000), ("Content-Length", "-1"), ("Host", "[::1"), ("Host", "127.0.0.1:" + "9" * 5000),
    ("Authorization", "Bearer \xff"), ("Range", "bytes=9-1"), ("Range", "bytes=" + "0-," * 2000), ("If-None-Match", "\xff"), ("X-Forwarded-Host", "http://["),
    ("X-Forwarded-Proto", "\xff"), ("X-Forwarded-For", "\xff"), ("x-gradio-user", "\xff"), ("session_hash", "\xff"), ("Accept-Encoding", "\xff"),
)  # fmt: skip


@dataclass
class Target:
    """One route of one server."""

    server: str
    path: str
    methods: tuple[str, ...]


@dataclass
class Outcome:
    """What was answered: counts of statuses, and of each bad answer by its route with one example."""

    statuses: Counter[int] = field(default_factory=Counter)
    by_route: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    slowest_s: float = 0.0
    slowest: str = ""


def list_routes(app: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Return the paths and methods of an app's own table, whatever is included or mounted. Gradio's router is included."""
    found: list[tuple[str, tuple[str, ...]]] = []

    def walk(routes: list[BaseRoute], before: str) -> None:
        for each in routes:
            path = before + getattr(each, "path", "")
            inner = getattr(each, "routes", None) or getattr(getattr(each, "original_router", None), "routes", None)
            if inner:
                walk(inner, path)
            elif methods := getattr(each, "methods", None):
                found.append((path, tuple(sorted(methods))))

    walk(app.routes, "")
    return list(dict.fromkeys(found))


class Fuzzer:
    """Draws requests, sends them, and counts what is answered."""

    def __init__(self, address: str, sharing: share.Share, seed: int) -> None:
        self.random, self.sharing, self.outcome = random.Random(seed), sharing, Outcome()
        self.address = {"owner": address, "guest": ""}
        self.cookie = ""
        self.enter()
        self.targets = [
            Target(who, path, methods) for who, address in self.address.items() for path, methods in list_routes(find_app(address))
        ]
        self.targets += [Target("guest", LOGIN_PATH, ("GET", "POST"))] * 3  # a middleware's, and in no table
        plain = [(re.sub(r"\{[^}]*\}", "x", each.path), each) for each in self.targets]
        self.served = [each for path, each in plain if OURS.fullmatch(path) or IN_USE.fullmatch(path)]
        self.calls = {who: self.read_calls(who) for who in self.address}

    def enter(self) -> None:
        """Open the share where the fuzzer closed it, and log in as a guest."""
        if not self.sharing.view()["open"]:
            self.sharing.begin(1)
        now = self.sharing._open
        assert now is not None
        self.address["guest"] = f"http://127.0.0.1:{now.server.server_port}/"
        now.logins.guesses.wrong.clear()
        token = now.logins.log_in(now.password, "Eve")
        self.cookie = f"hearth_guest={token}"

    def read_calls(self, who: str) -> list[dict[str, Any]]:
        """Return a good body for each function of Gradio's that this window has."""
        _, body = self.send(who, b"GET", "/config", {}, b"", whole=True)
        config = json.loads(body)
        values = {each["id"]: each["props"].get("value") for each in config["components"]}
        return [
            {"fn_index": each["id"], "data": [values[id_] for id_ in each["inputs"]], "session_hash": "abc"}
            for each in config["dependencies"]
        ]

    def send(self, who: str, method: bytes, path: str, headers: dict[str, str], body: bytes, whole: bool = False) -> tuple[int, bytes]:
        """Return the status, and the body where it is wanted. -1: no answer in time, -2: the connection ended without one."""
        parts = urlsplit(self.address[who])
        host = f"{parts.hostname}:{parts.port}"
        lines = {"Host": host, "Content-Length": str(len(body)), "Connection": "close", **headers}
        if who == "guest":
            lines.setdefault("Cookie", self.cookie)
        head = method + b" " + path.encode("latin-1", "replace") + b" HTTP/1.1\r\n"
        for name, value in lines.items():
            head += f"{name}: {value}\r\n".encode("latin-1", "replace")
        with socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_S) as link:
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    link.sendall(head + b"\r\n" + body)
                answer = http.client.HTTPResponse(link, method=method.decode("latin-1", "replace"))
                answer.begin()
                return answer.status, answer.read(None if whole else 2000) if whole or answer.status >= 500 else b""
            except TimeoutError:
                return -1, b""
            except (http.client.HTTPException, OSError):
                return -2, b""

    def draw(self) -> tuple[str, str, bytes, str, dict[str, str], bytes]:
        """Draw one request: a route, its parameters, headers and body."""
        rng = self.random
        target = rng.choice(self.served if rng.random() < 0.85 else self.targets)
        method = (rng.choice(target.methods) if rng.random() < 0.97 else rng.choice(("POST", "PUT", "PATCH", "OPTIONS"))).encode()

        def fill(found: re.Match[str]) -> str:
            word = break_text(rng, str(rng.choice(GOOD.get(found[1], ("1",)))))
            encoded = word.encode("utf-8", "surrogatepass")[:8000]
            return quote(encoded, safe="/" if "path" in found[0] else "") if rng.random() < 0.97 else "%ff%00"

        path = re.sub(r"\{(\w+)(?::\w+)?\}", fill, target.path)
        if rng.random() < 0.25:
            names = rng.sample(NAMES, rng.randrange(4))
            query = [(each, break_text(rng, str(rng.choice(GOOD[each]))).encode("utf-8", "surrogatepass")[:8000]) for each in names]
            path += "?" + urlencode(query) if rng.random() < 0.95 else "?%ff=%ff&a=%zz&=;"
        body, headers = b"", {}
        if method != b"GET":
            good = {each: rng.choice(GOOD[each]) for each in NAMES if rng.random() < 0.5}
            if target.path.startswith("/gradio_api") and self.calls[target.server]:
                good = dict(rng.choice(self.calls[target.server]))
                if rng.random() < 0.5 and good["data"]:
                    data = [*good["data"]]
                    data[rng.randrange(len(data))] = draw_value(rng)
                    good["data"] = data
            body = break_object(rng, good, NAMES)
            headers["Content-Type"] = "application/json" if rng.random() < 0.8 else rng.choice(DIFFERENT_TYPES)
            if target.path.endswith("/upload") and rng.random() < 0.7:
                headers["Content-Type"] = "multipart/form-data; boundary=x"
            if "multipart" in headers["Content-Type"]:
                body = self.draw_form()
        if rng.random() < 0.05:
            name, value = rng.choice(HEADERS)
            headers[name] = value
        return target.server, target.path, method, path, headers, body

    def draw_form(self) -> bytes:
        rng = self.random
        pieces = []
        for _ in range(rng.randrange(4)):
            name = break_text(rng, rng.choice(("image", "mask", "prompt", "n", "files")))[:200]
            file = rng.choice(("", '; filename="a.png"', f'; filename="{break_text(rng, "a.png")[:300]}"', "; filename*=klingon''%ff"))
            kind = rng.choice(("", "Content-Type: image/png\r\n", "Content-Transfer-Encoding: base64\r\n"))
            value = rng.choice(TEXTS)[:5000].encode("utf-8", "surrogatepass")
            pieces.append(
                f'--x\r\nContent-Disposition: form-data; name="{name}"{file}\r\n{kind}\r\n'.encode("utf-8", "replace") + value + b"\r\n"
            )
        return b"".join(pieces) + rng.choice((b"--x--\r\n", b"", b"--x"))

    def run(self, requests: int) -> Outcome:
        for count in range(requests):
            if count and count % 1000 == 0:
                print(f"{count} requests, {sum(self.outcome.bad.values())} bad answers", flush=True)
            who, route, method, path, headers, body = self.draw()
            if path.startswith(("/hearth/share/end", "/hearth/share/begin")) and self.random.random() < 0.9:
                continue  # each takes a server a second
            begun_s = time.monotonic()
            status, answer = self.send(who, method, path, headers, body)
            took_s = time.monotonic() - begun_s
            self.note(who, route, method, path, headers, body, status, answer)
            if took_s > self.outcome.slowest_s:
                self.outcome.slowest_s, self.outcome.slowest = took_s, f"{who} {route}"
            if status == 401 or not self.sharing.view()["open"]:
                self.enter()
        return self.outcome

    def note(
        self, who: str, route: str, method: bytes, path: str, headers: dict[str, str], body: bytes, status: int, answer: bytes
    ) -> None:
        self.outcome.statuses[status] += 1
        name = f"{who} {method.decode()} {route}"
        self.outcome.by_route[name] += 1
        worded = status in (503, 507) and b"Error" not in answer
        if (status >= 500 and not worded) or status < 0:
            self.outcome.bad[f"{name} -> {status}"] += 1
            example = f"{path[:200]} {headers} {body[:300]!r} -> {answer[:200]!r}"
            self.outcome.examples.setdefault(f"{name} -> {status}", example)
            print(f"{name} -> {status}: {example}", flush=True)


def find_app(address: str) -> Any:
    return next(each.app for each in gr.Blocks.get_instances() if each.local_url == address and each.is_running)


@contextlib.contextmanager
def fuzzer(folder: Path, seed: int) -> Iterator[Fuzzer]:
    with served(folder) as (_, address, sharing):
        yield Fuzzer(address, sharing, seed)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = parser.parse_args(arguments)
    print(f"seed {asked.seed}", flush=True)
    begun_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, fuzzer(Path(folder), asked.seed) as fuzz:
        print(f"{len(fuzz.targets)} routes", flush=True)
        outcome = fuzz.run(asked.requests)
    print(f"{sum(outcome.statuses.values())} answers in {time.monotonic() - begun_s:.0f} s: {dict(sorted(outcome.statuses.items()))}")
    print(f"slowest {outcome.slowest_s:.2f} s: {outcome.slowest}")
    for name, count in outcome.bad.most_common():
        print(f"{count:5} {name}\n      {outcome.examples[name]}")
    print(f"bad answers: {sum(outcome.bad.values())}")
    return 1 if outcome.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
