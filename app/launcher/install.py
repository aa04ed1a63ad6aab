"""Keep the environment up to date: make or renew it where it does not serve, swap the slots, and add extras."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from app.base.duration import word_duration
from app.base.sentence import say
from app.launcher import slot_lock, slots
from app.launcher.console import Refused, tell
from app.launcher.new_environment import make_environment
from app.launcher.pip_command import pip_install
from app.launcher.slots import TOP, Requirements

BY_ITSELF = frozenset({"window"})
"""Every environment gets these extras. They are no dependencies: where one cannot be installed, Hearth works without it."""


def renew(folder: Path, want: Requirements, check: Callable[[Path], None] | None = None) -> Path:
    """Make a new environment in the other slot, check it, then swap. Call under the lock; the old slot stays."""
    new = make_beside(folder, want, (), check)
    slots.write_current(folder, new, slots.version_of())
    return new


def make_beside(folder: Path, want: Requirements, extras: Sequence[str], check: Callable[[Path], None] | None) -> Path:
    """Make a new environment in the other slot, with the extras of the old one and these, and check it. Call under the lock."""
    began = time.monotonic()
    old = slots.current_slot(folder)
    new = slots.other_slot(old) if slots.read_stamp(old) else old
    if new == old and old.exists():
        tell(say("start.interrupted", "An earlier installation was interrupted; starting it again."))
    slots.forget_ready(folder)
    if new.name in list_way_slots(folder):
        way = slots.read_way_back(folder)
        slots.write_way_back(folder, {} if way.get("slot") == new.name else way)
    make_environment(new, want)
    for name in sorted((slots.read_extras(slots.read_stamp(old)).keys() | BY_ITSELF) & want.extras.keys() - {"test", *extras}):
        try:
            add(new, want, name)
        except Refused as fault:
            tell(
                say("start.without", "{fault} Continuing without {name}; {hearth} add {name} tries again.", fault=fault.sentence, name=name)
            )
    for name in extras:
        add(new, want, name)
    if check:
        check(new)
    took = word_duration(time.monotonic() - began)
    tell(say("start.ready", "Ready after {time}. To add Hearth to your apps: {hearth} install-app", time=took))
    return new


def switch(folder: Path) -> None:
    """Make current what was made and tested beside an open Hearth; refuse while a process runs from an environment."""
    if not slots.read_ready(folder):
        return
    slot_lock.require_unused(*slots.both_slots(folder))
    with slots.lock_releases(folder, wait=False), slots.lock(folder, wait=False):
        said = slots.read_ready(folder)
        new, version = folder / said.get("slot", ""), said.get("version", "")
        before = (slots.current_slot(folder), slots.current_version(folder))
        if (
            slots.read_stamp(new)
            and (not version or (folder / slots.VERSIONS / version / "start.py").is_file())
            and (new, version) != before
        ):
            if said.get("undo"):
                slots.write_way_back(folder, {"slot": before[0].name, "commit": "", "version": before[1]})
            slots.write_current(folder, new, version)
        slots.forget_ready(folder)
        discard_versions(folder)


def discard_versions(folder: Path) -> None:
    """Remove releases that are neither current, nor about to be, nor the way back, and what of one was left half done. Call under the releases' lock."""
    ways = (each.get("version", "") for each in slots.read_ways(folder))
    keep = {slots.current_version(folder), slots.read_ready(folder).get("version", ""), *ways}
    for each in (folder / slots.VERSIONS).glob("*"):
        if each.name not in keep and each != TOP:
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)


def repair(folder: Path, want: Requirements) -> None:
    """Make the environment anew and remove the old one, unless a Hearth is open."""
    slot_lock.require_unused(*slots.both_slots(folder))
    with slots.lock(folder):
        renew(folder, want)
        slots.write_way_back(folder, {})
        discard_old(folder)


def discard_old(folder: Path) -> None:
    """Remove the environment that is neither used, nor about to be, nor the way back. Call under the lock; if a process runs from it, a later start does it."""
    old = slots.other_slot(slots.current_slot(folder))
    if old.is_dir() and old.name not in {*list_way_slots(folder), slots.read_ready(folder).get("slot")}:
        with suppress(Refused), slot_lock.emptied(old):
            shutil.rmtree(old, ignore_errors=True)


def list_way_slots(folder: Path) -> set[str | None]:
    """List the slots between which `back` leads."""
    return {each.get("slot") for each in slots.read_ways(folder)}


def add(slot: Path, want: Requirements, name: str) -> None:
    pip_install(slot, slot.parent / "install.log", say("start.adds", "Adding {name}", name=name), *want.extras[name])
    said = slots.read_stamp(slot)
    slots.write_stamp(slot, **{**said, "extras": {**slots.read_extras(said), name: list(want.extras[name])}})


def is_ready(folder: Path) -> bool:
    return slots.serves(slots.read_stamp(slots.current_slot(folder)), slots.read_requirements())


def ensure_ready(folder: Path, want: Requirements, *extras: str) -> Path:
    """Return the slot to run from, made or renewed if needed, with these extras in it."""
    slot = slots.current_slot(folder)
    said = slots.read_stamp(slot)

    def lacks() -> list[str]:
        return [each for each in extras if slots.read_extras(said).get(each) != list(want.extras.get(each, ()))]

    if slots.serves(said, want) and said.get("top") == str(TOP) and not lacks():
        if slots.other_slot(slot).is_dir():
            with suppress(Refused, OSError), slots.lock(folder, wait=False):
                discard_old(folder)
        return slot
    with slots.lock(folder):
        if slots.find_code(folder) != TOP:
            raise Refused(say("start.changed", "Hearth was updated meanwhile. Start it again."))
        slot = slots.current_slot(folder)
        said, other = slots.read_stamp(slot), slots.other_slot(slot)
        if not slots.serves(said, want) and other.name in list_way_slots(folder) and slots.serves(slots.read_stamp(other), want):
            slots.write_current(folder, other, slots.version_of())  # a clone's `back` was broken off between its code and its environment
            slot, said = other, slots.read_stamp(other)
        if not slots.serves(said, want):
            try:
                slot = renew(folder, want)
            except Refused as fault:
                if not said or extras:
                    raise
                tell(fault.sentence)
                tell(say("start.old", "This version of Hearth needs a newer environment; continuing with the old one, which may not work."))
                return slot
        said = slots.read_stamp(slot)
        for each in lacks():
            if slots.read_ready(folder).get("slot") != slot.name:
                slots.forget_ready(folder)  # what was made beside has it not, and is made anew when asked for
            add(slot, want, each)
        slots.write_stamp(slot, **slots.read_stamp(slot))
    return slot
