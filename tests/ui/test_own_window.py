"""Hearth's own window from the server's side, with a process in its place that says what the real one says; and what the question says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from app.base.paths import home
from app.compat.machine.meter import Reading
from app.engine.jobs.events import Step, Stopped
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import SpeechRequest
from app.ui import own_window
from app.ui.access.request_guard import Guard, OwnerOnly
from app.ui.own_window import OwnWindow, Work, measure_percent, write_title
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from tests.support.places import TOP
from tests.support.waiting import WAIT_S, Idle, pass_turns, until

STAND_IN = """
import json, sys
from pathlib import Path
said = Path(sys.argv[1])
def tell(**line): print(json.dumps(line), flush=True)
for line in sys.stdin:
    with said.open("a") as log: log.write(line)
    line = json.loads(line)
    if "open" in line:
        tell(stands=True)
        tell(geometry={"x": 5, "y": 6, "width": 900, "height": 700, "maximized": False}, ground="#161311")
    if line.get("title") and (said.parent / "close").exists():
        tell(closed=(said.parent / "close").read_text())
        break
    if line.get("title") and (said.parent / "die").exists():
        sys.exit(1)
    if "leave" in line:
        break
"""
TOLD = Step(30, 120, 4.0, "steps", None, Reading())


class Stage:
    """A desk without an engine, its window, and what either told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.place = folder, home(folder / "home").create()
        self.desk = Desk(Idle(self.place), Settings(self.place.settings))
        self.own = OwnWindow(self.place, "en")
        self.browsed: list[str] = []
        monkeypatch.setattr(own_window, "RUN", STAND_IN)
        monkeypatch.setattr(own_window, "TOP", folder / "said")
        monkeypatch.setattr(own_window, "LOOK_S", 0.05)
        monkeypatch.setattr(webbrowser, "open", self.browsed.append)

    def open(self) -> None:
        self.own.start()
        self.own.open("http://127.0.0.1:7860/", self.desk, lambda: False)

    def said(self) -> list[dict[str, object]]:
        file = self.folder / "said"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def is_gone(self) -> bool:
        return self.own._process is None

    def pass_looks(self) -> None:
        pass_turns(of=self.own, turn="_find_work")

    def queue(self) -> str:
        return self.desk.keeper.submit(SpeechRequest("[S1] It is warm.")).id


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    made = Stage(tmp_path, monkeypatch)
    yield made
    made.desk.leaving.set()
    made.own.close()
    made.desk.keeper.close()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (Work(), ""),
        (Work(jobs=1), "1 job is not finished."),
        (Work(jobs=3), "3 jobs are not finished."),
        (Work(downloads=1), "1 download is running."),
        (Work(jobs=2, downloads=2, shared=True), "2 jobs are not finished. 2 downloads are running. Hearth is shared with guests."),
        (Work(lent=True), "This computer helps another one."),
    ],
)
def test_what_the_question_says(work: Work, said: str) -> None:
    told = [str(each) for each in work.describe()]
    assert " ".join(told[:-1]) == said
    assert bool(told) == bool(said) and (not told or told[-1].startswith("Continue in the background?"))


@pytest.mark.parametrize(
    ("progress", "title"),
    [
        (None, "Hearth"),
        (Progress(), "Hearth"),
        (Progress(step=TOLD), "25% · Hearth"),
        (Progress(step=Step(130, 120, 4.0, "frames", None, Reading())), "100% · Hearth"),
        (Progress(step=TOLD, end=Stopped((), 1.0)), "Hearth"),
    ],
)
def test_the_title_shows_progress(progress: Progress | None, title: str) -> None:
    assert write_title(measure_percent(progress)) == title


def test_help_for_another_computer_counts(stage: Stage) -> None:
    assert own_window.find_work(stage.desk, lambda: False) == Work()
    stage.desk.others.lending = cast(Any, "a lending")
    assert own_window.find_work(stage.desk, lambda: False) == Work(lent=True)
    stage.open()
    until(lambda: {"title": "Hearth", "badge": "", "busy": True} in stage.said())
    assert str(stage.own.describe_work()[0]) == "This computer helps another one."
    stage.desk.notifying.note_page()
    stage.own.answer("background")
    until(stage.is_gone)
    stage.pass_looks()
    assert not stage.desk.leaving.is_set(), "it goes on without its window"
    assert not stage.desk.notifying.has_page
    stage.desk.others.lending = None
    until(stage.desk.leaving.is_set)


def test_its_place_is_kept_and_opened_again(stage: Stage) -> None:
    stage.open()
    until(lambda: bool(stage.desk.settings.get("window")))
    kept = json.loads(stage.place.settings.read_text())["window"]
    assert kept == {"x": 5, "y": 6, "width": 900, "height": 700, "maximized": False, "ground": "#161311"}
    until(lambda: len(stage.said()) > 1)
    first, second = stage.said()[:2]
    assert first["open"]["geometry"] == {} and first["open"]["words"]["cocoa.menu.copy"] == "Copy"  # type: ignore[index]
    assert second == {"title": "Hearth", "badge": "", "busy": False}
    assert stage.own.front() and not stage.browsed
    until(lambda: {"front": True} in stage.said())


