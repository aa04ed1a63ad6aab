"""Update code and environment together: make them beside the old ones, prove them, then swap; keep one step back.

Runs under any Python: the standard library and sentences.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from app.base.sentence import say
from app.base.trouble import Trouble
from app.launcher import failure, install, pip_command, slot_lock, slots
from app.launcher.console import Refused, tell
from app.launcher.slots import TOP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--back", action="store_true", help="undo the last update")


def main(args: argparse.Namespace) -> int:
    """Say who updates Hearth where there is no start.py, which carries the command out itself."""
    raise Trouble(say("update.pip", "Hearth was installed with pip, and pip updates it: {command}", command="pip install --upgrade hearth"))


def step(verb: str, folder: Path) -> int:
    """Carry out start.py's update, back or renew, which change the code that an open Hearth runs; with `renew` an update hands over to the
    newer code."""
    slot_lock.require_unused(*slots.both_slots(folder))
    return {"update": update, "back": back, "renew": renew}[verb](folder)


def update(folder: Path) -> int:
    before = slots.current_commit()
    old = slots.current_slot(folder)
    back_up(old)
    if not before:
        tell(say("update.no-clone", "This folder is not a git clone, so the code cannot be updated; checking the environment only."))
    elif not git("remote").stdout.strip():
        tell(say("update.no-remote", "This clone has no remote, so the code cannot be updated; checking the environment only."))
    else:
        pulled = git("pull", "--ff-only", "--quiet")
        if pulled.returncode:
            why = (pulled.stderr.strip().splitlines() or ["no message."])[-1]
            raise Refused(say("update.no-pull", "git could not fetch newer code: {why} Nothing was changed.", why=why))
    after = slots.current_commit()
    if after == before:
        tell(say("update.same", "The code is up to date."))
    else:
        tell(say("update.newer", "The code was updated from {before} to {after}.", before=before[:9], after=after[:9]))
    led_to = slots.read_way_back(folder)
    slots.write_way_back(
        folder, {"slot": old.name, "commit": before}
    )  # first: no start meanwhile may take the old environment for one that nobody needs
    failed = subprocess.call([sys.executable, str(TOP / "start.py"), "renew"])
    if failed or (after, slots.current_slot(folder)) == (before, old):
        slots.write_way_back(folder, led_to)
    if failed:
        if after != before:
            git("reset", "--keep", before)
        tell(say("update.undone", "The update failed its test and was undone; Hearth is as it was before."))
        return 1
    tell(say("update.done", "Up to date and tested. To undo the update: {hearth} back"))
    return 0


def back_up(slot: Path) -> None:
    """Copy the database before anything changes. Where that fails, the update goes on: it does not touch the database."""
    done = subprocess.run([slots.python_of(slot), "-I", "-X", "utf8", "-m", "app", "backup"], capture_output=True, text=True)
    if done.returncode:
        tell(
            say(
                "update.no-backup",
                "The database could not be backed up; the update goes on and does not touch it. {fault}",
                fault=failure.find_sentence(done.stderr),
            )
        )


def renew(folder: Path) -> int:
    want = slots.read_requirements()
    with slots.lock(folder):
        said = slots.read_stamp(slots.current_slot(folder))
        if said.get("digest") == want.digest:
            selftest(slots.current_slot(folder))
        else:
            install.renew(folder, want, selftest)
    return 0


def selftest(slot: Path) -> None:
    command: list[str | Path] = [slots.python_of(slot), "-I", "-X", "utf8", "-m", "app", "doctor", "--selftest"]
    pip_command.run(command, slot.parent / "install.log", say("start.selftest", "Running the self-test"))


def back(folder: Path) -> int:
    said = slots.read_way_back(folder)
    if not said:
        raise Refused(say("update.none", "There is no update to undo, or its old environment was deleted."))
    now, then = slots.current_slot(folder), folder / said["slot"]
    made = slots.read_stamp(then)
    if not made:
        raise Refused(
            say("update.damaged", "The environment from before the last update is damaged. Run {hearth} repair to make a new one.")
        )
    here = slots.current_commit()
    if said["commit"] and here != said["commit"]:
        moved = git("reset", "--keep", said["commit"])
        if moved.returncode:
            why = moved.stderr.strip()
            raise Refused(say("update.no-back", "The code could not go back: {why} Nothing was changed.", why=why))
    with slots.lock(folder):
        slots.write_stamp(then, **{**made, "held": slots.read_requirements().digest})
        slots.replace_text(folder / "current", then.name)
        slots.write_way_back(folder, {"slot": now.name, "commit": here})
    tell(say("update.back", "The last update is undone. Run the same command again to redo it."))
    return 0


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(TOP), *words], capture_output=True, text=True)
