"""hearth models list | get | remove | where | size | found"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import IO, Any, Final

from app.base import paths
from app.base.clean_words import clean_words
from app.base.duration import word_duration
from app.base.languages import in_terminal, word_help
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import BadUsage
from app.cli.job import FAILED, FINISHED, STOPPED, print_answer, print_sentence
from app.cli.machine_options import add_common_options, read_machine
from app.cli.progress import ERASE_LINE, format_bar, word_progress
from app.engine.models import catalog, on_disk
from app.engine.models.catalog import BY_ID
from app.engine.models.chosen import read_choice, read_chunk
from app.engine.models.downloads import Downloads, Status
from app.engine.models.fit import FITS, Offer, explain_size, make_offer
from app.engine.models.found import Finder
from app.engine.models.model import Model
from app.engine.models.planned import Setup

POLL_S = 0.3
COLUMN: Final = max(map(len, BY_ID))
"""The names of the catalog stand in a column so wide."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", default="list", choices=tuple(ACTIONS), help=word_help(say("usage.action", "by default list")))
    parser.add_argument(
        "model", nargs="*", help=word_help(say("usage.models-model", "names from the list; with found, words to search for"))
    )
    parser.add_argument("--json", action="store_true", help=word_help(say("usage.json", "print lines of JSON")))
    add_common_options(parser)


def main(args: argparse.Namespace) -> int:
    if not args.model and args.action in ("get", "remove"):
        raise BadUsage(
            say("models.which", "Name a model: {hearth} models {act} NAME. To see all names: {hearth} models list", act=args.action)
        )
    models = [] if args.action == "found" else [catalog.find(name) for name in args.model]
    return ACTIONS[args.action](paths.home(args.home).create(), models, args)


