"""Programs that hang up: on a real line, while their job waits, and between two parts of streamed speech."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
import httpx
import numpy as np
import pytest
from PIL import Image
from starlette.types import Receive, Scope, Send

from app.engine.jobs.events import Finished, PartDone
from app.engine.speech.sound import sound
from app.ui.api import pacing
from app.ui.api.shared import encode_base64
from app.ui.launch import LaunchOptions, build_guards, start_server
from app.ui.state.desk import Desk
from tests.support.guests import desk_at
from tests.support.places import TOP
from tests.support.waiting import WAIT_S, until

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SPEECH = {"input": "[S1] Hello.", "voice": "alloy", "response_format": "wav"}
PICTURE = {"prompt": "a red ball", "steps": 2}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    """The owner's window with all its guards; no engine, so that what is asked for waits."""
    with desk_at(tmp_path_factory.mktemp("gone")) as desk:
        place = desk.keeper.home
        yield desk, start_server(LaunchOptions(place), desk, None, [], build_guards(place)[0])
        gr.close_all(verbose=False)


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "start.png"
    Image.new("RGB", (64, 64), "blue").save(path)
    return path


@contextlib.contextmanager
def calling(desk: Desk, address: str, path: str, body: bytes, kind: str = "application/json") -> Iterator[tuple[socket.socket, str]]:
    """Send a request by hand; yield its line and its job, and hang up."""
    found, before = urlsplit(address), {job.id for job in desk.keeper.journal.list_waiting()}
    head = f"POST {path} HTTP/1.1\r\nHost: {found.netloc}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((found.hostname, found.port), timeout=30) as line:
        line.sendall(head.encode() + body)
        until(lambda: len(desk.keeper.journal.list_waiting()) > len(before), 30)
        (job,) = {job.id for job in desk.keeper.journal.list_waiting()} - before
        until(lambda: job in desk.keeper.board.watchers, 30)
        assert desk.jobs.is_waiting(job), "while the client listens"
        yield line, job


def at_work() -> set[int]:
    """The threads that are inside a function of Hearth's; those that wait for work are not."""
    found, frames = set[int](), sys._current_frames()
    for ident, frame in frames.items():
        if any(Path(each.f_code.co_filename).is_relative_to(TOP / "app") for each, _ in traceback.walk_stack(frame)):
            found.add(ident)
    return found


def stopped(desk: Desk, job: str) -> bool:
    known = desk.keeper.journal.find(job)
    return known is not None and known.state == "stopped" and job not in desk.keeper.board.watchers


def by_hand(path: str, start: Path) -> tuple[bytes, str]:
    if path == "/v1/images/edits":
        form = httpx.Request("POST", "http://x", data={"prompt": "a red ball"}, files={"image": ("a.png", start.read_bytes(), "image/png")})
        return form.read(), form.headers["content-type"]
    more = {"init_images": [encode_base64(start)]} if "img2img" in path else {}
    return json.dumps({**(SPEECH if "speech" in path else PICTURE), **more}).encode(), "application/json"


PATHS = ["/v1/audio/speech", "/v1/images/generations", "/v1/images/edits", "/sdapi/v1/txt2img", "/sdapi/v1/img2img"]


@pytest.mark.parametrize("path", PATHS)
def test_a_job_whose_client_has_gone_is_stopped(path: str, served: tuple[Desk, str], picture: Path) -> None:
    desk, address = served
    before = at_work()
    with calling(desk, address, path, *by_hand(path, picture)) as (_, job):
        until(lambda: at_work() <= before)  # no thread waits with it, however many wait
    until(lambda: stopped(desk, job))


