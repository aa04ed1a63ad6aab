"""Start Gradio's server however slow the machine is: wait until it listens or has failed, where Gradio allows five seconds and then blames the port."""

from __future__ import annotations

import errno
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from gradio import http_server
from gradio.exceptions import ServerFailedToStartError

from app.base.disk_faults import word_fault
from app.base.sentence import say
from app.base.trouble import Trouble

LOOK_S: Final = 0.001


class PatientServer(http_server.Server):
    """Gradio's server. Its thread lives on once it listens, and ends where it cannot."""

    def run_in_thread(self) -> None:
        self.thread = threading.Thread(target=self._run_quietly, daemon=True)
        self.thread.start()
        while not self.started and self.thread.is_alive():
            time.sleep(LOOK_S)
        if not self.started:
            raise ServerFailedToStartError

    def _run_quietly(self) -> None:
        """Where the port was taken meanwhile, uvicorn leaves; who waits for this thread sees that it has ended, and tries the next port."""
        with suppress(SystemExit):
            self.run()


@contextmanager
def patient_start() -> Iterator[None]:
    """Have Gradio start servers of this kind."""
    before = http_server.Server
    http_server.Server = PatientServer  # type: ignore[misc]
    try:
        yield
    finally:
        http_server.Server = before  # type: ignore[misc]


def require_port(host: str, port: int) -> None:
    """Raise a Trouble unless the port that was asked for can be listened on."""
    try:
        kind, how, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, how, protocol) as line:
            if sys.platform != "win32":  # There it would let two listen on one port.
                line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            line.bind(address)
    except OSError as fault:
        if fault.errno == errno.EADDRINUSE:
            raise Trouble(
                say("open.port-taken", "Port {port} is used by another program. Close that, or choose another port with --port.", port=port)
            ) from fault
        raise Trouble(
            say("open.port-closed", "Hearth cannot listen on {host}, port {port} ({fault}).", host=host, port=port, fault=word_fault(fault))
        ) from fault
