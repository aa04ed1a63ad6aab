"""Each call of the keeper's thread broken in turn: the thread lives on, tells what stands in the way, and what waits is done once it can be."""

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from app.base.paths import home
from app.compat.machine.meter import Reading
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Adjusted, Finished, Step, Stopped
from app.engine.jobs.journal import Journal
from app.engine.jobs.messages import Beat, Run, Stop
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.shelf import Shelf
from app.engine.keeper import engine_loop, worker
from app.engine.keeper.child import Child
from app.engine.keeper.deaths import DeathRecords
from app.engine.keeper.engine_life import EngineLife
from app.engine.keeper.engine_loop import EngineLoop
from app.engine.keeper.engine_status import EngineStatus
from app.engine.keeper.job_end import JobEnds
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.progress_board import ProgressBoard
from app.engine.keeper.recovery import DEAF
from app.engine.keeper.work_queue import WorkQueue
from tests.support import light_engine
from tests.support.other_functions import set_in
from tests.support.places import TOP
from tests.support.waiting import pass_turns, until

pytestmark = pytest.mark.long

SCRIPT = " (pause 0.2s) ".join(["[S1] The water is warm today, my friend."] * 3)
SOURCE = ast.parse(Path(engine_loop.__file__).read_text("utf-8"))
ASKED = {"__init__", "start", "wake", "stop", "withdraw", "close"}
"""Other threads ask these; the rest is the loop's own."""
LAST = {"_loop", "_recover", "_give_up", "_fail_all", "_finish"}
"""They are the loop itself, what tells, and what is not reached by a job whose engine dies once; the last has a test of its own."""


def methods() -> list[str]:
    (loop,) = [node for node in SOURCE.body if isinstance(node, ast.ClassDef)]
    return [node.name for node in loop.body if isinstance(node, ast.FunctionDef) and node.name not in ASKED | LAST]


OTHERS: dict[type, tuple[str, ...]] = {
    Journal: ("take", "put_back", "get", "end"), Shelf: ("keep",), ProgressBoard: ("post", "get"),
    EngineLife: ("start_if_due", "send", "mark_ready", "note_beat"), WorkQueue: ("take", "release", "take_back"),
    Child: ("receive", "send", "reap"), EngineStatus: ("set", "note_beat"), JobEnds: ("end", "tidy_next"), DeathRecords: ("count",),
}  # fmt: skip
CALLS = [*((EngineLoop, name) for name in methods()), *((where, name) for where, names in OTHERS.items() for name in names)]


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setattr(engine_loop, "TICK_S", 0.02)  # each fault waits so long
    place = home(tmp_path / "home").create()
    (place.root / light_engine.LIVES).write_text(json.dumps([{"parts": 1}]))
    kept = Keeper(place, rest_s=60)
    yield kept
    kept.close()


