"""hearth lend: let another computer's Hearth use this one, until Ctrl+C."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from typing import TYPE_CHECKING

from app.base import paths
from app.base.extras import require_machines
from app.base.languages import word_help
from app.base.sentence import Sentence, say
from app.cli.job import open_keeper, print_sentence
from app.cli.machine_options import add_common_options

if TYPE_CHECKING:
    from app.machines.lending import LendingState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code",
        nargs="?",
        help=word_help(say("usage.lend-code", "what the other computer's Machine tab shows; not needed again after the first time")),
    )
    parser.add_argument(
        "--fetch-models",
        action="store_true",
        help=word_help(say("usage.lend-fetch-models", "download the models that the other computer uses, or take them from it")),
    )
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    require_machines()
    from app.machines.joining.code import parse_code
    from app.machines.joining.join import join
    from app.machines.lending import Lending, describe_state, lending_folder

    home = paths.home(args.home)
    if args.code:
        join(parse_code(args.code), lending_folder(home), socket.gethostname())
    told: list[Sentence] = []

    def tell(state: LendingState) -> None:
        sentence = describe_state(state)
        if told[-1:] != [sentence]:
            told.append(sentence)
            print_sentence(sentence)
            sys.stderr.flush()

    keeper = open_keeper(args)
    try:
        lending = Lending(keeper, tell, fetches=args.fetch_models)
        print_sentence(say("lend.end", "Press Ctrl+C to end."))
        try:
            threading.Event().wait()
        finally:
            lending.close()
    finally:
        keeper.close()
    return 0
