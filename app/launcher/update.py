"""Update code and environment together: make them beside the old ones, prove them, then swap; keep one step back.

A git clone is updated by git and in its place. Any other copy gets a release in a folder of its own, which makes and tests an environment
for itself and notes that it is ready; what runs is left alone, so the window can have this done while it is open (`prepare`). The next
start swaps (`install.switch`). Runs under any Python: the standard library and sentences.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from app.base.languages import word_help
from app.base.sentence import say
from app.base.trouble import Trouble
from app.launcher import failure, install, pip_command, releases, slot_lock, slots
from app.launcher.broken_pull import git, pull
from app.launcher.console import Refused, tell
from app.launcher.slots import TOP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--back", action="store_true", help=word_help(say("usage.update-back", "undo the last update")))


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
    led_to, other = slots.read_ways(folder), slots.read_stamp(slots.other_slot(old))
    way = {"slot": old.name, "commit": before, "version": slots.version_of()}
    back_up(old)
    if not before:
        code = prepare_release(folder)
        if code is not None:
            return code or take_ready(folder)
    elif not git("remote").stdout.strip():
        raise Refused(
            say(
                "update.no-remote",
                "This clone has no remote to get newer code from. Add one (git remote add origin ADDRESS). Nothing was changed.",
            )
        )
    else:
        earlier = slots.read_way_back(folder) | ({"leads": "back"} if slots.leads_back(folder) else {})
        slots.write_way_back(folder, way, earlier)  # first: one killed after the pull is led back, too
        pulled = pull(folder)
        if pulled.returncode:
            slots.write_way_back(folder, *led_to or [{}])
            why = find_reason(pulled.stderr)
            raise Refused(say("update.no-pull", "git could not fetch newer code: {why} Nothing was changed.", why=why))
    after = slots.current_commit()
    if after == before:
        tell(say("update.same", "The code is up to date."))
    else:
        tell(say("update.newer", "The code was updated from {before} to {after}.", before=before[:9], after=after[:9]))
    changes = after != before or slots.read_stamp(old).get("digest") != slots.read_requirements().digest
    # No start meanwhile may take an environment that is led to for one that nobody needs.
    slots.write_way_back(folder, *[way] if changes else led_to or [{}])
    failed = subprocess.call([sys.executable, str(TOP / "start.py"), "renew"])
    if failed:
        if after != before:
            git("reset", "--keep", before)  # before it is forgotten where it was
        lost = slots.read_stamp(slots.other_slot(old)) != other and slots.other_slot(old).name in {each.get("slot") for each in led_to}
        slots.write_way_back(folder, *([{}] if lost else led_to or [{}]))
        tell(say("update.undone", "The update failed its test and was undone; Hearth is as it was before."))
        return 1
    tell(say("update.done", "Up to date and tested. To undo the update: {hearth} back"))
    return 0


def find_reason(said: str) -> str:
    """Find why git refused, with the files that it names; its last lines say what to do in words of git's."""
    found = re.search(r"^(?:fatal|error): (.*(?:\n\t.*)*)", said, re.MULTILINE)
    return " ".join((found[1] if found else said or "no message").split()).rstrip(".") + "."


def prepare(words: Sequence[str], folder: Path) -> int:
    """Carry out start.py's prepare: make and test beside an open Hearth what the next start takes."""
    match [*words]:
        case ["update"]:
            back_up(slots.current_slot(folder))
            if (code := prepare_release(folder)) is not None:
                return code
            raise Refused(say("update.nothing", "There is nothing newer any more. Nothing was changed."))
        case ["environment", *extras] if slots.read_requirements().extras.keys() >= set(extras):
            return prepare_environment(folder, extras)
    raise Refused(
        say("start.no-words", "{hearth} {command} takes no other words ({words}). Nothing was done.", command="prepare", words=tuple(words))
    )


def prepare_release(folder: Path) -> int | None:
    """Fetch a newer release and have it make and test its environment; return the exit code of that, None where this one is as new."""
    with slots.lock_releases(folder):
        offer = releases.find_newer()
        if offer is None:
            return None
        code = releases.fetch(offer, folder)
        if folder != slots.find_place() / ".venv":
            slots.replace_text(folder / "place", str(slots.find_place()))
        failed = subprocess.call([sys.executable, str(code / "start.py"), "prepare", "environment"])
        if failed:
            install.discard_versions(folder)
            tell(say("update.undone", "The update failed its test and was undone; Hearth is as it was before."))
    return 1 if failed else 0


def take_ready(folder: Path) -> int:
    try:
        install.switch(folder)
    except Refused:
        tell(say("update.ready", "The new version is ready and tested. The next start of Hearth takes it, once no other one is open."))
    else:
        tell(say("update.done", "Up to date and tested. To undo the update: {hearth} back"))
    return 0


def prepare_environment(folder: Path, extras: Sequence[str]) -> int:
    """Make an environment for this code in the other slot, with these extras too, and test it; where the one there is serves, test that."""
    want, version = slots.read_requirements(), slots.version_of()
    os.environ[slots.CODE_VARIABLE] = str(TOP)
    with slots.lock(folder):
        slot, update = slots.current_slot(folder), version != slots.current_version(folder)
        ready = slots.read_ready(folder)
        if not extras and (not update or ready.get("version") == version):  # another update did it meanwhile
            return 0
        made = slots.read_stamp(folder / ready.get("slot", ""))
        if not extras and slots.read_stamp(slot).get("digest") == want.digest:
            selftest(slot)
        elif not update and made.get("digest") == want.digest and ready["slot"] != slot.name:  # one more, into what nobody runs yet
            slot = folder / ready["slot"]
            slots.forget_ready(folder)
            for name in extras:
                install.add(slot, want, name)
            selftest(slot)
        else:
            slot = install.make_beside(folder, want, extras, selftest)
        slots.write_ready(folder, slot, version, undo=update)
    return 0


def back_up(slot: Path) -> None:
    """Copy the database before anything changes. Where that fails, the update goes on: it does not touch the database."""
    command = [str(slots.python_of(slot)), "-I", "-X", "utf8", "-m", "app", "backup"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
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
    here, version = slots.current_commit(), said.get("version", "")
    code = folder / slots.VERSIONS / version if version else slots.find_place()
    if not (code / "start.py").is_file():
        raise Refused(say("update.gone", "The code from before the last update is gone, so there is no way back."))
    with slots.lock(folder):
        left = {"slot": now.name, "commit": here, "version": slots.version_of()}
        slots.write_way_back(folder, *((said, left) if slots.leads_back(folder) else (left, said)))
        if said.get("commit") and here != said["commit"]:
            moved = git("reset", "--keep", said["commit"])
            if moved.returncode:
                why = moved.stderr.strip()
                raise Refused(say("update.no-back", "The code could not go back: {why} Nothing was changed.", why=why))
        slots.forget_ready(folder)
        slots.write_stamp(then, **{**made, "held": slots.read_requirements(code).digest})
        slots.write_current(folder, then, version)
    tell(say("update.back", "The last update is undone. Run the same command again to redo it."))
    return 0
