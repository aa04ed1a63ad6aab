"""hearth lend: let another computer's Hearth use this one, until Ctrl+C."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from typing import TYPE_CHECKING

from app.cli.job import open_keeper, print_sentence
from app.cli.machine_options import add_common_options
from app.extras import install_command
from app.machines.joining import versions
from app.paths import home
from app.sentence import Sentence, Trouble, say

if TYPE_CHECKING:
    from app.machines.lending import LendingState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", help="what the other computer's Machine tab shows; not needed again after the first time")
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    if not versions.is_installed():
        raise Trouble(
            say(
                "machines.extra",
                "Several computers together need an extra. Install it with: {command}",
                command=install_command("machines"),
            )
        )
    from app.machines.joining.code import parse_code
    from app.machines.joining.join import join
    from app.machines.lending import Lending, lending_folder

    place = home(args.home)
    if args.code:
        join(parse_code(args.code), lending_folder(place), socket.gethostname())
    told: list[Sentence] = []

    def tell(state: LendingState) -> None:
        sentence = describe(state)
        if told[-1:] != [sentence]:
            told.append(sentence)
            print_sentence(sentence)
            sys.stderr.flush()

    keeper = open_keeper(args)
    try:
        lending = Lending(keeper, tell)
        try:
            threading.Event().wait()
        finally:
            lending.close()
    finally:
        keeper.close()
    return 0


def describe(state: LendingState) -> Sentence:
    """Say what this computer does for the other one."""
    if state.said is not None:
        return state.said
    if not state.online:
        return say("lend.offline", "{name} cannot be reached now. This computer keeps trying.", name=state.main)
    if state.doing:
        return say("lend.doing", "Working for {name}: {words}", name=state.main, words=" ".join(state.doing.split())[:80])
    if state.paused:
        return say("lend.paused", "Not helping now: this computer's own work goes first, or its engine is starting.")
    return say("lend.ready", "Ready to help {name}. Press Ctrl+C to end.", name=state.main)
