"""A hub on loopback that speaks the real one's protocol as far as huggingface_hub asks, breaks when told to, and counts what it sends."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.waiting import until

LARGE = (".safetensors", ".gguf", ".bin", ".ckpt")
PIECE = 1 << 14


@dataclass
class Fault:
    """What happens instead of a right answer, `times` times."""

    kind: str
    """`cut` ends after `value` bytes, `wrong` flips one byte, `status` answers with this code, `plain` ignores the range."""
    value: int = 0
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Hub:
    repos: dict[str, dict[str, bytes]]
    gated: set[str] = field(default_factory=set)
    tokens: dict[str, set[str]] = field(default_factory=dict)
    """A token opens these gated repositories."""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    """A fault stands by the path in the repository, or by "list" for the listing."""
    bytes_a_second: float = 0
    sent: Counter[str] = field(default_factory=Counter)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Each request leaves its method, address and headers here."""
    endpoint: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _answers: int = 0
    """So many files are being sent."""

    @contextmanager
    def sending(self) -> Iterator[None]:
        with self.lock:
            self._answers += 1
        try:
            yield
        finally:
            with self.lock:
                self._answers -= 1

    def rest(self) -> None:
        """Wait until nothing is sent any more: what is on its way when somebody goes is counted, too."""
        until(lambda: not self._answers)

    def commit(self, repo: str) -> str:
        every = "".join(f"{name}{hashlib.sha1(data).hexdigest()}" for name, data in sorted(self.repos[repo].items()))
        return hashlib.sha1(every.encode()).hexdigest()

    def fault(self, key: str) -> Fault | None:
        with self.lock:
            waiting = self.faults.get(key, [])
            if not waiting:
                return None
            waiting[0].times -= 1
            return waiting.pop(0) if waiting[0].times <= 0 else waiting[0]

    def gets(self, path: str) -> list[dict[str, str]]:
        return [headers for method, address, headers in self.asked if method == "GET" and f"/{path}" in address]


def etag(name: str, data: bytes) -> str:
    if name.endswith(LARGE):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        address = urlsplit(self.path)
        path = unquote(address.path)
        self.hub.asked.append((self.command, self.path, dict(self.headers)))
        if path == "/":
            return self.plain(200, {})
        if path == "/api/whoami-v2":
            known = self.token() in self.hub.tokens
            who = {"name": "somebody", "auth": {"accessToken": {"displayName": "test", "role": "read"}}}
            return self.json(who) if known else self.plain(401, {"X-Error-Message": "Invalid credentials in Authorization header"})
        kind, _, rest = path.lstrip("/").partition("/")
        if kind == "api" and not rest.startswith("models/"):
            return self.plain(404, {})
        if kind == "api":
            return self.api(rest.removeprefix("models/"), "blobs" in parse_qs(address.query))
        if kind == "cdn":
            owner, name, file = rest.split("/", 2)
            return self.stored(f"{owner}/{name}", file)
        owner, name, _, _, file = path.lstrip("/").split("/", 4)
        self.resolve(f"{owner}/{name}", file)

    def token(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def api(self, rest: str, blobs: bool) -> None:
        owner, name, *more = rest.split("/")
        repo = f"{owner}/{name}"
        if fault := self.hub.fault("list"):
            return self.plain(fault.value, fault.headers)
        if repo not in self.hub.repos:
            return self.plain(404, {"X-Error-Code": "RepoNotFound"})
        files = self.hub.repos[repo].items()
        if more and more[0] == "tree":
            return self.json([{"type": "file", "path": file, **self.described(file, data)} for file, data in files])
        listed = [{"rfilename": file, **(self.described(file, data, "blobId") if blobs else {})} for file, data in files]
        self.json({"id": repo, "sha": self.hub.commit(repo), "siblings": listed})

    def described(self, file: str, data: bytes, key: str = "oid") -> dict[str, object]:
        git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        facts: dict[str, object] = {"size": len(data), key: git}
        if file.endswith(LARGE):
            sha = {"oid" if key == "oid" else "sha256": hashlib.sha256(data).hexdigest()}
            facts["lfs"] = {**sha, "size": len(data), "pointerSize": 130}
        return facts

    def resolve(self, repo: str, file: str) -> None:
        if repo in self.hub.gated and repo not in self.hub.tokens.get(self.token(), set()):
            return self.plain(403 if self.token() else 401, {"X-Error-Code": "GatedRepo"})
        if file not in self.hub.repos.get(repo, {}):
            return self.plain(404, {"X-Error-Code": "EntryNotFound"})
        data = self.hub.repos[repo][file]
        head = {"X-Repo-Commit": self.hub.commit(repo)}
        if file.endswith(LARGE):
            # As on the hub: large files lie elsewhere, and the way there is told with their facts.
            linked = {"X-Linked-Etag": f'"{etag(file, data)}"', "X-Linked-Size": str(len(data)), "Location": f"/cdn/{repo}/{file}"}
            return self.plain(302, {**head, **linked})
        self.stored(repo, file, head)

    def stored(self, repo: str, file: str, head: dict[str, str] | None = None) -> None:
        data = self.hub.repos[repo][file]
        fault = self.hub.fault(file) if self.command == "GET" else None
        if fault and fault.kind == "status":
            return self.plain(fault.value, fault.headers)
        if fault and fault.kind == "wrong":
            data = data[:-1] + bytes([data[-1] ^ 1])
        start = 0
        wanted = self.headers.get("Range", "")
        if wanted and not (fault and fault.kind == "plain"):
            start = int(wanted.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if start else 200)
        for key, value in (head or {}).items():
            self.send_header(key, value)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("ETag", f'"{etag(file, data)}"')
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        if self.command == "HEAD":
            return
        end = min(len(data), start + fault.value) if fault and fault.kind == "cut" else len(data)
        with self.hub.sending():
            for at in range(start, end, PIECE):
                piece = data[at : min(end, at + PIECE)]
                try:
                    self.wfile.write(piece)
                except OSError:
                    return  # They went away.
                with self.hub.lock:
                    self.hub.sent[file] += len(piece)
                if self.hub.bytes_a_second:
                    time.sleep(len(piece) / self.hub.bytes_a_second)
        if end < len(data):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def plain(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": "0", **headers}.items():
            self.send_header(key, value)
        self.end_headers()

    def json(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving(hub: Hub, port: int = 0) -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Answers", (Answers,), {"hub": hub}))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def cached(models: Path, repo: str) -> Path:
    """Where the hub's own programs keep a repository's files."""
    folder = models / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True, exist_ok=True)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / "main").write_text("a" * 40)
    return snapshot
