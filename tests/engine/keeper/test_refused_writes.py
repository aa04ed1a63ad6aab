"""A disk that refuses to write though there is room, by a quota or a fault: it is told, and jobs go on once it writes again."""

from __future__ import annotations

import errno
import math
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.base import atomic_write, notices
from app.base.disk_faults import PLENTY_BYTES
from app.base.paths import home
from app.base.trouble import DiskFull
from app.compat.planning.types import Choice
from app.engine.jobs import database, shelf
from app.engine.jobs.events import Adjusted, Event, Failed, Finished
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import SpeechRequest
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper import disk_room, engine_loop
from app.engine.keeper.disk_room import DiskRoom
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.open_database import open_database
from app.engine.session.run_errors import describe_failure
from tests.engine.keeper.test_broken_database import make_home
from tests.support import light_engine
from tests.support.other_functions import set_in
from tests.support.waiting import pass_turns, until

SCRIPT = "[S1] The water is warm today, my friend."
QUOTA = OSError(errno.EDQUOT, "Disk quota exceeded", "speech.wav")


def break_sqlite() -> sqlite3.OperationalError:
    """What SQLite raises where a quota or a failing disk refuses its write."""
    fault = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    return fault


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keeper]:
    """On a disk with 500 GB free, by what the system says."""
    light_engine.replace_engines(monkeypatch)
    monkeypatch.setattr(disk_room, "read_free_bytes", lambda home: 500 << 30)
    monkeypatch.setattr(disk_room, "AGAIN_S", 1.5)
    keeper = Keeper(home(tmp_path / "home"))
    yield keeper
    keeper.close()


def refuse(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Exception) -> list[float]:
    """Let a function fail until the list is cleared; it notes when it was called."""
    real, calls = getattr(where, name), [0.0]

    def fail(*values: Any) -> Any:
        if not calls:
            return real(*values)
        calls.append(time.monotonic())
        raise fault

    monkeypatch.setattr(where, name, fail)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault", "told"),
    [
        (atomic_write, "put_in_place", QUOTA, "Disk quota exceeded"), (shelf, "make_row", break_sqlite(), "disk I/O error"),
        (Journal, "end", break_sqlite(), "disk I/O error"),
    ],
)  # fmt: skip
def test_an_end_that_cannot_be_stored_though_there_is_room_is_told_and_stored_once_it_can_be(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, fault: Exception, told: str
) -> None:
    calls, now_s = refuse(monkeypatch, where, name, fault), [0.0]
    set_in(monkeypatch, engine_loop, "time", monotonic=lambda: now_s[0])
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
    until(lambda: keeper.state.obstacle is not None, 60)
    said = str(keeper.state.obstacle)
    assert told in said and str(keeper.home.root) in said and "512000 MB are free" in said and "quota" in said
    assert keeper.get_progress(job).end is None and keeper.journal.get(job).state == "running"
    tried = len(calls)
    pass_turns()
    assert keeper.state.obstacle is not None and len(calls) == tried, "told as long as it lasts, and not tried all the time"
    now_s[0] += engine_loop.STORE_AGAIN_S
    until(lambda: len(calls) > tried)
    calls.clear()
    now_s[0] = math.inf
    until(lambda: keeper.get_progress(job).end is not None, 60)
    (kept,) = keeper.shelf.find(Search())
    end = keeper.get_progress(job).end
    assert (
        isinstance(end, Finished) and end.files == (str(kept.path),) and not kept.condition and keeper.journal.get(job).state == "finished"
    )
    until(lambda: keeper.state.obstacle is None, 10)


