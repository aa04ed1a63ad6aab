"""What tasks of another machine leave on a helper's disk: it goes in time, and all of it with the pairing; nothing of the owner's does."""

from __future__ import annotations

from pathlib import Path

from app.base.paths import home
from app.machines import lent_tasks
from app.machines.tasks.fetched_files import UNUSED_S
from tests.support.left_behind import leave_something


def test_what_nobody_needs_any_more_goes_in_time(tmp_path: Path) -> None:
    place = home(tmp_path).create()
    files = leave_something(place, UNUSED_S - 60)
    lent_tasks.tidy(place)
    assert [file.exists() for file in files] == [True, True, True]
    leave_something(place, UNUSED_S + 60)
    lent_tasks.tidy(place)
    assert [file.exists() for file in files] == [False, False, True]


def test_all_of_it_goes_at_the_end(tmp_path: Path) -> None:
    place = home(tmp_path).create()
    files = leave_something(place)
    model = place.scratch / "machines" / "models" / "x" / "model.safetensors"
    model.parent.mkdir(parents=True)
    model.touch()
    lent_tasks.clear(place)
    assert [file.exists() for file in (*files, model)] == [False, False, True, False]
