"""Parse the command line and run a command; each is a module of its own."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from typing import Any, NoReturn

from app import __version__
from app.base.clean_words import CleanFormatter
from app.base.commands import COMMANDS, STARTS
from app.base.fast_import import pausing_collector, skipping_stubs
from app.base.languages import in_terminal, word_for, word_help
from app.base.proxies import set_socks_aside
from app.base.sentence import Sentence, say
from app.base.start_command import START, name_command
from app.base.trouble import BadUsage, Trouble
from app.cli.help_page import HelpLines, describe, translate_argparse
from app.launcher import slot_lock

EXIT_TROUBLE = 2
EXIT_STOPPED = 130
EXIT_UNREAD = 141
"""The system's own programs, which SIGPIPE ends, exit so."""


class Parser(argparse.ArgumentParser):
    """Refuses in Hearth's sentences what cannot be read as options of a command; `main` tells them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=HelpLines, **given)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as fault:
            known = tuple(str(each) for each in action.choices or () if each != "")
            raise BadUsage(
                say(
                    "command.choice",
                    "{option} cannot be {value}. Choose one of: {known}.",
                    option=self._name(action),
                    value=str(value),
                    known=known,
                )
            ) from fault

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as fault:
            if isinstance(fault.__context__, argparse.ArgumentTypeError):  # says itself which numbers it takes
                self.error(str(fault))
            raise BadUsage(
                say("command.number", "{option} must be a number, not {value}.", option=self._name(action), value=arg_string)
            ) from fault

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as fault:
            raise BadUsage(say("command.no-value", "{option} needs a value after it.", option=self._name(action))) from fault

    def _name(self, action: argparse.Action) -> str:
        return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)

    def refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Refuse an option that there is none of before its value is taken for an action or a name. An option may be cut short; a word with a blank is
        none. Where actions have options of their own, they say themselves what they know."""
        if self._subparsers is not None:
            return
        for word in takewhile(lambda word: word != "--", words):
            name = word.partition("=")[0]
            if word.startswith("--") and " " not in word and not any(each.startswith(name) for each in self._option_string_actions):
                self.refuse_unknown([word])

    def refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        near = get_close_matches(words[0].partition("=")[0], self._option_string_actions)
        if words[0].startswith("-") and near:
            raise BadUsage(
                say("command.near-option", "There is no option {option}. Similar ones: {near}.", option=words[0], near=tuple(near))
            )
        raise BadUsage(
            say(
                "command.unknown",
                "{command} does not know what to do with {words}. See {command} --help.",
                command=self.prog,
                words=" ".join(words),
            )
        )

    def error(self, message: str) -> NoReturn:
        """What is seldom wrong, in argparse's words: options that exclude each other, one cut too short, a command without its word."""
        raise BadUsage(say("command.unread", "{command} cannot do that: {why}. See {command} --help.", command=self.prog, why=message))


def print_refusal(words: str, code: str) -> None:
    print(json.dumps({"event": "failed", "sentence": words, "objections": [], "files": [], "code": code}), flush=True)


def read(given: Sequence[str], starts: Mapping[str, Sentence]) -> argparse.Namespace:
    translate_argparse()
    parser = Parser(prog=name_command(), description=in_terminal(say("usage.hearth", "Speech and pictures, made on your own computer.")))
    parser.add_argument(
        "--version",
        action="version",
        version=f"hearth {__version__}",
        help=word_help(say("usage.version", "show Hearth's version and exit")),
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (module, help_) in COMMANDS.items():
        command = commands.add_parser(name, help=word_help(help_), description=describe(help_))
        if name == given[0]:
            with pausing_collector(), skipping_stubs():
                import_module(module).add_arguments(command)
            command.refuse_unknown_options(given[1:])
    for name, help_ in starts.items():
        if name not in COMMANDS:
            commands.add_parser(name, help=word_help(help_))
    args, unknown = parser.parse_known_args(given, argparse.Namespace(given=list(given)))
    if unknown:
        commands.choices[args.command].refuse_unknown(unknown)
    return args


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help", "--version")):
        given.insert(0, "open")
    starts = STARTS if START.is_file() else {}
    if given[0] in starts:
        return subprocess.call([sys.executable, str(START), *given])
    slot_lock.hold()
    set_socks_aside()
    if logging.lastResort is not None:  # which shows the warnings of a command
        logging.lastResort.setFormatter(CleanFormatter())
    try:
        args = read(given, starts)
        code = int(import_module(COMMANDS[args.command][0]).main(args))
        print(end="", flush=True)
        return code
    except Trouble as trouble:
        words = (word_for(sys.stderr, part) for part in (trouble.sentence, *trouble.objections))
        print(f"hearth: {' '.join(words)}", file=sys.stderr)
        if "--json" in given:
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
