"""Copy the database to its backups, as Hearth does daily and before each update."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

from app.base import paths
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.backups import make_backup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", type=Path, help="the folder for all of Hearth's files")


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
                fault=str(fault),
            )
        ) from fault
    print(made if made is not None else "There is no database yet.")
    return 0
