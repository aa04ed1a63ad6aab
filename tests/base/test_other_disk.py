"""A folder that goes to another disk and comes back: whole at each moment, whatever happens in between."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.base import other_disk, paths
from app.base.other_disk import CancelledError, bring_back, find_target, hidden, is_away, measure, mend_all, move, point_to
from app.base.trouble import DiskFull, Trouble
from tests.support.killed_moves import FOLDER, TARGET, fill, read
from tests.support.places import TOP


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    fill(tmp_path)
    return tmp_path / FOLDER, tmp_path / TARGET


def test_a_folder_goes_and_comes_back_with_its_links_and_times(both: tuple[Path, Path]) -> None:
    folder, target = both
    (folder / "snapshots/second").hardlink_to(folder / "blobs/two")
    os.utime(folder / "blobs/one", (1_000_000, 1_000_000))
    held, takes, told = read(folder), measure(folder), list[int]()
    move(folder, target, told.append)
    assert find_target(folder) == target and read(folder) == held and sum(told) == 8000
    assert (target / "snapshots/model.safetensors").is_symlink() and measure(folder) == takes
    assert (target / "blobs/one").stat().st_mtime == 1_000_000
    bring_back(folder)
    assert find_target(folder) is None and read(folder) == held and not target.exists() and measure(folder) == takes
    assert [each.name for each in folder.parent.iterdir()] == ["creations"]


def test_a_disk_without_links_gets_what_they_lead_to_once(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, target = both
    monkeypatch.setattr(other_disk, "_takes_links", lambda _: False)
    move(folder, target)
    assert read(target) == {"blobs/two": b"2" * 5000, "snapshots/model.safetensors": b"1" * 3000}
    bring_back(folder)
    assert read(folder) == {"blobs/two": b"2" * 5000, "snapshots/model.safetensors": b"1" * 3000}


def test_an_unplugged_disk_is_said_and_forgets_nothing(both: tuple[Path, Path]) -> None:
    folder, target = both
    held, disk = read(folder), target.parents[1]
    move(folder, target)
    disk.rename(disk.with_name("in a drawer"))
    assert is_away(folder)
    with pytest.raises(Trouble, match="which is not connected"):
        bring_back(folder)
    mend_all(folder.parent)
    disk.with_name("in a drawer").rename(disk)
    assert not is_away(folder) and read(folder) == held


@pytest.mark.parametrize("chosen", [".", "Hearth", "Hearth/creations"])
def test_a_disk_that_came_back_at_another_place_is_pointed_to(tmp_path: Path, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = paths.home(tmp_path / "home").create()
    (home.creations / "a.png").write_bytes(b"a")
    disk, now = tmp_path / "E", tmp_path / "F"
    move(home.creations, disk / "Hearth/creations")
    with pytest.raises(Trouble, match="can be reached where it is"):
        point_to(home.creations, disk)
    disk.rename(now)
    (tmp_path / "G/Hearth/creations/empty").mkdir(parents=True)
    for wrong in (tmp_path / "G", tmp_path / "nowhere", tmp_path, tmp_path / ("x" * 300), tmp_path / "a\0b", Path("F")):
        with pytest.raises(Trouble, match="there is nothing that was in"):
            point_to(home.creations, wrong)
    assert find_target(home.creations) == disk / "Hearth/creations", "nothing changed"
    point_to(home.creations, now / chosen)
    assert find_target(home.creations) == now / "Hearth/creations" and (home.creations / "a.png").read_bytes() == b"a"
    home.create()
    bring_back(home.creations)
    assert [each.name for each in home.creations.iterdir()] == ["a.png"] and not [*home.root.glob(".*")]
    assert not (now / "Hearth/creations").exists()


def test_only_the_folder_that_was_moved_there_is_pointed_to(tmp_path: Path) -> None:
    home, other, disk = paths.home(tmp_path / "home").create(), paths.home(tmp_path / "other").create(), tmp_path / "E"
    (home.creations / "a.png").write_bytes(b"a")
    (other.creations / "theirs.png").write_bytes(b"theirs")
    move(home.creations, disk / "Hearth/creations")
    move(other.creations, tmp_path / "theirs/Hearth/creations")
    disk.rename(tmp_path / "F")
    (tmp_path / "pics/creations").mkdir(parents=True)
    (tmp_path / "pics/creations/holiday.jpg").write_bytes(b"h")
    for wrong in ("other", "theirs", "pics"):
        with pytest.raises(Trouble, match="there is nothing that was in"):
            point_to(home.creations, tmp_path / wrong)
    point_to(home.creations, tmp_path / "F")
    assert (home.creations / "a.png").read_bytes() == b"a"


def test_a_folder_without_a_mark_is_known_by_its_files_and_a_wrong_one_is_taken_back(tmp_path: Path) -> None:
    home, disk = paths.home(tmp_path / "creations/home").create(), tmp_path / "E"
    (home.creations / "a.png").write_bytes(b"a")
    move(home.creations, disk / "Hearth/creations")
    (disk / "Hearth/creations" / other_disk.MARK).unlink()
    disk.rename(tmp_path / "F")
    with pytest.raises(Trouble, match="there is nothing that was in"):
        point_to(home.creations, tmp_path / "F", lambda _: True)  # as one was left there, and another's files may have the same names
    other_disk.hidden(home.creations, other_disk.NOTE).unlink()  # as an earlier Hearth moved it
    wrong, theirs = tmp_path / "pics/creations", paths.home(tmp_path / "other").create()
    wrong.mkdir(parents=True)
    (theirs.root / other_disk.DATABASE).touch()
    for never in (theirs.root, tmp_path / "creations", tmp_path):
        with pytest.raises(Trouble, match="there is nothing that was in"):
            point_to(home.creations, never, lambda _: True)
    with pytest.raises(Trouble, match="there is nothing that was in"):
        point_to(home.creations, tmp_path / "F", lambda _: False)
    point_to(home.creations, tmp_path / "pics", lambda _: True)
    assert find_target(home.creations) == wrong
    point_to(home.creations, tmp_path / "F", lambda each: (each / "a.png").exists())
    assert (home.creations / "a.png").read_bytes() == b"a"


def test_a_kill_before_a_link_that_was_pointed_elsewhere_is_in_place_loses_nothing(tmp_path: Path) -> None:
    """Windows puts nothing in the place of a junction: for a moment only the hidden one is there."""
    home = paths.home(tmp_path / "home").create()
    (home.creations / "a.png").write_bytes(b"a")
    move(home.creations, tmp_path / "E/Hearth/creations")
    here = hidden(home.creations, "here")
    home.creations.rename(here)
    home.create()
    assert (home.creations / "a.png").read_bytes() == b"a" and not os.path.lexists(here)
    other_disk._link(tmp_path / "elsewhere", here)
    home.create()
    assert (home.creations / "a.png").read_bytes() == b"a" and not os.path.lexists(here)


def test_a_home_opens_while_a_disk_of_it_is_unplugged(tmp_path: Path) -> None:
    home = paths.home(tmp_path / "home").create()
    (home.creations / "a.png").write_bytes(b"a")
    move(home.creations, tmp_path / "disk/creations")
    (tmp_path / "disk").rename(tmp_path / "drawer")
    home.create()
    (tmp_path / "drawer").rename(tmp_path / "disk")
    assert (home.creations / "a.png").read_bytes() == b"a"


@pytest.mark.parametrize("way", ["go", "back"])
def test_a_kill_at_any_step_loses_nothing(tmp_path: Path, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_moves", str(tmp_path), way], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


def test_a_full_disk_leaves_all_as_it_was(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, target = both
    held, copy = read(folder), other_disk._copy

    def fill_up(file: Path, *rest: object) -> str:
        if file.name == "two":
            raise OSError(errno.ENOSPC, "No space left on device")
        return copy(file, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(other_disk, "_copy", fill_up)
    with pytest.raises(DiskFull, match="All is as it was"):
        move(folder, target)
    assert read(folder) == held and find_target(folder) is None and not [*target.parent.iterdir()]
    monkeypatch.setattr(other_disk, "SPARE_BYTES", 1 << 62)
    with pytest.raises(DiskFull, match="GB are free where it is to go"):
        move(folder, target)


def test_what_the_disk_writes_wrongly_is_noticed(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, target = both
    held = read(folder)

    def spoil(top: Path) -> None:
        (top / "blobs/two").write_bytes(b"3" * 5000)

    monkeypatch.setattr(other_disk, "_sync_folders", spoil)
    with pytest.raises(Trouble, match="reads differently"):
        move(folder, target)
    assert read(folder) == held and not target.exists()


def test_what_comes_and_changes_meanwhile_goes_along(both: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, target = both

    def write_more(_: Path) -> None:
        (folder / "came.png").write_bytes(b"new")
        (folder / "blobs/two").write_bytes(b"changed")
        (folder / "blobs/one").unlink()

    monkeypatch.setattr(other_disk, "_sync_folders", write_more)
    move(folder, target)
    assert (folder / "came.png").read_bytes() == b"new"
    assert {each.read_bytes() for each in (folder / "blobs").glob("two*")} == {b"2" * 5000, b"changed"}, "neither of both is lost"


def test_a_move_can_be_cancelled_and_what_is_there_already_is_left_alone(both: tuple[Path, Path]) -> None:
    folder, target = both
    held, halt = read(folder), threading.Event()
    halt.set()
    with pytest.raises(CancelledError):
        move(folder, target, halt=halt)
    assert read(folder) == held and not [*target.parent.iterdir()]
    target.mkdir()
    (target / "of others.txt").write_text("mine")
    with pytest.raises(Trouble, match="There is something"):
        move(folder, target)
    with pytest.raises(Trouble, match="There is something"):
        move(folder, folder / "inside")
    assert (target / "of others.txt").read_text() == "mine" and read(folder) == held


def test_what_lies_here_is_not_brought_back(both: tuple[Path, Path]) -> None:
    with pytest.raises(Trouble, match="does not lie on another disk"):
        bring_back(both[0])


def test_the_copy_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(both: tuple[Path, Path]) -> None:
    folder, _ = both
    dead, living = hidden(folder, "copying-4194999"), hidden(folder, f"copying-{os.getpid()}")
    dead.mkdir()
    living.mkdir()
    mend_all(folder.parent)
    assert not dead.exists() and living.exists()


@pytest.mark.parametrize(("holder", "stays"), [("Hearth", False), ("my own", True)])
def test_what_a_person_linked_to_is_not_deleted_with_the_link(tmp_path: Path, holder: str, stays: bool) -> None:
    """Only what a move put on the other disk goes with its place here."""
    there, folder = tmp_path / "disk" / holder / "models" / "models--a--b", tmp_path / "models--a--b"
    there.mkdir(parents=True)
    (there / "weights").write_text("w")
    folder.symlink_to(there, target_is_directory=True)
    other_disk.delete(folder)
    assert not os.path.lexists(folder) and (there / "weights").exists() == stays
