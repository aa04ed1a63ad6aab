"""Who runs from an environment: seen while it lives and no longer, on POSIX and by Windows' locks; and nothing is emptied under it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.__main__ import main
from app.base.commands import COMMANDS, STARTS
from app.engine.keeper import worker
from app.launcher import console, install, new_environment, slot_lock, slots, update
from app.machines import side_process
from app.window import process
from tests.support.places import TOP

WINDOWS = """
import fcntl, os, subprocess, sys, types, app.launcher.console
def locking(file, mode, length):
    fcntl.lockf(file, mode, length, os.lseek(file, 0, os.SEEK_CUR))
kinds = {"LK_LOCK": fcntl.LOCK_SH, "LK_NBLCK": fcntl.LOCK_EX | fcntl.LOCK_NB, "LK_UNLCK": fcntl.LOCK_UN}
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, **kinds)
sys.platform = "win32"
"""
"""The locks of Windows' module begin where the file stands."""
HOLD = """
import sys; from pathlib import Path; from app.launcher import slot_lock
slot_lock.hold(Path(sys.argv[1])); slot_lock.hold(Path(sys.argv[1]))
print("holds", flush=True); sys.stdin.read()
"""
THEN = """
import os, sys; from pathlib import Path; from app.launcher import slot_lock
slot_lock.hold(Path(sys.argv[1]))
os.execv(sys.executable, [sys.executable, "-c", "import sys; print('holds', flush=True); sys.stdin.read()"])
"""
ASK = """
import sys; from pathlib import Path; from app.launcher import console, slot_lock
try: slot_lock.require_unused(Path(sys.argv[1]))
except console.Refused as fault: print(fault)
"""
posix = pytest.mark.skipif(sys.platform == "win32", reason="fcntl")


@pytest.fixture
def slot(tmp_path: Path) -> Path:
    """An environment as far as its stamp goes; no other test's process runs from it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "hearth.json").write_text("{}")
    (tmp_path / "current").write_text("a")
    return tmp_path / "a"


def begin(code: str, slot: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", code, str(slot)], cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "holds\n"
    return child


def end(child: subprocess.Popen[str]) -> None:
    child.communicate(timeout=60)


def ask(slot: Path, before: str = "") -> str:
    return subprocess.run([sys.executable, "-c", before + ASK, str(slot)], cwd=TOP, capture_output=True, text=True, check=True).stdout


@posix
@pytest.mark.parametrize("system", ["", WINDOWS], ids=["posix", "windows"])
def test_everybody_who_runs_from_it_is_named_until_he_dies(system: str, slot: Path) -> None:
    assert ask(slot, system) == ""
    one, two = begin(system + HOLD, slot), begin(system + HOLD, slot)
    first, second = sorted((one.pid, two.pid))
    assert f"Hearth is open (processes {first}, {second})" in ask(slot, system)
    one.kill()
    one.wait()
    assert f"Hearth is open (process {two.pid})" in ask(slot, system)
    end(two)
    assert ask(slot, system) == ""
    assert one.stdin is not None and one.stdout is not None
    one.stdin.close()
    one.stdout.close()


@posix
def test_the_program_that_takes_a_holders_place_holds_on(slot: Path) -> None:
    child = begin(THEN, slot)
    with pytest.raises(console.Refused, match=str(child.pid)):
        slot_lock.require_unused(slot)
    end(child)
    slot_lock.require_unused(slot)


def test_on_a_disk_without_locks_all_goes_as_without_them(slot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: Any, **__: Any) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(slot_lock, "_lock", no_locks)
    slot_lock.hold(slot)
    slot_lock.require_unused(slot)


@posix
def test_on_a_disk_without_locks_an_environment_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: Any) -> None:
        raise OSError(37, "No locks available")

    with slots.lock(tmp_path), pytest.raises(console.Refused, match="Another start"), slots.lock(tmp_path, wait=False):
        pytest.fail("two make it at once")
    monkeypatch.setattr("fcntl.flock", no_locks)
    with slots.lock(tmp_path, wait=False):
        pass


@pytest.mark.parametrize("said", ["", "[1]", "3", "null"])
def test_a_damaged_way_back_leads_nowhere(said: str, tmp_path: Path) -> None:
    (tmp_path / "back").write_text(said)
    assert slots.read_way_back(tmp_path) == {}


def test_a_python_of_somebody_elses_leaves_no_file(tmp_path: Path) -> None:
    slot_lock.hold(tmp_path / "a")
    assert not list(tmp_path.iterdir())


DEEDS: dict[str, Callable[[Path], object]] = {
    "repair": lambda folder: install.repair(folder, slots.read_requirements()),
    **{verb: partial(update.step, verb) for verb in ("update", "back", "renew")},
    "a new environment": lambda folder: new_environment.make_empty(folder / "a", folder / "log"),
}


@posix
@pytest.mark.parametrize("deed", DEEDS)
def test_nothing_is_done_while_a_hearth_is_open(deed: str, slot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "call", lambda *_: pytest.fail("something was run"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("something was run"))
    child = begin(HOLD, slot)
    with pytest.raises(console.Refused, match=rf"Hearth is open \(process {child.pid}\).*Close it.*Nothing was changed"):
        DEEDS[deed](slot.parent)
    assert (slot / "hearth.json").is_file() and not (slot.parent / "log").exists() and slots.current_slot(slot.parent) == slot
    end(child)


def test_the_environment_that_start_py_itself_runs_from_stays(slot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(slot))
    with pytest.raises(console.Refused, match="Run the same with the system's Python"):
        new_environment.make_empty(slot, slot.parent / "log")
    (slot.parent / "current").write_text("b")
    install.discard_old(slot.parent)
    assert (slot / "hearth.json").is_file()


@posix
def test_an_old_environment_goes_once_nobody_uses_it(slot: Path) -> None:
    """Neither is what `back` leads to taken away, nor what a process runs from."""
    folder = slot.parent
    install.discard_old(folder)
    assert slot.is_dir(), "the current one"
    (folder / "current").write_text("b")
    slots.write_way_back(folder, {"slot": "a", "commit": ""})
    install.discard_old(folder)
    assert slot.is_dir(), "the way back"
    slots.write_way_back(folder, {})
    child = begin(HOLD, slot)
    install.discard_old(folder)
    assert (slot / "hearth.json").is_file(), "in use"
    end(child)
    install.discard_old(folder)
    assert not slot.exists()


class HeldFirst(Exception):
    """The first thing that a process does."""


@pytest.mark.parametrize(
    "begun",
    [
        lambda: main(["doctor"]),
        lambda: worker.main(*[None] * 4),  # type: ignore[arg-type]
        lambda: side_process.run(*[None] * 4),  # type: ignore[arg-type]
        process.main,
    ],
    ids=["command", "engine", "machines", "window"],
)
def test_every_process_of_hearths_holds_its_environment(begun: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    def hold() -> None:
        raise HeldFirst

    monkeypatch.setattr(slot_lock, "hold", hold)
    with pytest.raises(HeldFirst):
        begun()


def test_help_lists_all_that_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0 and all(re.search(rf"^    {name}\b", told, re.MULTILINE) for name in (*STARTS, *COMMANDS)), told


def test_what_start_py_does_itself_is_passed_on_to_it_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_lock, "hold", lambda: pytest.fail("an update would wait for its own end"))
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda command: commands.append(command) or 5)
    assert main(["update", "--back"]) == 5 and commands == [[sys.executable, str(TOP / "start.py"), "update", "--back"]]
