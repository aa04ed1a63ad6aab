"""hearth bench: what measures stands in the checkout's bench/, outside of what is installed; this finds it there."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from app.base.sentence import say
from app.base.start_command import START
from app.base.trouble import Trouble


def add_arguments(parser: argparse.ArgumentParser) -> None:
    if _is_here():
        _import_command().add_arguments(parser)
    else:
        parser.add_argument("what", nargs=argparse.REMAINDER)  # whatever is asked for, the answer is main's


def main(args: argparse.Namespace) -> int:
    if not _is_here():
        raise Trouble(
            say(
                "bench.checkout",
                "Measuring is not part of an installed Hearth. Get Hearth's source with git, and there run: python3 start.py bench",
            )
        )
    return int(_import_command().main(args))


def _is_here() -> bool:
    return (START.parent / "bench").is_dir()


def _import_command() -> Any:
    top = str(START.parent)
    if top not in sys.path:
        sys.path.append(top)
    return import_module("bench.command")