def list_models(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    setup = _read_setup(home, args)
    for model in models or BY_ID.values():
        found = make_offer(home, model, setup)
        print(json.dumps(to_plain(found)) if args.json else "\n".join(format_offer(found)))
    return FINISHED


def _read_setup(home: Home, args: argparse.Namespace) -> Setup:
    _, hardware, verdicts = read_machine(args)
    return Setup(home, hardware, read_choice(home), read_chunk(home), verdicts)


def remove_models(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    for model in models:
        there = on_disk.measure_bytes(home, model) > 0
        freed = Downloads(home).remove(model, BY_ID.values())
        if args.json:
            print(json.dumps({"id": model.id, "removed": there, "freed_bytes": freed}))
        elif there:
            print_answer(say("models.removed", "{model} was removed; {size} were freed.", model=model.words, size=word_size(freed)))
        else:
            print_answer(_word_absent(model))
    return FINISHED


def _word_absent(model: Model) -> Sentence:
    return say("models.absent", "{model} is not installed.", model=model.words)


def print_folders(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    for model in models:
        found = on_disk.locate(home, model)
        if args.json:
            print(json.dumps({"id": model.id, "folder": str(found.folder) if found else None}))
        elif found:
            print(found.folder)
        else:
            print_answer(_word_absent(model))
    if not models:
        print(json.dumps({"folder": str(home.models)}) if args.json else home.models)
    return FINISHED


def print_sizes(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    for model in models or BY_ID.values():
        size = on_disk.measure_bytes(home, model)
        if args.json and (size or models):
            print(json.dumps({"id": model.id, "bytes": size}))
        elif size:
            print(f"{in_terminal(word_size(size)):>9}  {clean_words(model.id)}")
        elif models:
            print_answer(_word_absent(model))
    return FINISHED


def print_found(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    """List the models of other programs on this computer, with what their headers say."""
    finder = Finder((BY_ID, catalog.CONFIGS))
    finder.look_now()
    for kept in finder.kept:
        if not args.json:
            print(clean_words(f"{in_terminal(kept.words)}  {kept.root}"))
        for file in kept.search(" ".join(args.model)):
            facts, trouble = finder.word(file)
            if args.json:
                values = {"tool": kept.tool, "path": str(file.path), "title": file.title, "bytes": file.bytes, "usable": trouble is None}
                print(json.dumps(values | {"facts": [str(each) for each in facts], "because": str(trouble or "")}))
            else:
                size = [word_size(file.bytes)] if file.bytes > 1 else []
                print(clean_words(f"  {file.path}\n      {in_terminal((*facts, *size, *([trouble] if trouble else [])))}"))
    if not finder.kept and not args.json:
        print_answer(
            say(
                "models.none-found", "No other picture program was found in its usual place. A model can be named by its path: --model PATH"
            )
        )
    return FINISHED


def to_plain(found: Offer) -> dict[str, Any]:
    model, fit = found.model, found.forecast
    assert fit is not None
    return {
        "id": model.id,
        "title": model.title,
        "kind": model.kind,
        "here": found.here,
        "here_bytes": found.here_bytes,
        "download_bytes": found.download_bytes,
        "fit": fit.fit,
        "because": str(fit.sentence),
        "cures": [str(each.sentence) for each in fit.cures],
        "quantised": found.quantised,
        "licence": model.licence,
        "credit": model.credit,
        "gated": model.gated,
    }


def format_offer(found: Offer) -> list[str]:
    model, fit = found.model, found.forecast
    assert fit is not None
    if found.here:
        state = say("models.here", "installed, {size}", size=word_size(found.here_bytes))
    else:
        state = say("models.to-get", "{size} to download", size=word_size(found.download_bytes))
    words: list[str | Sentence] = [model.words, FITS[fit.fit], state, model.credit or model.licence]
    if model.gated:
        words.append(say("models.gated", "accept its terms on the hub first"))
    indented = [fit.sentence, *filter(None, [explain_size(found)]), *(cure.sentence for cure in fit.cures)]
    return [
        f"{clean_words(model.id):<{COLUMN}} {in_terminal(tuple(words))}",
        *(f"{'':<{COLUMN}} {in_terminal(sentence)}" for sentence in indented),
    ]


def download_models(home: Home, models: list[Model], args: argparse.Namespace) -> int:
    """Download models; Ctrl+C pauses, and the same command resumes."""
    setup = _read_setup(home, args)
    downloads = Downloads(home)
    try:
        for model in models:
            downloads.start(model, make_offer(home, model, setup).quantised)
        while any(each.state in ("queued", "running") for each in downloads.list_status()):
            print_progress(downloads.list_status(), sys.stderr)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        print(file=sys.stderr)  # below the line that shows how far it is
        print_sentence(say("models.paused", "Paused. Run the same command again to resume."))
        return STOPPED
    finally:
        downloads.close()
    for each in downloads.list_status():
        print_result(each, args.json)
    return FINISHED if all(each.state == "done" for each in downloads.list_status()) else FAILED


def print_result(status: Status, as_json: bool) -> None:
    if as_json:
        values = {"id": status.model, "state": status.state, "bytes": status.done_bytes, "trouble": str(status.sentence or "")}
        print(json.dumps(values))
    elif status.state == "done":
        print_answer(say("models.got", "{model} is installed, {size}.", model=status.model, size=word_size(status.done_bytes)))
    if status.sentence is not None:
        print(file=sys.stderr)
        print_sentence(status.sentence)


def print_progress(statuses: list[Status], out: IO[str]) -> None:
    if out.isatty():
        print(ERASE_LINE + "   ".join(map(format_status, statuses)), end="", file=out, flush=True)


def format_status(status: Status) -> str:
    words: list[str | Sentence | None] = [
        status.model,
        f"[{format_bar(status.done_bytes, status.total_bytes)}]",
        say("models.of", "{done} of {total}", done=word_size(status.done_bytes), total=word_size(status.total_bytes)),
        say("progress.megabytes", "{rate} MB/s", rate=round(status.rate / 1e6, 1)) if status.rate else None,
        say("strip.left", "about {time} left", time=word_duration(status.eta_s)) if status.eta_s is not None else None,
        status.sentence,
    ]
    return "  ".join(word_progress(each) if isinstance(each, Sentence) else each for each in words if each is not None)


def word_size(size_bytes: int) -> Sentence:
    """Word bytes in powers of ten, as disks and downloads are counted."""
    if size_bytes >= 1e8:
        return say("size.gb", "{size} GB", size=round(size_bytes / 1e9, 1))
    return say("size.mb", "{size} MB", size=round(size_bytes / 1e6, 1))


ACTIONS: Final[dict[str, Callable[[Home, list[Model], argparse.Namespace], int]]] = {
    "list": list_models,
    "get": download_models,
    "remove": remove_models,
    "where": print_folders,
    "size": print_sizes,
    "found": print_found,
}
