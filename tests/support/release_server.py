"""A server of releases on loopback, whose answers a test cuts off or exchanges; and releases small enough to be made at once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from release.make_release import point_at, write_release

KEY = Ed25519PrivateKey.from_private_bytes(b"a key of the tests, of nobody ..")


@dataclass
class Server:
    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    sends: dict[str, int] = field(default_factory=dict)
    """So many bytes of a file are sent before the line breaks."""
    asked: list[str] = field(default_factory=list)

    def offer(self, folder: Path) -> None:
        self.files = {each.name: each.read_bytes() for each in folder.iterdir()}


@contextmanager
def serve() -> Iterator[Server]:
    server = Server()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            server.asked.append(name)
            content = server.files.get(name)
            if content is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: server.sends.get(name)])

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as http:
        server.address = f"http://127.0.0.1:{http.server_port}"
        threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        http.shutdown()


def believe(top: Path, address: str, key: Ed25519PrivateKey = KEY) -> None:
    """Have a copy of Hearth ask this address, and believe this key."""
    point_at(top, address)
    (top / "app" / "launcher" / "release_keys.txt").write_text(key.public_key().public_bytes_raw().hex() + "\n")


def set_version(top: Path, version: str) -> None:
    (top / "app" / "__init__.py").write_text(f'"""Hearth."""\n\n__version__ = "{version}"\n')


def make_release(top: Path, version: str, folder: Path, texts: Mapping[str, str] | None = None) -> Path:
    """Write a release of a copy of this tree into a folder; `texts` are put in place of others in `app/__main__.py` and constraints.txt."""
    tree = folder.with_name(f"{folder.name} tree")
    shutil.copytree(top, tree, ignore=shutil.ignore_patterns(".venv", "__pycache__", ".git"))
    set_version(tree, version)
    for name in ("app/__main__.py", "constraints.txt"):
        text = (tree / name).read_text("utf-8")
        for old, new in (texts or {}).items():
            text = text.replace(old, new)
        (tree / name).write_text(text, "utf-8")
    files = sorted(each.relative_to(tree).as_posix() for each in tree.rglob("*") if each.is_file())
    write_release(tree, files, f"What is new in {version}", KEY, folder)
    return folder
