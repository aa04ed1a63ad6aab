"""Updates that bring an environment of their own, and the ways back from them, killed at every step: one Hearth always works, and the next try completes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.launcher import slots
from tests.support.killed_updates import Copy, needs_groups
from tests.support.release_server import make_release, serve

pytestmark = [pytest.mark.long, needs_groups]

OLD, NEW = ("0.1.0", "a"), ("0.2.0", "b")
TEXTS = {'"words"': '"new"', "small==1.0": "small==2.0"}
DYING_GIT = """import os, pathlib, signal, subprocess, sys
if "merge" in sys.argv:
    top = pathlib.Path(sys.argv[sys.argv.index("-C") + 1])
    (top / ".git/index.lock").touch()
    (top / "constraints.txt").unlink()
    (top / "app/moved.py").unlink()
    newer = subprocess.check_output([{git!r}, "-C", top, "show", "origin/main:app/__main__.py"])
    (top / "app/__main__.py").write_bytes(newer[:-9])
    (top / "app/new.py").write_text("# One th")
    if os.environ.get("HEARD"):
        (top / ".git/index.lock").unlink()
    os.killpg(0, signal.SIGKILL)
os.execv({git!r}, ["git", *sys.argv[1:]])
"""
"""It is killed while it writes what it fetched, as by a power cut, or by a signal that git hears and takes its lock away."""
EVERY = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    """Version 0.2.0 wants another environment than 0.1.0."""
    folder = tmp_path_factory.mktemp("copy")
    copy = Copy(folder)
    copy.make_light()
    with serve() as server:
        copy.believe_in(server)
        server.offer(make_release(copy.top, "0.2.0", folder / "out", TEXTS))
        yield copy


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """One whose next commit wants another environment."""
    folder = tmp_path_factory.mktemp("clone")
    copy = Copy(folder)
    copy.make_light()
    origin = copy.top.rename(folder / "origin")
    (origin / ".gitignore").write_text("/.venv/\n__pycache__/\n")
    (origin / "app/moved.py").write_text("# One that the next commit calls otherwise.\n")
    copy.git("init", "-q", "-b", "main", at=origin)
    copy.git("add", ".", at=origin)
    copy.git("commit", "-q", "-m", "one", at=origin)
    copy.git("tag", "one", at=origin)
    copy.git("clone", "-q", str(origin), str(copy.top), at=folder)
    copy.make_first()
    for file in (origin / "app/__main__.py", origin / "constraints.txt"):
        text = file.read_text("utf-8")
        for old, new in TEXTS.items():
            text = text.replace(old, new)
        file.write_text(text, "utf-8")
    (origin / "app/moved.py").rename(origin / "app/new.py")
    copy.git("add", "--all", at=origin)
    copy.git("commit", "-q", "-m", "two", at=origin)
    return copy


@pytest.fixture(scope="module", params=["made", pytest.param("clone", marks=pytest.mark.slow)])
def copy(request: pytest.FixtureRequest) -> Copy:
    found: Copy = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def updated(copy: Copy) -> Copy:
    if copy.look() != NEW:
        copy.forget()
        done = copy.start("update")
        assert done.returncode == 0 and copy.look() == NEW, done.stderr
    return copy


def look(copy: Copy) -> tuple[str, str]:
    """Start Hearth; its window offers the version before where that is another than the one that answered."""
    now = copy.look()
    assert now in (OLD, NEW)
    assert (copy.packages / "small-2.0.dist-info").is_dir() is (now == NEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "TOP", copy.top)  # a clone's commit is asked there
        assert slots.leads_back(copy.top / ".venv") is (now == NEW)
    return now


def update_killed(copy: Copy, at: str, before: str) -> bool:
    copy.forget()
    if not copy.kill(at, before):
        return False
    look(copy)
    again = copy.start("update")
    assert again.returncode == 0, again.stderr
    opened = copy.start("--browser")  # which takes what the killed one left ready
    assert "new" in json.loads(opened.stdout), opened.stderr
    assert look(copy) == NEW
    assert {each.name for each in copy.top.glob(".venv/versions/*")} <= {"0.2.0"}, "and leaves nothing half done"
    assert copy.start("back").returncode == 0 and look(copy) == OLD, "the way back is that from before it"
    return True


def go_killed(copy: Copy, at: str, before: str, there: tuple[str, str], pressed: bool = False) -> bool:
    """Kill the way back, or forward again, to `there`."""
    if copy.look() == there:
        assert copy.start("back").returncode == 0
    killed = copy.kill(at, before, "back", pressed=pressed)
    if look(copy) != there:
        assert copy.start("back").returncode == 0
    assert look(copy) == there
    for each in ({OLD: NEW, NEW: OLD}[there], there):
        done = copy.start("back")
        assert done.returncode == 0 and look(copy) == each and "Making" not in done.stderr, "both environments are there"
    return killed


@pytest.mark.parametrize("at", ["parent:3", pytest.param("child:3", marks=pytest.mark.slow)])
def test_one_that_brings_an_environment_is_killed_before_it_puts_that_in_its_place(at: str, made: Copy) -> None:
    """The note that it is ready, and the swap."""
    assert update_killed(made, at, "rename")


@pytest.mark.parametrize("part", [pytest.param(each, marks=EVERY) for each in ("parent", "child")])
def test_one_that_brings_an_environment_is_killed_before_any_change(part: str, copy: Copy) -> None:
    steps = 1
    while update_killed(copy, f"{part}:{steps}", "unpacked"):
        steps += 1
    assert steps > 5, steps


@pytest.mark.parametrize(("at", "pressed"), [pytest.param("parent:1", False, marks=pytest.mark.slow), ("parent:4", True)])
def test_the_way_back_is_killed_before_it_is_written_and_before_the_swap(at: str, pressed: bool, updated: Copy) -> None:
    """Also that of the window's button."""
    assert go_killed(updated, at, "rename", OLD, pressed)


