"""Starting the server on a slow machine, and on a port that is taken."""

from __future__ import annotations

import socket
import threading
import time

import gradio as gr
import httpx
import pytest
import uvicorn
from gradio import http_server
from gradio.exceptions import ServerFailedToStartError

from app.base.trouble import Trouble
from app.ui.patient_start import PatientServer, require_port
from app.ui.window import Serving, serve_window

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SLOW_S = 5.5
"""Gradio waits five seconds."""


def serving(port: int) -> Serving:
    return Serving(host="127.0.0.1", port=port, tls=None, routes=[], middleware=[], most_bytes=1000)


def window() -> gr.Blocks:
    with gr.Blocks() as made:
        gr.HTML("here")
    return made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_a_machine_too_busy_to_listen_within_five_seconds_still_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = http_server.Server.run

    def late(self: http_server.Server, *given: object) -> None:
        time.sleep(SLOW_S)
        begin(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(http_server.Server, "run", late)
    try:
        address = serve_window(window(), serving(free_port()))
        assert httpx.get(address, trust_env=False).status_code == 200
    finally:
        gr.close_all(verbose=False)


def test_a_port_that_is_taken_is_told_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Trouble) as caught:
            serve_window(window(), serving(port))
    assert caught.value.sentence.key == "open.port-taken" and dict(caught.value.sentence.values)["port"] == port


def test_an_address_that_is_not_ours_is_not_called_taken() -> None:
    with pytest.raises(Trouble) as caught:
        require_port("192.0.2.1", 7860)
    assert caught.value.sentence.key == "open.port-closed"


def test_a_port_that_is_taken_meanwhile_ends_its_thread_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that start at once find the same port free; the later one is to try the next, as Gradio does."""
    ended = list[threading.ExceptHookArgs]()
    monkeypatch.setattr(threading, "excepthook", ended.append)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = PatientServer(uvicorn.Config(lambda *_: None, host="127.0.0.1", port=taken.getsockname()[1], log_level="critical"))
        with pytest.raises(ServerFailedToStartError):
            server.run_in_thread()
    server.thread.join()
    assert server.thread not in [each.thread for each in ended]
