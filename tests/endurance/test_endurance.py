"""Short runs of kills.py, kill_stores.py, soak.py and book.py; by hand they run for as long and with as many seeds as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endurance import book, kill_stores, kills, soak


@pytest.mark.slow
def test_nothing_finished_is_lost_when_engine_and_server_are_killed(tmp_path: Path) -> None:
    record = kills.run(tmp_path / "home", count=6, kills=8, seed=3)
    assert record.after_parts


@pytest.mark.slow
def test_nothing_grows_with_the_jobs(tmp_path: Path) -> None:
    assert soak.check(soak.run(tmp_path, minutes=4, jobs=90, seed=3))


@pytest.mark.slow
def test_files_and_rows_stay_together_when_the_server_is_killed(tmp_path: Path) -> None:
    assert kill_stores.run(tmp_path / "home", kills=8, seed=3)["jobs"] > 20


@pytest.mark.slow
def test_a_book_is_complete_though_its_engine_is_killed(tmp_path: Path) -> None:
    assert book.run(tmp_path / "home", letters=2_500, kills=2, seed=3).answers_ms


@pytest.mark.slow
def test_the_window_does_not_grow_with_a_book(tmp_path: Path) -> None:
    seen = book.run(tmp_path / "home", letters=4_000, kills=2, seed=3, at_once=True)
    assert book.grow(seen.windows_mib) < book.GROWTH_MOST_MIB
