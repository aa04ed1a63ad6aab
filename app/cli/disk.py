"""hearth disk list | twice | move NAME FOLDER | back NAME | here NAME FOLDER"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from app.base import other_disk, paths
from app.base.clean_words import clean_words
from app.base.extras import can_add
from app.base.languages import in_terminal, word_help
from app.base.other_disk import word_away
from app.base.paths import Home
from app.base.sentence import join_sentences, say
from app.base.trouble import Trouble
from app.cli.job import FINISHED, print_answer
from app.cli.machine_options import add_home_option
from app.cli.models import word_size
from app.engine.keeper.disk_use import choose_target, find_doubles, find_use, is_known, list_uses, read_place
from app.engine.models.catalog import BY_ID


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=tuple(ACTIONS), help=word_help(say("usage.action", "by default list")))
    parser.add_argument(
        "words", nargs="*", help=word_help(say("usage.disk-words", "a name from the list, and with move a folder on another disk"))
    )
    parser.add_argument("--json", action="store_true", help=word_help(say("usage.json", "print lines of JSON")))
    add_home_option(parser)


def main(args: argparse.Namespace) -> int:
    run, usage = ACTIONS[args.action]
    if len(args.words) != len(usage.split()):
        raise Trouble(say("disk.usage", "Write it like this: {hearth} disk {usage}", usage=f"{args.action} {usage}".strip()))
    run(paths.home(args.home).create(), args)
    return FINISHED


def print_uses(home: Home, args: argparse.Namespace) -> None:
    for use in list_uses(home, BY_ID.values(), Path(sys.prefix).parent if can_add() else None):
        values = {"name": use.name, "bytes": use.bytes, "unused": use.unused, "folder": str(use.folder), "target": str(use.target or "")}
        if args.json:
            print(json.dumps(values | {"away": use.away, "movable": use.movable}))
            continue
        told = [word_away(use.folder) if use.away else use.why]
        if use.unused:
            told.append(say("disk.unused-long", "Unused for half a year."))
        if use.target is not None and not use.away:
            told.append(say("disk.lies", "On another disk: {target}", target=str(use.target)))
        why = join_sentences(map(in_terminal, told))
        print(clean_words(f"{in_terminal(word_size(use.bytes)):>9}  {use.name}  {in_terminal(use.title)}\n{'':>11}{why}"))


def print_doubles(home: Home, args: argparse.Namespace) -> None:
    for double in find_doubles(home, BY_ID.values(), threading.Event()):
        files = [str(double.kept), *map(str, double.others)]
        if args.json:
            print(json.dumps({"bytes": double.bytes, "files": files}))
        else:
            print(
                clean_words(
                    "\n".join((f"{in_terminal(word_size(double.bytes)):>9}  {files[0]}", *(f"{'':>11}{each}" for each in files[1:])))
                )
            )


def move(home: Home, args: argparse.Namespace) -> None:
    use = find_use(home, BY_ID.values(), args.words[0])
    other_disk.move(use.folder, choose_target(read_place(args.words[1]).absolute(), use))
    print_answer(say("disk.moved", "{name} is moved.", name=use.title))


def bring_back(home: Home, args: argparse.Namespace) -> None:
    use = find_use(home, BY_ID.values(), args.words[0])
    other_disk.bring_back(use.folder)
    print_answer(say("disk.moved", "{name} is moved.", name=use.title))


def point_to(home: Home, args: argparse.Namespace) -> None:
    use = find_use(home, BY_ID.values(), args.words[0])
    other_disk.point_to(use.folder, read_place(args.words[1]).absolute(), partial(is_known, home, use))
    print_answer(say("disk.found", "{name} is there again.", name=use.title))


ACTIONS: Final[dict[str, tuple[Callable[[Home, argparse.Namespace], None], str]]] = {
    "list": (print_uses, ""), "twice": (print_doubles, ""), "move": (move, "NAME FOLDER"), "back": (bring_back, "NAME"),
    "here": (point_to, "NAME FOLDER"),
}  # fmt: skip
"""An action takes the words named beside it."""
