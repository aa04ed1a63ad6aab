"""Parse the command line and run a command; each is a module of its own."""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

from app import __version__
from app.base.clean_words import CleanFormatter
from app.base.commands import COMMANDS, STARTS
from app.base.extras import START
from app.base.fast_import import pausing_collector, skipping_stubs
from app.base.languages import word_for
from app.base.trouble import Trouble
from app.launcher import slot_lock

EXIT_TROUBLE = 2
EXIT_STOPPED = 130
EXIT_UNREAD = 141
"""As of the system's own programs, which SIGPIPE ends."""


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "open")
    starts = STARTS if START.is_file() else {}
    if given[0] in starts:
        return subprocess.call([sys.executable, str(START), *given])
    slot_lock.hold()
    parser = argparse.ArgumentParser(prog="hearth", description="Speech and pictures, made on your own computer.")
    parser.add_argument("--version", action="version", version=f"hearth {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        if name == given[0]:
            with pausing_collector(), skipping_stubs():
                import_module(module).add_arguments(command)
    for name, help_ in starts.items():
        if name not in COMMANDS:
            commands.add_parser(name, help=help_)
    args = parser.parse_args(given, argparse.Namespace(given=given))
    if logging.lastResort is not None:  # which shows the warnings of a command
        logging.lastResort.setFormatter(CleanFormatter())
    try:
        code = int(import_module(COMMANDS[args.command][0]).main(args))
        print(end="", flush=True)
        return code
    except Trouble as trouble:
        words = (word_for(sys.stderr, part) for part in (trouble.sentence, *trouble.objections))
        print(f"hearth: {' '.join(words)}", file=sys.stderr)
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
