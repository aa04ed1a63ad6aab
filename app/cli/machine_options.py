"""The options that name the machine and the folder of Hearth's files, for every command that takes one of them, and what they name."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.base import paths
from app.base.languages import word_help
from app.base.paths import Home
from app.base.sentence import say
from app.compat.machine import verdicts
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import find_machine
from app.compat.machine.verdicts import Subject, Verdict


def add_home_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, metavar="DIR", help=word_help(say("usage.home", "the folder for all of Hearth's files")))


def add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pretend",
        default="",
        metavar="MACHINE",
        help=word_help(
            say(
                "usage.pretend",
                "plan for another machine: gtx-1060, m1-8gb ..., or the file that '{hearth} doctor --selftest --json' printed there",
            )
        ),
    )
    add_home_option(parser)


def read_pretended(args: argparse.Namespace) -> str:
    """Return the machine to pretend, a file by its whole path; raise a Trouble if there is none, before anything starts."""
    if not args.pretend:
        return ""
    hardware = find_machine(args.pretend)
    return hardware.report or hardware.pretended


def read_machine(args: argparse.Namespace) -> tuple[Home, Hardware, dict[Subject, Verdict]]:
    """Return the home, the facts of the machine (this one, unless one is pretended) and what it was seen to do."""
    home, hardware = paths.home(args.home), find_machine(getattr(args, "pretend", ""))
    return home, hardware, verdicts.load(home.verdicts, hardware)
