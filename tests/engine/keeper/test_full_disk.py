"""A disk that is full, for real where a small file system can be mounted: jobs wait, everything readable is there, and it goes on by itself."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base import notices
from app.base.paths import home
from app.base.sentence import say
from app.base.trouble import DiskFull, Trouble
from app.engine.jobs import shelf
from app.engine.jobs.creation import make_row
from app.engine.jobs.events import Event, Failed, Finished
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.shelf import Search
from app.engine.keeper import disk_room
from app.engine.keeper.keeper import Keeper
from app.ui.state.settings import Settings
from tests.engine.keeper.test_broken_database import make_home
from tests.support import light_engine
from tests.support.database_damage import execute
from tests.support.waiting import pass_turns, until

pytestmark = pytest.mark.long

SCRIPT = " (pause 0.2s) ".join(["[S1] The water is warm today, my friend."] * 3)
MB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only the system's owner may mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, left_bytes: int) -> Path:
    """Fill the disk but for so many bytes."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(bytes(max(0, free - left_bytes)))
    return ballast


def last_of(keeper: Keeper, job: str) -> Event:
    events: list[Event] = []
    following = threading.Thread(target=lambda: events.extend(keeper.follow(job)), daemon=True)
    following.start()
    following.join(60)
    assert not following.is_alive(), keeper.state
    return events[-1]


@pytest.mark.parametrize("left_kb", [0, 8, 64, 512, *(pytest.param(each, marks=pytest.mark.slow) for each in (4, 16, 32, 96, 128, 256))])
def test_hearth_starts_on_a_full_disk_and_goes_on_when_there_is_room(
    small_disk: Path, left_kb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The less is left, the earlier the write that finds no room: of the database's own files, the journal, a part, its end."""
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setattr(disk_room, "ROOM_BYTES", 1 * MB)
    place = make_home(small_disk / "home", pictures=3, jobs=4)
    execute("UPDATE jobs SET runner='of a process that is gone'")(place.database, random.Random())
    ballast = fill(small_disk, left_kb << 10)
    notices.take_all()
    keeper = Keeper(place)
    try:
        until(lambda: keeper.state.obstacle is not None)
        assert str(place.root) in str(keeper.state.obstacle)
        assert len(keeper.shelf.find(Search(most=-1))) + len(keeper.shelf.find(Search(binned=True))) == 3
        assert len(keeper.interrupted) == 4 and not notices.list_notices()
        try:
            job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
        except Trouble as told:
            assert f"{place.database}" in str(told) and "MB there" in str(told), "what failed, and what to free"
            job = ""
        pass_turns()
        assert not job or keeper.journal.get(job).state == "queued", "it waits and does not fail"
        ballast.unlink()
        until(lambda: keeper.state.obstacle is None)
        job = job or keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
        assert isinstance(last_of(keeper, job), Finished)
        other = keeper.interrupted[0].id
        keeper.resume(other)
        assert isinstance(last_of(keeper, other), Finished)
    finally:
        keeper.close()


def test_a_disk_that_fills_while_a_job_runs(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end finds no room for its row: it is stored once there is, and the result is on the shelf once."""
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setattr(disk_room, "ROOM_BYTES", 64 << 10)
    place = home(small_disk / "home").create()
    keeper = Keeper(place)
    filled = list[Path]()

    def fills(*about: Any) -> tuple[object, ...]:
        if not filled:
            filled.append(fill(small_disk, 0))
        return make_row(*about)

    monkeypatch.setattr(shelf, "make_row", fills)
    try:
        job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
        until(lambda: bool(filled) and keeper.state.obstacle is not None)
        assert keeper.journal.get(job).state == "running" and not keeper.shelf.find(Search())
        filled[0].unlink()
        assert isinstance(last_of(keeper, job), Finished)
        (kept,) = keeper.shelf.find(Search())
        assert kept.job == job and not kept.condition and len(list(place.creations.iterdir())) == 1
    finally:
        keeper.close()


def test_an_engine_that_finds_no_room_gives_its_job_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light_engine.replace_engines(monkeypatch)
    keeper = Keeper(home(tmp_path))
    free = [10 << 30]
    monkeypatch.setattr(disk_room, "read_free_bytes", lambda home: free[0])
    light_engine.replace_ends(monkeypatch, iter([Failed.of(DiskFull(say("session.disk-full", "full"), cure="open-folder"))]))
    try:
        job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
        until(lambda: keeper.state.obstacle is not None)
        pass_turns()
        assert keeper.journal.get(job).state == "queued" and keeper.get_progress(job).end is None
        free[0] += disk_room.ROOM_BYTES
        assert isinstance(last_of(keeper, job), Finished)
        until(lambda: keeper.state.obstacle is None)
    finally:
        keeper.close()


def test_settings_that_find_no_room_say_so(small_disk: Path) -> None:
    settings = Settings(small_disk / "settings.json")
    settings.put({"drafts": {"speak-text": "before"}})
    ballast = fill(small_disk, 0)
    with pytest.raises(Trouble, match="No space left"):
        settings.put({"drafts": {"speak-text": "x" * 100_000}})
    assert Settings(small_disk / "settings.json").get("drafts") == {"speak-text": "before"}
    ballast.unlink()
    settings.put({"drafts": {"speak-text": "after"}})
    assert Settings(small_disk / "settings.json").get("drafts") == {"speak-text": "after"}
