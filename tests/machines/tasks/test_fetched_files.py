"""What a task may make a helper fetch: files by hash that the disk has room for, and nothing elsewhere. They go after a day."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.keeper.disk_room import ROOM_BYTES
from app.machines.tasks import fetched_files
from app.machines.tasks.event_json import from_json
from app.machines.tasks.fetched_files import choose_missing, tidy
from tests.support.other_functions import set_in
from tests.support.vanishing import coming_and_going

ONE, TWO = "1" * 64, "2" * 64
DATA = b"what a task needs"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize(
    "files",
    [None, [ONE], {"../" + ONE: 1}, {"a": 1}, {ONE + "/x": 1}, {ONE: -1}, {ONE: "1"}, {ONE: True}, {f"{n:064x}": 1 for n in range(513)}],
)
def test_what_is_no_list_of_hashes_is_refused(files: object, tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="did not arrive as it says"):
        choose_missing(tmp_path / "files", files)
    assert not (tmp_path / "files").exists()


def test_only_what_is_missing_is_fetched_and_only_where_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ONE).write_bytes(b"x")
    os.utime(tmp_path / ONE, (1, 1))
    set_in(monkeypatch, fetched_files, "shutil", disk_usage=lambda _: SimpleNamespace(free=ROOM_BYTES + 10))
    assert choose_missing(tmp_path, {ONE: 20, TWO: 10}) == {TWO: 10}
    assert time.time() - (tmp_path / ONE).stat().st_mtime < 600, "it is used now"
    with pytest.raises(Trouble, match="it needs 101 MB and has 100 MB free"):
        choose_missing(tmp_path, {TWO: 11})


def test_all_of_them_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_files, "MOST_BYTES", 30)
    for age, name in enumerate((ONE, TWO, "3" * 64)):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1000 + age,) * 2)
    assert choose_missing(tmp_path, {ONE: 10, "4" * 64: 10}) == {"4" * 64: 10}
    assert sorted(each.name for each in tmp_path.iterdir()) == [ONE, "3" * 64], "the one that was unused for longest made room"
    with pytest.raises(Trouble, match="no room"):
        choose_missing(tmp_path, {"5" * 64: 31})


def test_a_file_with_two_names_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task finds it under a name with its ending."""
    monkeypatch.setattr(fetched_files, "MOST_BYTES", 30)
    for age, name in enumerate((ONE, TWO)):
        (tmp_path / name).write_bytes(b"x" * 10)
        (tmp_path / f"{name}.png").hardlink_to(tmp_path / name)
        os.utime(tmp_path / name, (1000 + age,) * 2)
    choose_missing(tmp_path, {"3" * 64: 10})
    assert len([*tmp_path.iterdir()]) == 4, "there is room for it beside them"
    choose_missing(tmp_path, {"3" * 64: 20})
    assert sorted(each.name for each in tmp_path.iterdir()) == [TWO, f"{TWO}.png"], "both names of the older one made room"


def test_another_process_may_fetch_and_delete_meanwhile(tmp_path: Path) -> None:
    with coming_and_going(tmp_path / ONE):
        for number in range(2000):
            tidy(tmp_path)
            choose_missing(tmp_path, {f"{number:064x}": 1})


def test_what_nobody_used_for_a_day_goes(tmp_path: Path) -> None:
    for name, age_s in (("old", fetched_files.UNUSED_S + 60), ("new", fetched_files.UNUSED_S - 600)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    tidy(tmp_path)
    tidy(tmp_path / "missing")
    assert [each.name for each in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("named", "sent", "whole"), [({SHA256: 17}, DATA, True), ({SHA256: 5}, DATA, False), ({SHA256: 17}, b"else", False)]
)
def test_a_task_whose_files_are_not_as_it_says_ends(named: dict[str, int], sent: bytes, whole: bool, tmp_path: Path) -> None:
    worker = pytest.importorskip("app.machines.cluster.helper_process", reason="the extra machines is not installed")
    told, asked = list[Any](), list[Any]()

    class Pipe:
        def tell(self, op: str, **values: Any) -> None:
            told.append(op)
            if op == "run":
                errands.hear({"op": "end", "id": "task", "event": None, "files": {}})

    class Main:
        """Sends three bytes at a time, for ever."""

        def ask(self, operation: str, **values: Any) -> Any:
            return getattr(self, operation)(**values)

        def hearth_fetch(self, task: str, sha256: str, offset: int) -> Any:
            return {"data": sent[offset : offset + 3]}

        def hearth_begin(self, task: str) -> Any:
            return {}

        def hearth_end(self, task: str, event: Any) -> None:
            asked.append(event)

    errands = worker.Errands(Pipe(), tmp_path)
    errands.carry_out(Main(), "task", json.dumps({"files": named}))
    assert (told == ["run", "delivered"]) is whole and (from_json(asked[0]) is None) is whole
    assert [each.read_bytes() for each in tmp_path.iterdir()] == ([DATA] if whole else [])
