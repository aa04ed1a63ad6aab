"""A home whose database and folders are a stranger's: Hearth starts, and neither its start nor giving a job up reaches a file outside."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import Home, home
from app.engine.jobs.tasks import name_lent
from app.engine.keeper.open_database import open_database
from tests.support.waiting import Idle

ID = "a" * 32
PICTURE, SCRIPT = {"kind": "picture", "prompt": "a boat", "batch": 2}, {"kind": "speech", "text": "[S1] Hello."}


@pytest.fixture
def place(tmp_path: Path) -> Home:
    place = home(tmp_path / "home").create()
    open_database(place, alone=True).close()
    return place


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    for name in ("letter.txt", "preview-holiday.jpg", "sound-wedding.wav", "picture-1.png", "delivered/thesis.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"private")
    return folder


def add_job(place: Home, request: dict[str, Any], id_: str = ID, state: str = "interrupted") -> None:
    with closing(sqlite3.connect(place.database)) as connection, connection:
        connection.execute(
            "INSERT INTO jobs (id, owner, request, choice, state, position, created_s, runner) VALUES (?,'owner',?,'{}',?,1.0,1.0,'999999:1')",
            (id_, json.dumps(request), state),
        )


def add_missing_creation(place: Home, job: str) -> None:
    with closing(sqlite3.connect(place.database)) as connection, connection:
        connection.execute(
            "INSERT INTO creations (job, owner, kind, model, text, request, plan, path, bytes, seconds, rate, unit, elapsed_s, highest_bytes,"
            " whole, created_s) VALUES (?,'guest-a','picture','m','t',?,'{}',?,7,0,0,'',0,0,1,1.0)",
            (job, json.dumps(PICTURE), str(place.creations / "taken.txt")),
        )


def list_all(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


@pytest.mark.parametrize("id_", ["{outside}", "../../../outside", "", ".", "..", "a/b", "a\\b", "C:", "a\n", "a" * 101])
def test_the_id_of_a_row_that_names_a_path_is_no_jobs(id_: str, place: Home, outside: Path) -> None:
    id_, before = id_.replace("{outside}", str(outside)), list_all(outside)
    add_job(place, PICTURE, id_)
    add_missing_creation(place, id_)
    keeper = Idle(place)
    try:
        assert keeper.interrupted == [] and keeper.journal.find(id_) is None and not keeper.has_parts(id_)
        keeper.discard(id_)
        keeper.resume(id_)
        assert list_all(outside) == before and not (place.creations / "taken.txt").exists()
        with pytest.raises(ValueError, match="no job's id"):
            keeper.folder(id_)
        assert keeper.folder(name_lent(f"a/../{id_}")).resolve().is_relative_to(place.scratch.resolve())
    finally:
        keeper.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a permission there")
@pytest.mark.parametrize("link", ["jobs/x", f"jobs/{ID}", f"jobs/{ID}/delivered", "uploads/x"])
@pytest.mark.parametrize("to", ["outside", "nowhere"])
def test_a_link_in_place_of_a_folder_leads_nowhere(link: str, to: str, place: Home, outside: Path) -> None:
    before = list_all(outside)
    add_job(place, PICTURE)
    add_missing_creation(place, ID)
    path = place.scratch / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside.with_name(to))
    os.utime(outside, (1, 1))
    keeper = Idle(place)
    keeper.discard(ID)
    keeper.close()
    assert list_all(outside) == before and not (place.creations / "taken.txt").exists()


@pytest.mark.parametrize(
    "request_",
    [
        {**SCRIPT, "keep": [5]},
        {**SCRIPT, "voice": {"path": 5, "transcript": "x"}},
        {**SCRIPT, "voice": {"path": "x", "transcript": None}},
        {**SCRIPT, "only_parts": [["x"]]},
        {**SCRIPT, "only_parts": [-1]},
        {**SCRIPT, "only_parts": [True]},
        {**SCRIPT, "model": ["x"]},
        {**PICTURE, "image": 5},
        {**PICTURE, "image": {}},
        {**PICTURE, "image": "x", "mask": 5},
        {**PICTURE, "scheduler": 5},
        {**PICTURE, "loras": [{"path": 5}]},
    ],
    ids=lambda request: json.dumps(request)[28:],
)
@pytest.mark.parametrize("state", ["interrupted", "queued", "finished"])
def test_a_row_of_other_types_is_passed_over(request_: dict[str, Any], state: str, place: Home) -> None:
    add_job(place, request_, state=state)
    folder = place.scratch / "jobs" / ID
    folder.mkdir(parents=True)
    for name in ("part-000.wav", "part-000.json"):
        (folder / name).write_bytes(b"x")
    keeper = Idle(place)
    try:
        assert keeper.interrupted == [] and keeper.journal.find(ID) is None
        keeper.resume(ID)
    finally:
        keeper.close()


def test_a_step_that_fails_keeps_neither_the_others_nor_the_start(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_moved", "finish_moves"):
        monkeypatch.setattr(f"app.engine.jobs.shelf.Shelf.{name}", lambda *_: (_ for _ in ()).throw(TypeError("odd")))
    add_job(place, PICTURE)
    passing = place.scratch / "jobs" / "b" / "preview-0-2.jpg"
    passing.parent.mkdir(parents=True)
    passing.write_bytes(b"x")
    keeper = Idle(place)
    assert [job.id for job in keeper.interrupted] == [ID] and not passing.exists()
    keeper.close()
