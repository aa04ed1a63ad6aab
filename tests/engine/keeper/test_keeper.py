"""The engine's own process, for real: a spawned child with a tiny Dia, killed at random, wedged, stopped; nothing finished is lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import soundfile

from app.base.paths import home
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, PartDone, Sound, Step, Stopped
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.shelf import Search
from app.engine.keeper import job_end
from app.engine.keeper.keeper import Keeper
from tests.support.places import TOP
from tests.support.tiny_voices import STARTER, save_voice
from tests.support.waiting import WAIT_S, until

pytestmark = pytest.mark.long

LONG = " (pause 0.2s) ".join(f"[S{1 + n % 2}] This is line number {n} of a script that goes on for quite a while." for n in range(12))
"""It makes twelve parts, since a pause ends one: who waits for the first comes in time before the last."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_voice(tmp_path_factory.mktemp("models") / "voice", STARTER))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Keeper]]:
    keepers = []

    def open_(**options: Any) -> Keeper:
        keepers.append(Keeper(home(tmp_path / "home"), **options))
        return keepers[-1]

    yield open_
    for keeper in keepers:
        keeper.close()


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeper]:
    """One for all tests that want nothing special of it: an engine takes seconds to start."""
    keeper = Keeper(home(tmp_path_factory.mktemp("shared") / "home"))
    yield keeper
    keeper.close()


def engine(keeper: Keeper) -> psutil.Process:
    child = keeper.engine.child
    assert child is not None and child.pid is not None
    return psutil.Process(child.pid)


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def request(voice: str, text: str = LONG, **more: Any) -> SpeechRequest:
    return SpeechRequest(text, model=voice, seed=5, max_frames=60, **more)


def test_a_script_is_spoken_and_kept(keeper: Keeper, voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = keeper.submit(request(voice, "[S1] Hello there my friend. [S2] And hello to you."))
    events = list(keeper.follow(job.id))
    end = events[-1]
    assert isinstance(end, Finished), end
    (file,) = end.files
    assert Path(file).parent == keeper.shelf.folder and soundfile.info(file).samplerate == 16000
    (kept,) = keeper.shelf.list_of_job(job.id)
    assert [each.id for each in keeper.shelf.find(Search("hello friend"))] == [kept.id]
    assert kept.request == job.request and kept.rate > 0 and kept.whole and kept.condition == ""
    assert keeper.journal.get(job.id).state == "finished"
    assert any(isinstance(event, Step) and event.memory.process_bytes > 0 for event in events)
    assert list(keeper.follow(job.id))[-1] == end, "somebody who comes late is told the end"
    pieces = [Path(event.path) for event in events if isinstance(event, Sound)]
    assert pieces and all(piece.is_file() for piece in pieces)
    monkeypatch.setattr(job_end, "LISTENED_S", 0.0)
    until(lambda: not any(piece.is_file() for piece in pieces))
    assert Path(file).is_file() and all(Path(event.path).is_file() for event in events if isinstance(event, PartDone))
    keeper.free()
    until(lambda: keeper.state.model == "")


def test_the_window_side_imports_no_torch() -> None:
    code = "import sys, app.engine.keeper.keeper, app.engine.models.forecast, app.cli.job; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], cwd=TOP).returncode == 0


def test_a_killed_engine_is_noticed_told_and_the_job_goes_on(keeper: Keeper, voice: str) -> None:
    restarts = keeper.state.restarts
    job = keeper.submit(request(voice))
    events, parts_before, killed_s, noticed_s = list[Event](), dict[int, bytes](), 0.0, 0.0
    for event in keeper.follow(job.id):
        events.append(event)
        if isinstance(event, PartDone) and not parts_before:
            parts_before[event.index] = Path(event.path).read_bytes()
            engine(keeper).kill()
            killed_s = time.monotonic()
        if isinstance(event, Adjusted) and not noticed_s:
            noticed_s = time.monotonic()
    assert isinstance(events[-1], Finished), events[-1]
    assert "stopped the engine" in str(next(e for e in events if isinstance(e, Adjusted)).sentence)
    assert noticed_s - killed_s < WAIT_S, "noticed late"
    for index, content in parts_before.items():
        assert (keeper.folder(job.id) / f"part-{index:03d}.wav").read_bytes() == content, "a finished part was done again"
    assert keeper.journal.get(job.id).attempts == 2 and keeper.state.restarts == restarts + 1


@pytest.mark.slow
def test_a_wedged_engine_is_ended(keeper: Keeper, voice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = keeper.submit(request(voice))
    wedged = False
    for event in keeper.follow(job.id):
        if isinstance(event, Step) and not wedged:
            wedged = True
            engine(keeper).suspend()
            monkeypatch.setattr(keeper.engine, "no_beat_s", 2.0)
        if isinstance(event, Adjusted):
            monkeypatch.undo()  # once is what is tested, and a busy machine is slow
        end = event
    assert isinstance(end, Finished)
    assert any("stopped responding" in str(event.sentence) for event in keeper.get_progress(job.id).said)


def test_stop_takes_a_waiting_job_out_and_ends_a_running_one(keeper: Keeper, voice: str) -> None:
    first, second = keeper.submit(request(voice)), keeper.submit(request(voice, "[S1] Never spoken."))
    keeper.stop(second.id)
    assert kinds(list(keeper.follow(second.id))) == ["Stopped"]
    for event in keeper.follow(first.id):
        if isinstance(event, PartDone):
            keeper.stop(first.id)
        end = event
    assert isinstance(end, Stopped) and len(end.files) == 1
    assert soundfile.info(end.files[0]).frames > 0
    assert [each.whole for each in keeper.shelf.list_of_job(first.id)] == [False]


def test_a_stopped_script_is_resumed_after_its_last_part(keeper: Keeper, voice: str) -> None:
    job = keeper.submit(request(voice, " (pause 0.2s) ".join(["[S1] It is warm, you know."] * 12)))
    for event in keeper.follow(job.id):
        if isinstance(event, PartDone):
            keeper.stop(job.id)
    first = keeper.folder(job.id) / "part-000.wav"
    before = first.read_bytes()
    assert keeper.journal.get(job.id).state == "stopped"
    keeper.resume(job.id)
    end = list(keeper.follow(job.id))[-1]
    assert isinstance(end, Finished), end
    assert first.read_bytes() == before and (keeper.folder(job.id) / "part-011.wav").is_file()
    assert keeper.shelf.list_of_job(job.id)[-1].whole


@pytest.mark.slow
def test_after_a_crash_of_everything_the_next_start_offers_to_go_on(opened: Callable[..., Keeper], voice: str, tmp_path: Path) -> None:
    code = (
        "import sys, os\nfrom app.base.paths import home\nfrom app.engine.keeper.keeper import Keeper\nfrom app.engine.jobs.events import PartDone\n"
        "from app.engine.jobs.request import SpeechRequest\n"
        "if __name__ == '__main__':\n"
        f"    asked = SpeechRequest({LONG!r}, model=sys.argv[2], seed=5, max_frames=60)\n"
        "    keeper = Keeper(home(sys.argv[1])); job = keeper.submit(asked)\n"
        "    for event in keeper.follow(job.id):\n"
        "        if isinstance(event, PartDone): print(keeper.engine.child.pid, flush=True); os.kill(os.getpid(), 9)\n"
    )
    script = tmp_path / "crash.py"
    script.write_text(code)
    env = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "home"), voice], cwd=TOP, env=env, capture_output=True, text=True)
    pid = int(done.stdout)
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 60)  # with its keeper
    keeper = opened()
    (left,) = keeper.interrupted
    part = (keeper.folder(left.id) / "part-000.wav").read_bytes()
    keeper.resume(left.id)
    assert isinstance(list(keeper.follow(left.id))[-1], Finished)
    assert (keeper.folder(left.id) / "part-000.wav").read_bytes() == part and not keeper.interrupted


