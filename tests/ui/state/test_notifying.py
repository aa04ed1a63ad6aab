"""Whom Hearth tells that the work is done: nobody until an address is set, then once, with no more than is wished; asked of a server of our own."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base import notices
from app.base.sentence import say
from app.base.system_notice import show_notice, write_command
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.events import Failed, Finished, Stopped
from app.engine.jobs.request import SpeechRequest
from app.ui import launch
from app.ui.state import notifying
from app.ui.state.desk import Desk
from app.ui.state.notifying import LONG_S, LOOKS_S, Notifying, check_address, mask
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs import notify
from tests.support.guests import desk_at, page_of
from tests.support.waiting import until

WAIT_S = 45.0
DONE = Finished((), 1.0, 1.0, "frames", 0)


class Receiver:
    """A server such as ntfy's, or one that refuses or sends elsewhere."""

    def __init__(self) -> None:
        self.came = list[tuple[str, str, bytes]]()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.came.append((self.path, self.headers.get("Title", ""), body))
                status = {"/moved": 302, "/no": 403}.get(self.path, 200)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as desk:
        desk.notifying.listen()
        yield desk
    notices.take_all()


def work(desk: Desk, *ends: Finished | Failed | Stopped, lasts_s: float = LONG_S, owner: str = OWNER.name) -> Notifying:
    """Let jobs of an owner end, one after the other, which takes so long."""
    now = [0.0]
    desk.notifying.clock = lambda: now[0]
    jobs = [desk.keeper.journal.queue(SpeechRequest(f"[S1] Secret   words {n}."), Choice(), owner) for n in range(len(ends))]
    desk.notifying.look()
    now[0] = lasts_s
    for job, end in zip(jobs, ends, strict=True):
        desk.keeper.journal.withdraw(job.id)
        desk.keeper.board.post(job.id, end)
    desk.notifying.look()
    return desk.notifying


def test_nothing_is_sent_until_an_address_is_set_and_then_once(desk: Desk, receiver: Receiver) -> None:
    work(desk, DONE)
    assert not receiver.came
    desk.notifying.keep(f"{receiver.address}/topic", "ntfy", False)
    work(desk, DONE, DONE)
    until(lambda: receiver.came == [("/topic", "Hearth", b"2 jobs are done.")])
    desk.notifying.look()
    work(desk, DONE, lasts_s=LONG_S - 1)
    work(desk, Stopped((), 1.0))
    work(desk, DONE, owner="guest")
    desk.notifying.forget()
    work(desk, DONE)
    assert len(receiver.came) == 1 and not desk.notifying.phone


def test_a_webhook_gets_json_with_titles_only_where_they_are_wished(desk: Desk, receiver: Receiver) -> None:
    desk.notifying.keep(f"{receiver.address}/hook", "webhook", True)
    failed = Failed(say("test.fails", "the disk is full"))
    work(desk, DONE, failed)
    until(lambda: len(receiver.came) == 1)
    sent = json.loads(receiver.came[0][2])
    assert sent["text"] == sent["content"] == "1 job is done. 1 job failed.\n[S1] Secret words 0.\n[S1] Secret words 1."


