"""Signals, a closed terminal, sleep and a clock that is set: Hearth ends at once and whole, and its job goes on afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.endurance.kills import POLITE_END_S, hash_parts
from tests.support.places import TOP
from tests.support.running import Running, speak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither these signals nor terminals that send them"),
]
SCRIPT = " (pause 0.2s) ".join(f"[S{1 + number % 2}] Good morning, my friend." for number in range(6))
WITHIN_S = 300.0
SLEEP_S = 30.0
CLOCK = """import os, time
def shifted(real=time.time):
    try:
        return real() + float(open(os.environ["CLOCK_SHIFT"]).read() or 0)
    except OSError:
        return real()
time.time = shifted
"""
"""As a sitecustomize.py, it lets every process of Hearth read by how much the clock was set."""


@pytest.fixture
def hearth(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path / "home")
    yield running
    if running.process is not None and running.process.poll() is None:
        running.end()


def wait_until(true: Callable[[], object], hearth: Running, within_s: float = WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, hearth.rows("SELECT id, state, attempts, words FROM jobs")
        time.sleep(0.1)


def begin_script(hearth: Running) -> str:
    """Start a script; return its job once a part of it is finished."""
    job = hearth.submit(speak(SCRIPT))
    wait_until(lambda: hash_parts(hearth.folder(job)), hearth)
    assert hearth.states() == {job: "running"}
    return job


def start_in_terminal(hearth: Running) -> int:
    """Start Hearth as the one program of a terminal; return the terminal, whose closing is a hang-up."""
    terminal, inside = os.openpty()
    take = f"import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, {command(hearth)!r})"
    hearth.process = subprocess.Popen(
        [sys.executable, "-c", take], cwd=TOP, stdin=inside, stdout=inside, stderr=inside, start_new_session=True, text=True
    )
    os.close(inside)
    wait_until((hearth.home / "open.json").is_file, hearth)
    hearth.address = json.loads((hearth.home / "open.json").read_text())["address"].rstrip("/")
    return terminal


def command(hearth: Running) -> list[str]:
    return [sys.executable, "-m", "app", "open", "--no-browser", "--home", str(hearth.home)]


def wait_for_end(hearth: Running, family: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(family, timeout=POLITE_END_S)
    assert not alive, [each.cmdline() for each in alive]
    assert hearth.process is not None
    hearth.process.wait()


def go_on_and_finish(hearth: Running, job: str, parts: dict[str, str]) -> None:
    """Start again: the job is offered, goes on, and what was finished is not made anew."""
    assert hash_parts(hearth.folder(job)).items() >= parts.items()
    hearth.start()
    assert hearth.states() == {job: "interrupted"}
    hearth.post(f"/hearth/queue/{job}/go-on")
    while hearth.states()[job] != "finished":
        assert hearth.states()[job] in ("queued", "running"), hearth.rows("SELECT state, words FROM jobs")
        now = hash_parts(hearth.folder(job))
        assert not now or now.items() >= parts.items() or hearth.states()[job] == "finished"
        time.sleep(0.1)


@pytest.mark.parametrize("what", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("to", ["server", "group"])
def test_ends_in_time_without_orphans(hearth: Running, what: str, to: str) -> None:
    """To the group, as a terminal does it; to the server alone, as a service manager does."""
    hearth.start()
    job = begin_script(hearth)
    parts = hash_parts(hearth.folder(job))
    if to == "server":
        hearth.end(getattr(signal, what), within_s=POLITE_END_S)
    else:
        family = [psutil.Process(hearth.pid), *psutil.Process(hearth.pid).children(recursive=True)]
        os.killpg(hearth.pid, getattr(signal, what))
        wait_for_end(hearth, family)
    go_on_and_finish(hearth, job, parts)


def test_a_terminal_that_is_closed(hearth: Running) -> None:
    hearth.home.mkdir()
    terminal = start_in_terminal(hearth)
    job = begin_script(hearth)
    parts = hash_parts(hearth.folder(job))
    family = [psutil.Process(hearth.pid), *psutil.Process(hearth.pid).children(recursive=True)]
    os.close(terminal)
    wait_for_end(hearth, family)
    go_on_and_finish(hearth, job, parts)


def test_sleep(hearth: Running) -> None:
    """After it the same engine goes on: nobody takes the time for a hang."""
    hearth.start()
    job = begin_script(hearth)
    engine = hearth.find_engine()
    assert engine is not None
    for each in (signal.SIGSTOP, signal.SIGCONT):
        os.killpg(hearth.pid, each)
        engine.send_signal(each)
        time.sleep(SLEEP_S if each == signal.SIGSTOP else 0)
    assert hearth.ask("/hearth/live")["strip"]
    wait_until(lambda: hearth.states()[job] == "finished", hearth)
    assert hearth.find_engine() == engine and hearth.rows("SELECT attempts FROM jobs") == [(1,)]


def test_a_clock_that_is_set(hearth: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day back and a month ahead, while a job runs and another waits: both finish in their order, and a restart finds all."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CLOCK)
    shift = tmp_path / "shift"
    monkeypatch.setenv("CLOCK_SHIFT", str(shift))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    hearth.start()
    first = begin_script(hearth)
    jobs = [first]
    for days in (-1, 30, -2):
        shift.write_text(str(days * 86_400))
        jobs.append(hearth.submit(speak(f"[S1] Not today. {'Why?' * (days == 30)}")))
        assert [each["id"] for each in hearth.ask("/hearth/live")["queue"]] == jobs[-len(hearth.ask("/hearth/live")["queue"]) :]
    wait_until(lambda: {*hearth.states().values()} == {"finished"}, hearth)
    began = dict(hearth.rows("SELECT job, id FROM creations ORDER BY id"))
    assert sorted(began, key=lambda job: began[job]) == jobs
    assert len(hearth.ask("/hearth/shelf")["creations"]) == 4
    hearth.end()
    shift.write_text("-864000")
    hearth.start()
    assert {*hearth.states().values()} == {"finished"} and len(hearth.ask("/hearth/shelf")["creations"]) == 4
