"""Copy the database to its backups, as Hearth does daily and before each update."""

from __future__ import annotations

import argparse
import sqlite3

from app.base import paths
from app.base.disk_faults import word_fault
from app.base.sentence import say
from app.base.trouble import Trouble
from app.cli.job import FINISHED, print_answer
from app.cli.machine_options import add_home_option
from app.engine.jobs.backups import make_backup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)


def main(args: argparse.Namespace) -> int:
    home = paths.home(args.home)
    try:
        made = make_backup(home)
    except (OSError, sqlite3.Error) as fault:
        raise Trouble(
            say(
                "backup.failed",
                "{file} could not be copied ({fault}). Start Hearth, which repairs a damaged file, or free some space.",
                file=str(home.database),
                fault=word_fault(fault),
            )
        ) from fault
    if made is None:
        print_answer(say("backup.none", "There is no database in {folder} yet, so there is nothing to copy.", folder=str(home.root)))
    else:
        print(made)
    return FINISHED