def test_without_a_page_the_system_tells_where_that_is_wished(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[tuple[str, Path | None]]()
    monkeypatch.setattr(notifying, "show_notice", lambda words, picture: shown.append((words, picture)))

    def tells(*ends: Finished, owner: str = OWNER.name, lasts_s: float = 1.0) -> list[tuple[str, Path | None]]:
        shown.clear()
        work(desk, *ends, lasts_s=lasts_s, owner=owner).close(time.monotonic() + WAIT_S)
        return shown

    assert not tells(DONE), "it is not wished"
    desk.notifying.let_chime(True)
    assert tells(DONE, replace(DONE, files=("a.png",))) == [("2 jobs are done.", Path("a.png"))]
    assert not tells(DONE, owner="guest")
    page_of(desk, Person("guest", False)).get("/hearth/live")
    assert tells(DONE) == [("1 job is done.", None)]
    page_of(desk, OWNER).get("/hearth/live")
    assert not tells(DONE), "the page does"
    desk.notifying.note_left()
    assert tells(DONE) == [("1 job is done.", None)]
    mine = page_of(desk, OWNER)
    for page in ("a", "b"):
        mine.get("/hearth/live", params={"page": page})
    for page, told in (("b", []), ("a", [("1 job is done.", None)])):
        desk.notifying.note_left(page)
        assert tells(DONE) == told, "the page that is left does"
    desk.notifying.clock = lambda: 0.0
    desk.notifying.note_page()
    assert tells(DONE, lasts_s=LOOKS_S + 1) == [("1 job is done.", None)], "it went without a word"
    desk.notifying.let_chime(False)
    assert not tells(DONE)


@pytest.mark.parametrize("waiting", [False, True])
def test_what_ended_in_the_last_moment_is_told_before_hearth_ends(
    desk: Desk, receiver: Receiver, waiting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its window was closed: it ends as soon as its work has, between two looks, or was ended while other work waits."""
    closes = Notifying.close
    monkeypatch.setattr(Notifying, "close", lambda *_: pytest.fail("a phone that does not answer would hold up the engine's end"))
    desk.notifying.keep(f"{receiver.address}/topic", "ntfy", False)
    desk.notifying.clock = lambda: 0.0
    job = desk.keeper.journal.queue(SpeechRequest("[S1] Hello."), Choice(), OWNER.name)
    desk.notifying.look()
    desk.notifying.clock = lambda: LONG_S
    desk.keeper.journal.withdraw(job.id)
    desk.keeper.board.post(job.id, DONE)
    if waiting:
        desk.keeper.journal.queue(SpeechRequest("[S1] Later."), Choice(), OWNER.name)
    desk.leaving.set()
    launch.look_until_left(desk)
    closes(desk.notifying, time.monotonic() + WAIT_S)
    assert receiver.came == [("/topic", "Hearth", b"1 job is done.")]


def test_what_goes_wrong_is_told_without_the_secret(desk: Desk, receiver: Receiver) -> None:
    for path, words in (("/no", "answered 403"), ("/moved", "answered 302")):
        desk.notifying.keep(receiver.address + path, "ntfy", False)
        with pytest.raises(Trouble, match=words) as told:
            desk.notifying.try_it()
        assert path not in str(told.value)
    assert "/elsewhere" not in [path for path, _, _ in receiver.came], "no other address is followed"
    receiver.server.shutdown()
    receiver.server.server_close()
    work(desk, DONE)
    until(lambda: any("cannot be reached" in str(each) for each in notices.list_notices()))


def test_addresses_are_checked_and_masked() -> None:
    assert check_address("https://ntfy.sh/my-topic") and mask("https://me:word@ntfy.sh/my-topic") == "https://ntfy.sh/…"
    for wrong in (
        "",
        "ntfy.sh/x",
        "file:///etc/passwd",
        "https://",
        "http://a b",
        "https://a\nb",
        f"https://a/{'x' * 500}",
        "http://[",
        "http://a:99999",
    ):
        with pytest.raises(Trouble, match="no web address"):
            check_address(wrong)


def test_words_of_a_notice_are_no_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sys, "platform", "linux")
    assert write_command('"; rm', tmp_path)[-4:] == (str(tmp_path), "--", "Hearth", '"; rm')
    monkeypatch.setattr(sys, "platform", "darwin")
    assert write_command('"; rm', None)[-2:] == ('"; rm', "Hearth")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("SYSTEMROOT", r"D:\Windows")
    assert write_command('"; rm', None) == write_command("Done.", None), "PowerShell reads them from a variable"
    assert write_command("Done.", None)[0] == r"D:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe", "not one in the working folder"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", "linux")
    assert write_command("Done.", None) == () and not show_notice("Done.")


def test_only_the_owner_reaches_it_and_never_sees_the_whole_address(desk: Desk) -> None:
    routes = Starlette(routes=notify.routes(desk))

    def client(person: Person) -> TestClient:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            scope[KEY] = person
            await routes(scope, receive, send)

        return TestClient(app)

    asked = {"address": "https://ntfy.sh/secret-topic", "kind": "ntfy"}
    assert client(Person("guest", False)).post("/hearth/notify/keep", json=asked).status_code == 404
    assert client(Person("guest", False)).get("/hearth/notify").status_code == 404 and not desk.notifying.phone
    mine = client(OWNER)
    assert mine.post("/hearth/notify/keep", content=json.dumps(asked), headers={"Content-Type": "text/plain"}).status_code == 415
    assert "secret" not in mine.post("/hearth/notify/keep", json=asked).text + mine.get("/hearth/notify").text
    assert mine.post("/hearth/notify/keep", json={"address": "", "kind": "webhook"}).json()["address"] == "https://ntfy.sh/…"
    assert mine.post("/hearth/notify/keep", json={"address": "gopher://x"}).status_code == 409
    assert mine.post("/hearth/notify/other", json={}).status_code == 404
