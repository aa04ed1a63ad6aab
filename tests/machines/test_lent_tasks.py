"""A helper's tasks end for the main machine whatever happens here, and nothing is kept of them afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import pytest

from app.base.paths import home
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.tasks import is_lent, name_lent
from app.machines.lent_tasks import LentTasks
from app.machines.tasks.portable import pack
from tests.support.waiting import until

BODY = pack(PictureRequest("a ball", model="starter-painter", seed=1)).body
Told = SimpleQueue[dict[str, Any]]


def make(folder: Path, follow: Any) -> tuple[LentTasks, Callable[..., None], Told]:
    told = Told()
    keeper = SimpleNamespace(
        home=home(folder), folder=lambda job: folder, run_lent=lambda task, request: f"lent-{task}", follow=follow, stop=lambda job: None
    )
    tell = lambda op, **values: told.put({"op": op, **values})  # noqa: E731
    return LentTasks(keeper, str), tell, told  # type: ignore[arg-type]


def finish(job: str) -> Iterator[Event]:
    yield Finished((), 1.0, 1.0, "steps", 0)


def break_off(job: str) -> Iterator[Event]:
    raise RuntimeError("nobody thought of this")
    yield


@pytest.mark.parametrize(
    ("body", "follow", "says"),
    [
        (BODY, break_off, "nobody thought of this"),
        ("[" * 100_000, finish, "could not carry out the task"),
        ("{}", finish, "cannot be read"),
    ],
)
def test_the_main_machine_is_told_an_end_whatever_happens(body: str, follow: Any, says: str, tmp_path: Path) -> None:
    tasks, tell, told = make(tmp_path, follow)
    tasks.begin("one", body, tell)
    end = told.get(timeout=20)
    assert (end["op"], end["id"], end["event"]["event"]) == ("end", "one", "Failed") and says in json.dumps(end["event"])
    tasks.begin("two", BODY, tell)
    assert told.get(timeout=20)["id"] == "two", "its turn never came"


def test_nothing_is_kept_of_a_task_that_has_ended(tmp_path: Path) -> None:
    tasks, tell, told = make(tmp_path, finish)
    for number in range(20):
        tasks.begin(str(number), BODY, tell)
        assert told.get(timeout=20)["event"]["event"] == "Finished"
        tasks.stop(str(number))
    kept = [value for value in vars(tasks).values() if isinstance(value, dict | set)]
    until(lambda: not any(kept))
    assert len(kept) == 1


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize("unwanted", [True, False])
def test_what_the_main_machine_wants_no_more_is_deleted(running: bool, unwanted: bool, tmp_path: Path) -> None:
    """What goes back as the owner needs his machine stays: it may come again."""
    folder, began, going = tmp_path / "job", threading.Event(), threading.Event()

    def paint(job: str) -> Iterator[Event]:
        folder.mkdir()
        (folder / "picture-0.png").touch()
        began.set()
        assert going.wait(20)
        yield Finished((), 1.0, 1.0, "steps", 0)

    tasks, tell, told = make(folder, paint)
    tasks.begin("one", BODY, tell)
    assert began.wait(20)
    if running:
        tasks.stop("one", unwanted)
        assert folder.exists(), "the engine is at it"
    going.set()
    assert told.get(timeout=20)["op"] == "end"
    until(lambda: not any(value for value in vars(tasks).values() if isinstance(value, dict)))
    if not running:
        assert folder.exists(), "the main machine fetches it now"
        tasks.stop("one", unwanted)
    until(lambda: folder.exists() is not unwanted)
    assert unwanted or (folder / "picture-0.png").is_file()


@pytest.mark.parametrize("task", ["a/../../../Documents", "../Documents", "/Documents", "\ud800/../../Documents"])
def test_no_name_of_a_task_is_a_path(task: str, tmp_path: Path) -> None:
    """A main machine could have any folder of the helper deleted, or filled with what it sent."""
    jobs, own = tmp_path / "scratch" / "jobs", tmp_path / "Documents" / "thesis.txt"
    for folder in (jobs / "lent-a", own.parent):
        folder.mkdir(parents=True)
    own.touch()
    keeper = SimpleNamespace(home=home(tmp_path), folder=lambda job: jobs / job, stop=lambda job: None)
    tasks = LentTasks(keeper, str)  # type: ignore[arg-type]
    tasks.stop(task, unwanted=True)
    tasks.clear(task)
    assert own.is_file() and (jobs / name_lent(task)).parent == jobs and is_lent(name_lent(task)), task
    assert name_lent(task) == Path(name_lent(task)).name != name_lent("a")