@pytest.mark.parametrize("streaming", ["audio", "sse"])
def test_so_is_streamed_speech_before_and_after_its_first_part(streaming: str, served: tuple[Desk, str], tmp_path: Path) -> None:
    desk, address = served
    body = json.dumps({**SPEECH, "stream_format": streaming}).encode()
    with calling(desk, address, "/v1/audio/speech", body) as (_, job):
        pass
    until(lambda: stopped(desk, job))
    with calling(desk, address, "/v1/audio/speech", body) as (line, job):
        sound.write(tmp_path / "part.wav", np.zeros(16_000, np.float32), 16_000)
        desk.keeper.board.post(job, PartDone(0, 2, str(tmp_path / "part.wav"), "Hello.", 5, 1.0))
        told = b""
        while b"RIFF" not in told and b"audio.delta" not in told:
            told += line.recv(4096)
        assert told.startswith(b"HTTP/1.1 200") and desk.jobs.is_waiting(job)
    until(lambda: stopped(desk, job))


def test_who_stays_is_answered(served: tuple[Desk, str], tmp_path: Path) -> None:
    desk, address = served
    with calling(desk, address, "/v1/audio/speech", json.dumps({**SPEECH, "stream": False}).encode()) as (line, job):
        sound.write(tmp_path / "all.wav", np.zeros(16_000, np.float32), 16_000)
        desk.keeper.journal.take()
        desk.keeper.journal.end(job, "finished")
        desk.keeper.board.post(job, Finished((str(tmp_path / "all.wav"),), 1.0, 1.0, "frames", 0, 1.0))
        told = b""
        while b"RIFF" not in told:
            told += line.recv(4096)
        assert told.startswith(b"HTTP/1.1 200")
    known = desk.keeper.journal.find(job)
    assert known is not None and known.state == "finished"


@pytest.mark.slow
def test_who_waits_when_hearth_closes_is_told_and_the_job_is_kept(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        place = desk.keeper.home
        address = start_server(LaunchOptions(place), desk, None, [], build_guards(place)[0])
        with calling(desk, address, "/v1/audio/speech", json.dumps(SPEECH).encode()) as (line, job):
            gr.close_all(verbose=False)
            line.settimeout(30)
            told = b""
            while b"keeps the job" not in told and (more := line.recv(4096)):
                told += more
        assert told.startswith(b"HTTP/1.1 503") and b"Hearth was closed" in told
        assert desk.jobs.is_waiting(job)


@pytest.mark.parametrize("path", [*PATHS, "/gradio_api/queue/join", "/gradio_api/call/speak"])
def test_a_burst_of_any_of_them_takes_turns(path: str) -> None:
    """Without, each of 40 edits at once would begin to read and write its pictures, and the page would wait for all."""
    inside = most = 0

    async def begin_a_job(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal inside, most
        await receive()
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        pacing.leave()
        await asyncio.sleep(0)  # its job waits

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: object) -> None:
        raise AssertionError(message)

    async def burst() -> None:
        paced = pacing.Pacing(begin_a_job)
        scope = {"type": "http", "method": "POST", "path": path}
        await asyncio.wait_for(asyncio.gather(*(paced(scope, receive, send) for _ in range(40))), WAIT_S)

    asyncio.run(burst())
    assert most == pacing.AT_ONCE


def test_what_is_to_be_heard_takes_no_turn_and_is_not_held() -> None:
    """The whole recording was in memory, and four that were being heard kept everybody else's jobs from the queue until their end."""
    read: list[str] = []

    async def burst() -> None:
        over, within = asyncio.Event(), list[str]()

        async def hear_or_begin(scope: Scope, receive: Receive, send: Send) -> None:
            within.append(scope["path"])
            if scope["path"] == "/v1/audio/transcriptions":
                await over.wait()

        async def call(path: str) -> None:
            async def receive() -> dict[str, object]:
                read.append(path)
                return {"type": "http.request", "body": b""}

            async def send(message: object) -> None:
                raise AssertionError(message)

            await paced({"type": "http", "method": "POST", "path": path}, receive, send)

        paced = pacing.Pacing(hear_or_begin)
        heard = [asyncio.ensure_future(call("/v1/audio/transcriptions")) for _ in range(pacing.AT_ONCE)]
        while len(within) < pacing.AT_ONCE:
            await asyncio.sleep(0)
        await asyncio.wait_for(call("/v1/audio/speech"), WAIT_S)
        over.set()
        await asyncio.gather(*heard)

    asyncio.run(burst())
    assert read == ["/v1/audio/speech"]