@pytest.mark.slow
def test_an_engine_that_cannot_start_fails_what_waits_for_a_command(
    opened: Callable[..., Keeper], voice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    keeper = opened(pretended="no such machine", patient=False)  # the child raises before it is ready
    job = keeper.submit(request(voice))
    end = list(keeper.follow(job.id))[-1]
    assert isinstance(end, Failed) and end.cure == "repair" and "engine.log" in str(end.sentence)


@pytest.mark.slow
def test_twenty_random_kills_lose_nothing(keeper: Keeper, voice: str) -> None:
    dice = random.Random(7)
    for _ in range(20):
        job = keeper.submit(request(voice))
        kill_at_s = time.monotonic() + dice.uniform(0, 8)
        finished: dict[int, bytes] = {}
        killed = False
        for event in keeper.follow(job.id):
            if isinstance(event, PartDone):
                content = Path(event.path).read_bytes()
                assert finished.setdefault(event.index, content) == content
            if not killed and time.monotonic() > kill_at_s and keeper.engine.child is not None:
                killed = True
                engine(keeper).kill()
            end = event
        assert isinstance(end, Finished), end
        assert soundfile.info(end.files[0]).frames > 0
        assert keeper.journal.get(job.id).state == "finished"


def test_a_job_runs_with_the_chunk_that_is_asked_for_while_it_runs(keeper: Keeper, voice: str) -> None:
    """A job that was queued at 256 once kept 256 after the slider went back to automatic."""
    keeper.set_chunk(256)
    first = keeper.submit(SpeechRequest("[S1] One.", model=voice, seed=1, max_frames=40))
    list(keeper.follow(first.id))
    queued = keeper.submit(SpeechRequest("[S1] Two.", model=voice, seed=1, max_frames=40))
    keeper.set_chunk(AUTO)
    list(keeper.follow(queued.id))
    plans = [keeper.get_progress(job.id).plan for job in (first, queued)]
    assert [plan.chunk_q for plan in plans if plan is not None] == [256, AUTO]
    assert keeper.journal.get(first.id).choice == Choice()
