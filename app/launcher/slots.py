"""Find the environment's two slots and the versions of the code, read and write their stamps, and lock them.

There are two slots, `a` and `b`, and a file that names the current one and, after an update by a release, the current version of the
code, which lies beside them. An environment is never moved, and neither is replaced by one that has not passed its test.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.base.sentence import say
from app.launcher.console import WINDOWS, Refused, tell
from app.launcher.slot_lock import HELD

TOP = Path(__file__).resolve().parents[2]
FORMAT = 1  # of an environment; increase it to have all older ones rebuilt
VERSIONS = "versions"  # the folder of the releases, each in one of its name
CODE_VARIABLE = "HEARTH_CODE"
"""An environment runs the code that this variable names instead of its own: that of a release while it is tested."""
# What a note of the way back says of a place; `leads` is for one that still leads back, behind an update that has only begun.
WAY = {
    "slot": re.compile("[ab]"), "commit": re.compile("[0-9a-f]*"), "version": re.compile(r"(\w[\w.+-]*)?"), "leads": re.compile("back"),
}  # fmt: skip
# Longest path of a folder on Windows without long paths; longest path inside a slot.
LONGEST, DEEPEST = 247, 183


@dataclass(frozen=True, slots=True)
class Requirements:
    core: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    torch: str
    digest: str


def read_requirements(top: Path = TOP) -> Requirements:
    project = tomllib.loads((top / "pyproject.toml").read_text("utf-8"))["project"]
    pins = (top / "constraints.txt").read_text("utf-8")
    torch = re.search(r"^torch==(\S+)", pins, re.MULTILINE)
    core = tuple(project["dependencies"])
    extras = {name: tuple(packages) for name, packages in project["optional-dependencies"].items()}
    digest = hashlib.sha256(json.dumps([FORMAT, core, pins.splitlines()]).encode()).hexdigest()[:16]
    return Requirements(core, extras, torch[1] if torch else "", digest)


def python_of(slot: Path) -> Path:
    return slot / ("Scripts/python.exe" if WINDOWS else "bin/python")


def read_stamp(slot: Path) -> dict[str, object]:
    """Read the stamp, which is written last; return {} if the environment is unfinished or its Python is gone."""
    try:
        base = re.search(r"^home = (.*)$", (slot / "pyvenv.cfg").read_text("utf-8"), re.MULTILINE)
    except (OSError, ValueError):
        return {}
    there = base and Path(base[1].strip()).is_dir() and python_of(slot).exists()
    return _read_table(slot / "hearth.json") if there else {}


def _read_table(file: Path) -> dict[str, Any]:
    """Read a table from a JSON file; {} if there is none, or it is damaged."""
    try:
        said = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def serves(said: Mapping[str, object], want: Requirements) -> bool:
    """Return whether an environment meets the requirements. `held` is a second digest it may serve, set by `back`."""
    return bool(said) and want.digest in (said.get("digest"), said.get("held"))


def read_extras(said: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the extras of an environment, by name."""
    had = said.get("extras")
    return dict(had) if isinstance(had, dict) else {}


def replace_text(file: Path, text: str) -> None:
    """Write a file atomically, with the standard library only."""
    half = file.with_name(file.name + ".half")
    half.write_text(text, "utf-8")
    half.replace(file)


def write_stamp(slot: Path, **what: object) -> None:
    """Write the stamp, and the path to this code in ASCII, because a .pth is read in the system's encoding."""
    packages = next(slot.glob("Lib/site-packages" if WINDOWS else "lib/python*/site-packages"))
    replace_text(packages / "hearth.pth", f"import os, sys; sys.path.insert(0, os.environ.get({CODE_VARIABLE!r}, {str(TOP)!a}))\n")
    replace_text(slot / "hearth.json", json.dumps({**what, "top": str(TOP)}, indent=1))