def broken(where: type, name: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fails in the keeper's thread the first two times that a turn reaches it; says which times."""
    times = list[str]()
    real = getattr(where, name)

    def breaks(*args: Any, **options: Any) -> Any:
        if threading.current_thread().name == "keeper" and len(times) < 2:
            times.append(name)
            raise OSError(5, "Input/output error")
        return real(*args, **options)

    monkeypatch.setattr(where, name, breaks)
    return times


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name"), CALLS, ids=[f"{where.__name__}.{name}" for where, name in CALLS])
def test_no_call_that_fails_ends_the_thread(keeper: Keeper, where: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine dies on the way, too, so that what follows a death is reached as well."""
    path, times = f"{where.__name__}.{name}", broken(where, name, monkeypatch)
    told: list[str] = []
    real = keeper.status.set

    def listening(**changes: Any) -> None:
        told.extend(str(each) for name, each in changes.items() if name == "obstacle" and each)
        real(**changes)

    if path != "EngineStatus.set":
        monkeypatch.setattr(keeper.status, "set", listening)
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    end = list(followed(keeper, job.id))[-1]
    assert times, "nothing reached it"
    assert keeper.state.obstacle is None
    lost = {
        "JobEnds.end",
        "Journal.get",
        "Shelf.keep",
        "ProgressBoard.post",
        "EngineLoop._handle_event",
    }  # the end itself fails, and is told as that
    assert isinstance(end, Finished) or path in lost, end
    if path not in ("EngineStatus.set", "EngineLife.send", "Child.send", "Journal.end", "Shelf.keep", "Child.reap"):
        assert told, "nobody was told"
    monkeypatch.undo()
    light_engine.replace_engines(monkeypatch)
    again = keeper.submit(SpeechRequest(SCRIPT, seed=6))
    assert isinstance(list(followed(keeper, again.id))[-1], Finished)


def followed(keeper: Keeper, job: str) -> Iterator[Any]:
    """To its end; a job that is never told ended fails the test and does not hang it."""
    events: list[Any] = []
    following = threading.Thread(target=lambda: events.extend(keeper.follow(job)), daemon=True)
    following.start()
    following.join(60)
    assert not following.is_alive(), keeper.state
    return iter(events)


def test_a_file_where_the_folder_of_jobs_should_be(keeper: Keeper) -> None:
    """The window said ready, and nothing ran any more."""
    jobs = keeper.home.scratch / "jobs"
    jobs.write_text("in the way")
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    until(lambda: keeper.state.obstacle is not None)
    assert str(jobs) in str(keeper.state.obstacle)
    pass_turns()
    assert keeper.journal.get(job.id).state == "queued", "it waits"
    second = keeper.submit(SpeechRequest(SCRIPT, seed=6))
    keeper.stop(second.id)
    assert isinstance(list(followed(keeper, second.id))[-1], Stopped)
    jobs.unlink()
    assert isinstance(list(followed(keeper, job.id))[-1], Finished)
    until(lambda: keeper.state.obstacle is None)


def test_an_engine_that_hears_nothing_any_more_ends(tmp_path: Path) -> None:
    """A thread of the engine's that ends takes the engine along: its keeper notices that at once."""
    import subprocess
    import sys

    code = "import time; from app.engine.keeper.worker import exit_when_done\n"
    for needed in ("lambda: 1 / 0", "lambda: None"):
        done = subprocess.run(
            [sys.executable, "-c", code + f"exit_when_done({needed}); time.sleep(60)"], cwd=TOP, capture_output=True, text=True
        )
        assert done.returncode == 1 and ("ZeroDivisionError" in done.stderr) == ("1 / 0" in needed)


def test_an_engine_beats_on_where_the_meter_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[Any] = []

    class Pipe:
        def send(self, report: Any) -> None:
            beats.append(report)
            if len(beats) == 3:
                raise EOFError

    readings = [Reading(process_bytes=7)]

    def read_beside(_: Any) -> Any:
        if readings:
            return readings.pop()
        raise OSError("no meter")

    monkeypatch.setattr(worker, "read_beside", read_beside)
    monkeypatch.setattr(worker, "BEAT_S", 0.0)
    with pytest.raises(EOFError):
        worker.Worker(Pipe()).beat()  # type: ignore[arg-type]
    assert [each.reading.process_bytes for each in beats] == [7, 7, 7]


def test_a_database_that_is_deleted_meanwhile_is_told_and_comes_back(keeper: Keeper) -> None:
    """Nothing was said, and what was made until the end stood nowhere after it."""
    first = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    assert isinstance([*followed(keeper, first.id)][-1], Finished)
    database, away = keeper.home.database, keeper.home.root / "moved"
    database.rename(away)
    until(lambda: keeper.state.obstacle is not None and keeper.state.obstacle.key == "disk.database-gone")
    waits = keeper.submit(SpeechRequest(SCRIPT, seed=6))
    pass_turns()
    assert keeper.journal.get(waits.id).state == "queued"
    away.rename(database)
    assert isinstance([*followed(keeper, waits.id)][-1], Finished) and keeper.state.obstacle is None


def test_a_job_that_does_not_see_stop_is_ended_and_the_next_one_runs(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose load never ended held the engine for as long as ten minutes after Stop."""
    monkeypatch.setattr(engine_loop, "UNHEARD_S", 0.2)
    (keeper.home.root / light_engine.LIVES).write_text(json.dumps([{"dies": "never"}]))
    stuck, waits = keeper.submit(SpeechRequest(SCRIPT, seed=5)), keeper.submit(SpeechRequest(SCRIPT, seed=6))
    until(lambda: keeper.get_progress(stuck.id).loading is not None)
    keeper.stop(stuck.id)
    *told, end = followed(keeper, stuck.id)
    assert isinstance(end, Stopped) and DEAF.sentence in [each.sentence for each in told if isinstance(each, Adjusted)]
    assert keeper.journal.get(stuck.id).state == "stopped"
    assert isinstance([*followed(keeper, waits.id)][-1], Finished)


def end_thread(code: int) -> NoReturn:
    raise SystemExit(code)


def test_the_beat_tells_how_long_stop_was_not_seen(tmp_path: Path) -> None:
    """What a run does after it has seen it, as decoding what it has, is no deafness, however long it takes."""
    here, there = multiprocessing.Pipe()
    working, reads, ends = worker.Worker(there), threading.Event(), threading.Event()

    def run(request: object, choice: object, control: Control, *more: object, **known: object) -> Iterator[Any]:
        assert reads.wait(60) and control.stopped and ends.wait(60)
        yield Stopped((), 0.0)

    order = Run("job", SpeechRequest(SCRIPT), Choice(), str(tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "BEAT_S", 0.01)
        set_in(patch, worker, "os", _exit=end_thread)

        def until_the_end(needed: Callable[[], None]) -> None:
            with contextlib.suppress(OSError, SystemExit):
                needed()

        runs = threading.Thread(target=working._run, args=(SimpleNamespace(run=run), order), daemon=True)
        others = [*(threading.Thread(target=until_the_end, args=(each,), daemon=True) for each in (working.listen, working.beat)), runs]
        for each in reversed(others):
            each.start()

        def beats_until(heard: Callable[[float | None], bool]) -> None:
            while not (isinstance(report := here.recv(), Beat) and heard(report.unheard_s)):
                pass

        beats_until(lambda unheard_s: unheard_s is None)
        here.send(Stop("job"))
        beats_until(lambda unheard_s: unheard_s is not None and unheard_s > 0.02)
        here.send(Stop("job"))  # pressed again: the first one counts
        beats_until(lambda unheard_s: unheard_s is not None and unheard_s > 0.04)
        reads.set()
        beats_until(lambda unheard_s: unheard_s is None)
        ends.set()
        runs.join(60)
        here.close()
        for each in others:
            each.join(60)


@pytest.mark.parametrize(
    ("step", "waits_s"),
    [(None, 0.0), (Step(1, 9, 0.02, "steps", None, Reading()), 50.0), (Step(1, 9, 90.0, "frames", None, Reading()), 0.0)],
)
def test_a_slow_step_of_a_picture_is_waited_for(step: Step | None, waits_s: float) -> None:
    assert engine_loop.find_step_s(step) == pytest.approx(waits_s)


def test_sleep_is_no_silence_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that last spoke at 0 s; between its third and its fourth beat the computer sleeps for an hour."""
    quiet: list[float] = []
    beat_at_s = [0.0, 10.0, 20.0, 3620.0, 3630.0]

    class Pipe:
        def send(self, report: Any) -> None:
            quiet.append(report.quiet_s)
            if len(quiet) == len(beat_at_s):
                raise EOFError

    now_s = iter([0.0, *beat_at_s])
    monkeypatch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: next(now_s), sleep=lambda seconds: None))
    working = worker.Worker(Pipe())  # type: ignore[arg-type]
    working._spoke_s = 0.0
    with pytest.raises(EOFError):
        working.beat()
    assert quiet == [0.0, 10.0, 20.0, 0.0, 10.0]