@pytest.mark.parametrize("there", [pytest.param(each, marks=EVERY) for each in (OLD, NEW)])
def test_the_way_back_is_killed_before_any_change(there: tuple[str, str], updated: Copy) -> None:
    steps = 1
    while go_killed(updated, f"parent:{steps}", "any", there):
        steps += 1
    assert steps > 5, steps


@pytest.mark.parametrize("heard", ["1", pytest.param("", marks=pytest.mark.slow)])
def test_one_that_is_killed_while_git_writes_leaves_one_that_works(heard: str, clone: Copy, tmp_path: Path) -> None:
    """Neither the older nor the newer code was there then, and no git came past the lock that it had left. A file that is new kept all others
    from being mended, one that was called otherwise stayed away, and without the lock nothing was mended."""
    clone.forget()
    git = tmp_path / "git"
    script = tmp_path / "git.py"
    script.write_text(DYING_GIT.format(git=shutil.which("git")))
    git.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -SE {shlex.quote(str(script))} "$@"\n')
    git.chmod(0o755)
    mine = clone.top / "app/base/palette.py"
    changed = mine.read_text("utf-8") + "# mine\n"
    mine.write_text(changed, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(clone.env, "PATH", f"{tmp_path}{os.pathsep}{clone.env['PATH']}")
        patch.setitem(clone.env, "HEARD", heard)
        assert clone.kill("", "any")
    assert look(clone) == OLD and mine.read_text("utf-8") == changed
    assert clone.git("status", "--porcelain").split() == ["M", "app/base/palette.py"], "the rest is as it was"
    again = clone.start("update")
    assert again.returncode == 0 and look(clone) == NEW, again.stderr
    assert clone.start("back").returncode == 0 and look(clone) == OLD and mine.read_text("utf-8") == changed


def test_what_the_owner_changed_after_a_pull_was_killed_stays(clone: Copy) -> None:
    """It had only fetched. A commit that the owner was writing then was taken for its half, and files that it had not touched were put back."""
    clone.forget()
    clone.git("fetch", "-q")
    (clone.top / ".venv/pulling").touch()
    lock, mine = clone.top / ".git/index.lock", clone.top / "app/__main__.py"
    lock.write_text("the index of a commit under way")
    changed = mine.read_text("utf-8") + "# mine\n"
    mine.write_text(changed, "utf-8")
    assert look(clone) == OLD and mine.read_text("utf-8") == changed and lock.exists()
    assert not (clone.top / ".venv/pulling").exists()
    lock.unlink()
    clone.forget()


def test_why_git_refuses_is_said_with_the_file(clone: Copy) -> None:
    """Its last line was: remove the file manually to continue."""
    clone.forget()
    lock = clone.top / ".git/index.lock"
    lock.touch()
    refused = clone.start("update")
    lock.unlink()
    assert refused.returncode == 2 and "index.lock': File exists. Nothing was changed." in refused.stderr
    file = clone.top / "constraints.txt"
    file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    refused = clone.start("update")
    assert refused.returncode == 2 and "overwritten by merge: constraints.txt. Nothing was changed." in refused.stderr
    clone.forget()