def test_an_engine_that_dies_while_an_end_waits_for_room_starts_nothing_again(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, told = refuse(monkeypatch, shelf, "make_row", break_sqlite()), list[Event]()
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
    with keeper.board.watch(job, told.append):
        until(lambda: keeper.state.obstacle is not None, 60)
        child = keeper.engine.child
        assert child is not None and child.pid is not None
        psutil.Process(child.pid).kill()
        until(lambda: keeper.state.restarts == 1 and keeper.state.ready, 60)
        assert keeper.journal.get(job).state == "running"
        calls.clear()
        until(lambda: keeper.get_progress(job).end is not None, 60)
    assert isinstance(told[-1], Finished) and not any(isinstance(each, Adjusted) for each in told)
    assert len(keeper.shelf.find(Search())) == 1 and keeper.journal.get(job).state == "finished"


@pytest.mark.slow
def test_a_job_that_meets_a_quota_waits_is_told_and_is_tried_again(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free space tells nothing of a quota, so time has to do."""
    failed = list[float]()

    def meet_quota() -> Iterator[Failed]:
        for _ in range(2):
            failed.append(time.monotonic())
            yield describe_failure(OSError(errno.EDQUOT, "Disk quota exceeded"), keeper.home.scratch)

    light_engine.replace_ends(monkeypatch, meet_quota())
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5)).id
    until(lambda: keeper.state.obstacle is not None, 60)
    assert "Disk quota exceeded" in str(keeper.state.obstacle) and "512000 MB are free" in str(keeper.state.obstacle)
    assert keeper.journal.get(job).state == "queued" and keeper.get_progress(job).end is None
    until(lambda: keeper.get_progress(job).end is not None, 60)
    assert isinstance(keeper.get_progress(job).end, Finished) and failed[1] - failed[0] > 1.5
    until(lambda: keeper.state.obstacle is None, 10)


def test_a_job_that_fills_the_disk_after_it_met_a_quota_waits_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [2 * PLENTY_BYTES]
    monkeypatch.setattr(disk_room, "read_free_bytes", lambda home: free[0])
    monkeypatch.setattr(disk_room, "AGAIN_S", 0.0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1 << 40, 0, free[0]))
    room = DiskRoom(home(tmp_path), waits=True)
    room.note_full(lack_of(QUOTA, tmp_path))
    assert room.find_lack() is None, "it is tried again"
    free[0] = PLENTY_BYTES // 2
    room.note_full(lack_of(OSError(errno.ENOSPC, "No space left on device"), tmp_path))
    lack = room.find_lack()
    assert lack is not None and lack.key == "disk.full" and room.find_obstacle() == lack
    free[0] += disk_room.ROOM_BYTES
    assert room.find_lack() is None


def lack_of(fault: OSError, folder: Path) -> DiskFull:
    lack = describe_failure(fault, folder).trouble
    assert isinstance(lack, DiskFull)
    return lack


def test_an_input_error_is_told_with_its_file_and_what_to_do(tmp_path: Path) -> None:
    """Linux answers so for the start of a process's own memory, which nothing lies at."""
    failed: list[Failed] = []
    try:
        with Path("/proc/self/mem").open("rb") as file:
            file.read(1)
    except OSError as fault:
        assert fault.errno == errno.EIO
        failed.append(describe_failure(OSError(fault.errno, fault.strerror, str(tmp_path / "part-003.wav")), tmp_path))
    (told,) = failed
    assert told.sentence.key == "session.disk-error" and "part-003.wav" in str(told.sentence) and "resume" in str(told.sentence)


@pytest.mark.parametrize(("number", "free", "key"), [
    (errno.EDQUOT, 2 * PLENTY_BYTES, "session.disk-quota"), (errno.EDQUOT, 50 << 20, "session.disk-quota"),
    (errno.ENOSPC, 2 * PLENTY_BYTES, "session.disk-quota"), (errno.ENOSPC, 50 << 20, "session.disk-full"), (errno.EIO, 50 << 20, "session.disk-error"),
])  # fmt: skip
def test_a_write_that_failed_is_named_by_its_error_and_the_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, free: int, key: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(1 << 40, 0, free))
    assert describe_failure(OSError(number, "words", "file"), tmp_path).sentence.key == key


def test_a_database_that_cannot_be_written_at_the_start_is_shown_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite cannot make its files beside it, by a quota or a fault; nothing that interrupted jobs need is removed meanwhile."""
    place = make_home(tmp_path / "home", pictures=3, jobs=2)
    calls = [0]

    def connect(*given: Any, **options: Any) -> sqlite3.Connection:
        if calls and place.database in given:
            raise break_sqlite()
        return sqlite3.connect(*given, **options)

    set_in(monkeypatch, database, "sqlite3", connect=connect)
    notices.take_all()
    opened = open_database(place, alone=True)
    (told,) = notices.take_all()
    assert "disk I/O error" in str(told) and "quota" in str(told) and opened.stands_in
    assert len(Shelf(opened, place.creations).find(Search())) == 2 and not list(place.root.glob("*.damaged"))
    with pytest.raises(sqlite3.OperationalError):
        Journal(opened).queue(SpeechRequest(SCRIPT), Choice())
    calls.clear()
    Journal(opened).queue(SpeechRequest(SCRIPT), Choice())
    assert not opened.stands_in
    opened.close()
