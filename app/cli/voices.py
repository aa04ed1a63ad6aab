"""hearth voices list | export NAME FILE | import FILE | rename NAME NEW | describe NAME WORDS | remove NAME"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from app.base import paths
from app.base.languages import in_terminal, word_help
from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.cli.machine_options import add_home_option
from app.engine.models.on_disk import find_limits
from app.engine.speech.text import voices
from app.engine.speech.text.voice_files import export_voice, import_voice


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", *ACTIONS), help=word_help(say("usage.action", "by default list"))
    )
    parser.add_argument(
        "words", nargs="*", help=word_help(say("usage.voices-words", "the voice's name, and the file, the new name or what is said of it"))
    )
    parser.add_argument(
        "--model",
        default="",
        help=word_help(say("usage.voices-model", "list the voices of this model; by default of the best installed one")),
    )
    parser.add_argument("--json", action="store_true", help=word_help(say("usage.json", "print lines of JSON")))
    add_home_option(parser)


def main(args: argparse.Namespace) -> int:
    home = paths.home(args.home).create()
    if args.action == "list":
        print_list(home, args.model, args.json)
        return 0
    run, count, usage = ACTIONS[args.action]
    if len(args.words) != count:
        raise Trouble(say("voices.usage", "Write it like this: {hearth} voices {usage}", usage=f"{args.action} {usage}"))
    if (told := run(home, *args.words)) is not None:
        print(told)
    return 0


def print_list(home: Home, model: str, as_json: bool) -> None:
    for each in voices.list_offered_voices(home, find_limits(home, model)):
        kept = Path(each.prompt.path).parent == home.voices
        values = {"name": each.name, "saved": kept, "about": each.about, "words": each.prompt.transcript}
        print(
            json.dumps(values, ensure_ascii=False)
            if as_json
            else "  ".join(filter(None, (each.name, in_terminal(say("voices.saved", "saved")) if kept else "", each.about)))
        )


def export(home: Home, name: str, file: str) -> str:
    export_voice(voices.find_kept(home, name), Path(file))
    return file


def take(home: Home, file: str) -> str:
    if not is_file(Path(file)):
        raise Trouble(say("sound.missing", "The sound file {path} was not found. Choose it again.", path=file))
    return import_voice(home, Path(file)).name


ACTIONS: Final[dict[str, tuple[Callable[..., str | None], int, str]]] = {
    "export": (export, 2, "NAME FILE"), "import": (take, 1, "FILE"), "rename": (voices.rename_voice, 2, "NAME NEW"),
    "describe": (voices.describe_voice, 2, "NAME WORDS"), "remove": (voices.remove_voice, 1, "NAME"),
}  # fmt: skip
"""The number says how many words an action takes."""