def current_commit() -> str:
    """Return the checked-out commit, or "" without git or a clone."""
    if not (TOP / ".git").exists() or not shutil.which("git"):
        return ""
    return subprocess.run(["git", "-C", str(TOP), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def data_folder() -> Path:
    """Return the data folder as app.base.paths does, without its packages."""
    if os.environ.get("HEARTH_HOME"):
        return Path(os.path.expanduser(os.environ["HEARTH_HOME"])).resolve()  # noqa: PTH111 - of an account that is not, it says nothing
    if WINDOWS:
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "Hearth"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/Hearth"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "Hearth"


def allows_long_paths() -> bool:
    """Return whether this Windows allows long paths."""
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SYSTEM\CurrentControlSet\Control\FileSystem") as key:  # type: ignore[attr-defined, unused-ignore]
            return bool(winreg.QueryValueEx(key, "LongPathsEnabled")[0])  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return False


def is_too_deep(folder: Path) -> bool:
    return WINDOWS and len(str(folder)) + DEEPEST > LONGEST and not allows_long_paths()


def _list_folders(top: Path) -> tuple[Path, Path]:
    """List where the two slots may be: in the checkout, or in the user's data."""
    return top / ".venv", data_folder() / f"environment-{hashlib.sha256(os.fsencode(top)).hexdigest()[:8]}"


def find_made(top: Path = TOP) -> Path | None:
    """Find the folder of the two slots without making anything; None: there is none yet."""
    if os.environ.get("HEARTH_ENV"):
        return Path(os.environ["HEARTH_ENV"]).expanduser().resolve()
    if _is_release(top):
        return top.parent.parent
    return next((folder for folder in _list_folders(top) if (folder / "current").is_file()), None)


def find_folder(top: Path = TOP) -> Path:
    """Find the folder of the two slots: in the checkout, or in the user's data if the checkout is read-only or its path too long."""
    if (made := find_made(top)) is not None:
        return made
    here, there = _list_folders(top)
    if is_too_deep(here):
        if is_too_deep(there):
            raise Refused(
                say(
                    "start.deep",
                    "Hearth's environment would be in {folder}, where paths inside it become longer than Windows allows. "
                    "Move Hearth to a shorter folder, such as C:\\Hearth, and start again.",
                    folder=str(here),
                )
            )
        there.mkdir(parents=True, exist_ok=True)
        return there
    try:
        here.mkdir(exist_ok=True)
        (here / "lock").touch()  # never replaced: another start may hold it
    except OSError:
        there.mkdir(parents=True, exist_ok=True)
        return there
    return here


def _is_release(top: Path) -> bool:
    """Tell whether this code came by an update, and lies beside the slots."""
    return top.parent.name == VERSIONS and (top.parent.parent / "current").is_file()


def find_place(top: Path = TOP) -> Path:
    """Find the folder that the owner downloaded and starts Hearth from; its code may be older than what runs."""
    if not _is_release(top):
        return top
    try:
        return Path((top.parent.parent / "place").read_text("utf-8"))
    except OSError:  # as usual, when the slots lie in it
        return top.parent.parent.parent


def _read_current(folder: Path) -> tuple[str, str]:
    """Read the names of the current slot and of the current version, which is "" for the code that the owner downloaded."""
    try:
        slot, _, version = (folder / "current").read_text("utf-8").strip().partition(" ")
    except OSError:
        slot, version = "", ""
    return "b" if slot == "b" else "a", version


def current_slot(folder: Path) -> Path:
    return folder / _read_current(folder)[0]


def current_version(folder: Path) -> str:
    """Return the release whose code is current; "" where that is what the owner downloaded, also where the release's folder is gone."""
    version = _read_current(folder)[1]
    return version if version and (folder / VERSIONS / version / "start.py").is_file() else ""


def find_code(folder: Path, top: Path = TOP) -> Path:
    """Find the current code."""
    version = current_version(folder)
    return folder / VERSIONS / version if version else find_place(top)


def version_of(top: Path = TOP) -> str:
    """Return the name of a release's folder; "" for the code that the owner downloaded."""
    return top.name if _is_release(top) else ""


def write_current(folder: Path, slot: Path, version: str) -> None:
    """Make an environment and the code that was tested with it the current ones, in one step."""
    replace_text(folder / "current", f"{slot.name} {version}".strip())


def other_slot(slot: Path) -> Path:
    return slot.with_name("a" if slot.name == "b" else "b")


def both_slots(folder: Path) -> tuple[Path, Path]:
    return folder / "a", folder / "b"


def read_ways(folder: Path) -> list[dict[str, str]]:
    """Return the slot, the commit and the version from before the last update, then, where it was undone, those that it had led to; none if there
    was no update, or its environment was removed."""
    said = _read_table(folder / "back")
    way, after = _read_way(said), _read_way(said.get("after"))
    if way and said.get("forward"):  # an older Hearth undid its update, and noted only where that had led
        way, after = {"slot": current_slot(folder).name, "commit": current_commit(), "version": current_version(folder)}, way
    return [way, after] if way and after else [way] if way else []


def _read_way(said: object) -> dict[str, str]:
    """Return one place of a note; {} where it is damaged: no start may fail by it, or take what it says for a path."""
    way = {name: said[name] for name in WAY if name in said} if isinstance(said, dict) else {}
    fits = "slot" in way and all(isinstance(value, str) and WAY[name].fullmatch(value) for name, value in way.items())
    return way if fits else {}


def read_way_back(folder: Path) -> dict[str, str]:
    """Return where `back` leads, from before the last update to after it or the other way round; {} if nowhere."""
    ways: list[dict[str, str]] = [*read_ways(folder), {}, {}]
    return ways[_is_current(folder, ways[0])]


def leads_back(folder: Path) -> bool:
    """Return whether the last update can be undone: once it is, `back` leads forward again."""
    way = read_way_back(folder)
    return bool(way) and (way == read_ways(folder)[0] or "leads" in way)


def _is_current(folder: Path, way: Mapping[str, str]) -> bool:
    here = (current_slot(folder).name, current_version(folder))
    return here == (way.get("slot"), way.get("version", "")) and way.get("commit") in (None, "", current_commit())


def write_way_back(folder: Path, before: Mapping[str, str], after: Mapping[str, str] | None = None) -> None:
    """Write between which two places `back` leads, or with {} that it leads nowhere. Which of them is current, the swap alone decides: so a kill before it
    or after it leaves nothing to mend."""
    if before:
        replace_text(folder / "back", json.dumps({**before, "after": after} if after else before))
    else:
        (folder / "back").unlink(missing_ok=True)


def read_ready(folder: Path) -> dict[str, str]:
    """Return what was made and tested beside an open Hearth and becomes current at the next start: `slot`, `version`, and `undo`,
    which is "yes" where `back` is to lead away from it; {} if there is nothing."""
    return _read_table(folder / "ready")


def write_ready(folder: Path, slot: Path, version: str, undo: bool) -> None:
    replace_text(folder / "ready", json.dumps({"slot": slot.name, "version": version, "undo": "yes" if undo else ""}))


def forget_ready(folder: Path) -> None:
    (folder / "ready").unlink(missing_ok=True)


def lock_releases(folder: Path, wait: bool = True) -> contextlib.AbstractContextManager[int]:
    """Let one process at a time fetch, test or discard releases; while it tests one, that one's own code holds the other lock."""
    return lock(folder, wait, "releases")


@contextlib.contextmanager
def lock(folder: Path, wait: bool = True, name: str = "lock") -> Iterator[int]:
    """Let one process at a time make an environment; wait for another, or be refused. The system frees the lock if its holder dies, on POSIX with
    every process that it left the file open to."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a+b") as file:
        waited = False
        while True:
            try:
                if WINDOWS:
                    import msvcrt

                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
                else:
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as fault:
                if fault.errno not in HELD:  # a disk without locks
                    break
                waits = say("start.waits", "Another start of Hearth is making the environment; waiting for it.")
                if not wait:
                    raise Refused(waits) from None
                if not waited:
                    tell(waits)
                waited = True
                time.sleep(0.3)
        yield file.fileno()
