"""The real painter and voice, in the engines of helpers: the same request gives the same picture on each, and as here."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.engine.jobs.events import END, Event, Finished, Step
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.process.keeper import Keeper
from app.machines.hub import TaskEnd
from app.machines.tasks.portable import pack
from app.paths import home
from tests.support.lent import Main, open_main
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.slow


def have_made(main: Main, place: int, request: Request) -> tuple[bytes, list[Event]]:
    """Have one helper make something; return its file and what it told on its way."""
    machine, told = main.hub.list_machines()[place].id, list[Event]()
    ends: queue.SimpleQueue[tuple[TaskEnd, list[bytes]]] = queue.SimpleQueue()

    def take(end: TaskEnd) -> None:
        ends.put((end, [file.read_bytes() for file in end.files.values()]))

    main.hub.submit(f"{place}-{type(request).__name__}", pack(request), [machine], lambda _, event: told.append(event), take)
    end, files = ends.get(timeout=250)
    assert isinstance(end.event, Finished) and end.machine == machine and len(files) == 1, (end, main.helpers[place].log)
    return files[0], told


def test_the_same_picture_on_every_machine(tmp_path: Path) -> None:
    picture = PictureRequest("a red ball on grass", model="starter-painter", seed=5, steps=3)
    speech = SpeechRequest("[S1] The red boat is near the bridge.", model="starter-voice", seed=5)
    with open_main(tmp_path / "main", spreads=False) as main:
        for name in ("one", "two"):
            main.start_helper(tmp_path / name, module="app", words=("lend",))
        until(lambda: not any(each.paused for each in main.hub.list_machines()), LOADING_S)
        first, told = have_made(main, 0, picture)
        assert first == have_made(main, 1, picture)[0] and first.startswith(b"\x89PNG")
        assert [event.done for event in told if isinstance(event, Step)][-1] == 3, "progress did not arrive while it happened"
        assert have_made(main, 0, speech)[0].startswith(b"RIFF")
    keeper = Keeper(home(tmp_path / "here"))
    try:
        end = next(event for event in keeper.follow(keeper.submit(picture).id) if isinstance(event, END))
        assert Path(end.files[0]).read_bytes() == first
    finally:
        keeper.close()