def test_closing_it_ends_hearth(stage: Stage) -> None:
    (stage.folder / "close").write_text("quit")
    stage.open()
    until(stage.desk.leaving.is_set)
    assert stage.own.ended and not stage.own.front() and not stage.browsed


def test_work_goes_on_in_the_background_until_the_window_is_brought_back_or_it_is_done(stage: Stage) -> None:
    job = stage.queue()
    stage.open()
    until(lambda: {"title": "Hearth", "badge": "", "busy": True} in stage.said())
    assert "1 job" in str(stage.own.describe_work()[0])
    stage.own.answer("stay")
    until(lambda: {"stay": True} in stage.said())
    stage.own.answer("background")
    until(stage.is_gone)
    stage.pass_looks()
    assert not stage.desk.leaving.is_set() and not stage.browsed
    assert stage.own.front()
    until(lambda: sum("open" in line for line in stage.said()) == 2)
    stage.own.answer("background")
    until(stage.is_gone)
    stage.desk.keeper.stop(job)
    until(stage.desk.leaving.is_set)
    assert stage.own.ended


def test_a_job_begun_in_the_last_moment_is_not_lost(stage: Stage) -> None:
    stage.queue()
    (stage.folder / "close").write_text("quit")
    stage.open()
    until(stage.is_gone)
    stage.pass_looks()
    assert not stage.desk.leaving.is_set() and not stage.own.ended


def test_quitting_while_work_goes_on(stage: Stage) -> None:
    stage.queue()
    stage.open()
    stage.own.answer("quit")
    assert stage.desk.leaving.is_set() and stage.own.ended
    until(stage.is_gone)
    assert not stage.browsed


def test_quitting_waits_for_nobody(stage: Stage) -> None:
    """Whoever holds the lock may wait for a window that reads no more, or for the disk."""
    stage.queue()
    stage.open()
    until(lambda: len(stage.said()) > 1)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with stage.own._lock:
            held.set()
            let_go.wait(2 * WAIT_S)

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    quits = threading.Thread(target=stage.own.answer, args=("quit",), daemon=True)
    quits.start()
    assert stage.desk.leaving.wait(WAIT_S), "Hearth is told to end at once"
    let_go.set()
    quits.join(WAIT_S)


def is_held(lock: Any) -> bool:
    free = lock.acquire(blocking=False)
    if free:
        lock.release()
    return not free


def test_a_window_that_reads_no_more_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_window, "RUN", "import time; time.sleep(600)")
    monkeypatch.setattr(own_window, "CLOSES_S", 0.5)
    stage.own.start()
    process = stage.own._process
    assert process is not None and process.stdin is not None
    writing = threading.Thread(target=stage.own._send, args=({"title": "x" * (1 << 20)},), daemon=True)
    writing.start()
    until(lambda: is_held(stage.own._lock))
    assert writing.is_alive(), "the pipe is full"
    closing = threading.Thread(target=stage.own.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    assert not closing.is_alive() and process.poll() is not None


def test_a_window_that_dies_leaves_the_page_to_the_browser(stage: Stage) -> None:
    (stage.folder / "die").touch()
    stage.open()
    until(stage.is_gone)
    until(lambda: stage.browsed == ["http://127.0.0.1:7860/"])
    assert not stage.own.front() and not stage.desk.leaving.is_set()


def test_the_routes(stage: Stage) -> None:
    app = Starlette(
        routes=[*own_window.routes(stage.own), own_window.front_route(stage.own)], middleware=[Middleware(Guard), Middleware(OwnerOnly)]
    )
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/hearth/window").json() == {"text": ""}
        assert client.post("/hearth/front", json={}).json() == {"window": False}
        assert client.post("/hearth/window/elsewhere", json={}).status_code == 404
        assert client.post("/hearth/window/stay", json={}).json() == {}
        assert client.post("/hearth/window/quit", json={}, headers={"Origin": "http://evil.example"}).status_code == 403


HIDDEN = """
import importlib.util as found, sys
real = found.find_spec
found.find_spec = lambda name, *more: {there} if name == "webview" else real(name, *more)
from app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("there", "display"), [("None", ":0"), ("True", ""), ("True", ":987")], ids=["no-web-view", "no-display", "fails"])
@pytest.mark.skipif(sys.platform == "win32", reason="the browser in its place is a shell script")
def test_without_a_window_the_browser_opens_as_before(tmp_path: Path, there: str, display: str) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" >> "{opened}"\n')
    browser.chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "DISPLAY": display, "WAYLAND_DISPLAY": "", "OMP_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", HIDDEN.format(there=there), "open", "--home", str(tmp_path / "home")],
        cwd=TOP,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        until(opened.exists)
        until(lambda: opened.read_text().strip() in line and opened.read_text().startswith("http://127.0.0.1"))
    finally:
        child.terminate()
        assert child.communicate(timeout=60)[1] == "", "no error is told"
