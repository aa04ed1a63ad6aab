"""The command line: open (default), speak, paint, models, doctor, bench. Only wiring: each command lives in its own room."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from app import __version__
from app.fast_import import pausing_collector
from app.sentence import Trouble

COMMANDS = {
    "open": ("app.cli.open", "open the window (the default)"),
    "speak": ("app.cli.speak", "speak a script into a sound file"),
    "paint": ("app.cli.paint", "paint a prompt into a picture"),
    "models": ("app.cli.models", "list, get and remove models"),
    "doctor": ("app.cli.doctor", "what this machine can do, what was decided for it, and why"),
    "bench": ("app.cli.bench", "measure attention on this machine"),
    "install-app": ("app.launcher.desktop_entry", "put Hearth among your apps, with its icon"),
    "remove-app": ("app.launcher.desktop_entry", "take it away from there, and say where your things are"),
    "update": ("app.launcher.update", "take newer code and its environment, proven before the swap"),
}
"""Each module has `arguments(parser)` and `main(args) -> exit code`, and is imported only when it is asked for."""

EXIT_TROUBLE = 2
EXIT_STOPPED = 130


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "open")
    parser = argparse.ArgumentParser(
        prog="hearth", description="Speech and pictures, made on the machine you already own."
    )
    parser.add_argument("--version", action="version", version=f"hearth {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        if name == given[0]:
            with pausing_collector():
                import_module(module).arguments(command)
    args = parser.parse_args(given)
    try:
        return int(import_module(COMMANDS[args.command][0]).main(args))
    except Trouble as trouble:
        print(f"hearth: {trouble}", file=sys.stderr)
        return EXIT_TROUBLE
    except KeyboardInterrupt:
        return EXIT_STOPPED


if __name__ == "__main__":
    sys.exit(main())
