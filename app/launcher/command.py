"""Carry out a start.py command: make, renew or update the environment, or run Hearth in it."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile

from app.base.commands import COMMANDS, STARTS, WORDS
from app.base.languages import in_terminal
from app.base.sentence import Sentence, say
from app.base.start_command import name_command
from app.base.terminal_lines import pad, wrap
from app.launcher import checks, install, slot_lock, slots, supervisor, update
from app.launcher.console import Refused, tell
from app.launcher.supervisor import run_command

RENEW = "renew"
"""start.py alone asks for this second half of an update."""
PREPARE = "prepare"
"""The window has this done beside itself, and an update by its release's own code: `prepare update`, `prepare environment NAME ...`."""
OWN = {**STARTS, **dict.fromkeys((RENEW, PREPARE), say("usage.second-half", "the second half of an update, for start.py alone"))}
"""The launcher carries out these commands itself; app/base/commands.py holds Hearth's."""
TAKES = {"add": " NAME ...", "test": " ..."}
WIDTH = 100
"""The help's lines take so many places at most."""


def refuse_unknown(verb: str) -> None:
    """Refuse a mistyped command before making the environment, which takes minutes."""
    known = sorted({*STARTS, *COMMANDS})
    if verb not in {*known, *OWN}:
        near = tuple(difflib.get_close_matches(verb, known))
        if near:
            raise Refused(say("start.near-command", 'There is no command "{name}". Similar ones: {near}.', name=verb, near=near))
        raise Refused(say("start.no-command", 'There is no command "{name}", only these: {known}.', name=verb, known=tuple(known)))


def refuse_mistyped(verb: str, words: Sequence[str]) -> None:
    """Refuse an option or action that one of Hearth's commands does not have, before making the environment. An option may be cut short, as
    argparse allows; a word with a blank is no option."""
    known = [*WORDS.get(verb, "").split(), "-h", "--help", "--version"]
    for word in takewhile(lambda word: word != "--", words) if verb in WORDS else ():
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if word.startswith("-") and " " not in word and not word[1:2].isdigit() and not any(each.startswith(name) for each in known):
            _refuse_word(verb, word, known)
    actions = [each for each in known if not each.startswith("-")]
    if actions and words and not words[0].startswith("-") and words[0] not in actions:
        _refuse_word(verb, words[0], actions)


def _refuse_word(verb: str, word: str, known: Sequence[str]) -> None:
    near = difflib.get_close_matches(word, known)
    raise Refused(
        say(
            "start.mistyped",
            "{command} does not know {name}. It knows: {known}. Nothing was done.",
            command=verb,
            name=word,
            known=tuple(near or known),
        )
    )


def asks_for_help(words: Sequence[str]) -> bool:
    return any(each in ("-h", "--help") for each in takewhile(lambda word: word != "--", words))


def help_with_all() -> str:
    does = say(
        "usage.start",
        "Makes Hearth's environment if there is none yet, with the right torch for this card, then does what it is asked for:",
    )
    opens = say("usage.start-open", "open Hearth; where that fails, a page with the reason and Repair")
    own = {name_command(): opens, **{f"{name_command()} {verb}{TAKES.get(verb, '')}": what for verb, what in STARTS.items()}}
    hearths = {f"{name_command()} {name}": what for name, (_, what) in COMMANDS.items() if name not in STARTS and name != "open"}
    each = say("usage.start-hearths", "Hearth's own commands, each with --help once Hearth is installed:")
    return "\n".join((*wrap(in_terminal(does), WIDTH), "", *list_rows(own), "", *wrap(in_terminal(each), WIDTH), "", *list_rows(hearths)))


def list_rows(rows: Mapping[str, Sentence]) -> Iterator[str]:
    column = max(map(len, rows)) + 4
    for name, what in rows.items():
        yield from wrap(in_terminal(what), WIDTH, pad(f"  {name}", column), " " * column)


def help_with(verb: str) -> str:
    return f"{name_command()} {verb}{TAKES.get(verb, '')}    {in_terminal(OWN.get(verb) or COMMANDS[verb][1])}"


def refuse_words(verb: str, words: Sequence[str]) -> None:
    """Refuse words that a command does not know, before anything is done."""
    if words and verb not in ("add", "test", PREPARE):
        raise Refused(
            say("start.no-words", "{hearth} {command} takes no other words ({words}). Nothing was done.", command=verb, words=tuple(words))
        )


def main(words: Sequence[str]) -> int:
    verb = words[0] if words else ""
    try:
        if not verb.startswith("-") and verb:
            refuse_unknown(verb)
        made = slots.find_made()
        if asks_for_help(words) and (verb in OWN or made is None or not install.is_ready(made)):
            print(help_with_all() if verb.startswith("-") else help_with(verb))  # of the others' options only the environment knows
            return 0
        folder = made or slots.find_folder()
        if verb == PREPARE:
            return update.prepare(words[1:], folder)
        opens = verb in ("", "open") or (verb.startswith("-") and verb not in ("-h", "--help", "--version"))
        if opens:
            with suppress(Refused):  # while another Hearth runs, it waits for a later start
                install.switch(folder)
        if verb != RENEW and (current := slots.find_code(folder)) != slots.TOP:
            return run_command([sys.executable, str(current / "start.py"), *words])
        if list(words) == ["update", "--back"]:
            verb, words = "back", ["back"]
        if verb in OWN:
            refuse_words(verb, words[1:])
        elif not install.is_ready(folder):
            refuse_mistyped("open" if verb.startswith("-") else verb, words if verb.startswith("-") else words[1:])
        if verb in ("update", "back", RENEW):
            return update.step(verb, folder)
        if opens:
            return supervisor.run_window(words, folder)
        want = slots.read_requirements()
        if verb == "repair":
            install.repair(folder, want)
            return 0
        tests = verb == "test" or verb in checks.CHECKS
        extras = words[1:] if verb == "add" else ["test"] if tests else []
        if verb == "add" and (not extras or not want.extras.keys() >= set(extras)):
            raise Refused(say("start.extras", "{hearth} add takes one or more of: {names}.", names=tuple(sorted(want.extras))))
        python = str(slots.python_of(install.ensure_ready(folder, want, *extras)))
        if verb == "add":
            tell(say("start.added", "Installed: {names}. Restart Hearth to use it.", names=tuple(extras)))
            return 0
        if tests:
            slot_lock.hold(slots.current_slot(folder))
            os.chdir(slots.TOP)
            *before, last = checks.list_programs(verb, words[1:], slots.TOP)
            failed = next((code for each in before if (code := subprocess.call([python, "-m", *each]))), 0)
            return failed or run_command([python, "-m", *last])
        return run_command([python, "-I", "-X", "utf8", "-m", "app", *words])
    except Refused as fault:
        tell(fault.sentence, before="hearth: ")
        return 2
    except KeyboardInterrupt:
        tell(say("start.stopped", "Stopped. Start again to continue."), before="\n")
        return 130
