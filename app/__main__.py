"""Parse the command line and run a command; each is a module of its own."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from app import __version__
from app.base.clean_words import CleanFormatter
from app.base.commands import COMMANDS, START, STARTS, name_command
from app.base.fast_import import pausing_collector, skipping_stubs
from app.base.languages import word_for
from app.base.proxies import set_socks_aside
from app.base.trouble import Trouble
from app.launcher import slot_lock

EXIT_TROUBLE = 2
EXIT_STOPPED = 130
EXIT_UNREAD = 141
"""As of the system's own programs, which SIGPIPE ends."""


class Parser(argparse.ArgumentParser):
    """Tells what it refuses in JSON too, where that was asked for."""

    def error(self, message: str) -> NoReturn:
        if "--json" in sys.argv or "--json" in (self.get_default("given") or ()):
            print_refusal(message, "usage")
        super().error(message)


def print_refusal(words: str, code: str) -> None:
    print(json.dumps({"event": "failed", "sentence": words, "objections": [], "files": [], "code": code}), flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "open")
    starts = STARTS if START.is_file() else {}
    if given[0] in starts:
        return subprocess.call([sys.executable, str(START), *given])
    slot_lock.hold()
    set_socks_aside()
    parser = Parser(prog=name_command(), description="Speech and pictures, made on your own computer.")
    parser.set_defaults(given=given)
    parser.add_argument("--version", action="version", version=f"hearth {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        command.set_defaults(given=given)
        if name == given[0]:
            with pausing_collector(), skipping_stubs():
                import_module(module).add_arguments(command)
    for name, help_ in starts.items():
        if name not in COMMANDS:
            commands.add_parser(name, help=help_)
    args, unknown = parser.parse_known_args(given)
    if unknown:
        commands.choices[args.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    if logging.lastResort is not None:  # which shows the warnings of a command
        logging.lastResort.setFormatter(CleanFormatter())
    try:
        code = int(import_module(COMMANDS[args.command][0]).main(args))
        print(end="", flush=True)
        return code
    except Trouble as trouble:
        words = (word_for(sys.stderr, part) for part in (trouble.sentence, *trouble.objections))
        print(f"hearth: {' '.join(words)}", file=sys.stderr)
        if getattr(args, "json", False) and args.command != "doctor":  # which has printed what it can see
            print_refusal(str(trouble), trouble.code)
        return EXIT_TROUBLE
    except KeyboardInterrupt:
        return EXIT_STOPPED
    except BrokenPipeError:
        try:
            print(flush=True)
        except BrokenPipeError:  # whoever reads the output, as `head`, has enough of it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
            return EXIT_UNREAD
        raise


if __name__ == "__main__":
    sys.exit(main())
