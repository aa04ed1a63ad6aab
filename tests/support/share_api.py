"""A stand-in of Gradio's API for share links: names a share server, and serves a program to download."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

from app.ui.access.tunnel import OpenTunnel, open_tunnel


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


@contextmanager
def serve() -> Iterator[Standin]:
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
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def programs() -> set[psutil.Process]:
    return {each for each in psutil.Process().children(recursive=True) if each.name().startswith("frpc")}
