"""Carry out a start.py command: make, renew or update the environment, or run Hearth in it."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from collections.abc import Sequence

from app.commands import COMMANDS
from app.launcher import install, slots, supervisor, update
from app.launcher.console import WINDOWS, Refused, tell
from app.sentence import say

# Options for the whole test suite, of which a third waits for browsers and processes; named tests run serially and may print.
ALL_TESTS = ("-n", "4", "--dist", "loadfile")
TESTS = {(): ALL_TESTS, ("fast",): ("--fast", *ALL_TESTS)}

OWN = ("add", "back", "renew", "repair", "test", "update")
"""Commands that are carried out here; app/commands.py holds Hearth's."""


def run_command(command: Sequence[str]) -> int:
    """Replace this process by the command; on Windows, which cannot do that, wait for it."""
    if not WINDOWS:
        os.execv(command[0], list(command))
    child = subprocess.Popen(command)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child gets it too and reports how it ends
            continue


def refuse_unknown(verb: str) -> None:
    """Refuse a mistyped command before making the environment, which takes minutes."""
    known = sorted({*OWN, *COMMANDS})
    if verb not in known:
        near = tuple(difflib.get_close_matches(verb, known))
        if near:
            raise Refused(say("start.near-command", 'There is no command "{name}". Similar ones: {near}.', name=verb, near=near))
        raise Refused(say("start.no-command", 'There is no command "{name}", only these: {known}.', name=verb, known=tuple(known)))


def main(words: Sequence[str], help_text: str) -> int:
    verb = words[0] if words else ""
    try:
        folder = slots.find_folder()
        if verb in ("update", "back", "renew"):
            return update.step(verb, folder)
        if verb in ("", "open") or (verb.startswith("-") and verb not in ("-h", "--help", "--version")):
            return supervisor.run_window(words, folder)
        if not verb.startswith("-"):
            refuse_unknown(verb)
        want = slots.read_requirements()
        if verb in ("-h", "--help") and not slots.serves(slots.read_stamp(slots.current_slot(folder)), want):
            print(help_text)  # the commands' own help needs the environment
            return 0
        if verb == "repair":
            with slots.lock(folder):
                shutil.rmtree(slots.other_slot(install.renew(folder, want)), ignore_errors=True)
            return 0
        extras = {"add": words[1:], "test": ["test"]}.get(verb, [])
        if verb == "add" and (not extras or not want.extras.keys() >= set(extras)):
            raise Refused(say("start.extras", "start.py add takes one or more of: {names}.", names=tuple(sorted(want.extras))))
        python = str(slots.python_of(install.ensure_ready(folder, want, *extras)))
        if verb == "add":
            tell(say("start.added", "Installed: {names}. Restart Hearth to use it.", names=tuple(extras)))
            return 0
        if verb == "test":
            os.chdir(slots.TOP)
            return run_command([python, "-m", "pytest", *TESTS.get(tuple(words[1:]), words[1:])])
        return run_command([python, "-I", "-X", "utf8", "-m", "app", *words])
    except Refused as fault:
        tell(fault.sentence, before="hearth: ")
        return 2
    except KeyboardInterrupt:
        tell(say("start.stopped", "Stopped. Start again to continue."), before="\n")
        return 130
