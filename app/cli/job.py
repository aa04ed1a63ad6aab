"""Run one job from the command line: the options that speak and paint share, its exit code, its output file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from app.base import paths
from app.base.disk_faults import word_fault
from app.base.languages import in_terminal, word_for, word_help
from app.base.sentence import Sentence, say
from app.base.trouble import Impossible, Trouble
from app.cli import output_file
from app.cli.machine_options import add_common_options, read_pretended
from app.cli.progress import print_json, print_progress
from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice, Dtype, Gqa, Offload, Quantised
from app.engine.jobs.events import END, Event, Failed, Finished, Stopped
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request
from app.engine.jobs.settings import Rows
from app.engine.keeper.keeper import Keeper
from app.engine.models.chosen import read_choice, read_chunk
from app.engine.models.on_disk import find_model

STDIN: Final = Path("-")
FINISHED, FAILED, TROUBLE, INCOMPLETE, UNWRITTEN, STOPPED = 0, 1, 2, 3, 4, 130
EXIT_CODES: Final = {
    FINISHED: say("usage.code-finished", "everything was made"),
    FAILED: say("usage.code-failed", "nothing could be made"),
    TROUBLE: say("usage.code-trouble", "the request cannot be carried out; nothing was started"),
    INCOMPLETE: say("usage.code-incomplete", "only some parts were made: -o has them, and the same command makes the rest"),
    UNWRITTEN: say("usage.code-unwritten", "the result could not be written to -o; the message says where it is"),
    STOPPED: say("usage.code-stopped", "stopped with Ctrl+C; finished parts are kept"),
}
CHOICES_HELP: Final = say(
    "usage.choices",
    "These options apply to this command only. Without them, the settings of the Machine tab apply; 'auto' lets Hearth decide.",
)
NAMES_MODEL: Final = say("usage.model", "a name from '{hearth} models', or a local folder or file")


def number(words: str) -> int | float:
    """Read a number as it is written: the request says which ones it takes, and refuses half a step."""
    try:
        return int(words)
    except ValueError:
        return float(words)


def add_job_options(parser: argparse.ArgumentParser, rows: Rows) -> None:
    for each in rows.values():
        if each.option:
            named = "--" + each.name.replace("_", "-")
            if each.range is None and not each.choices:
                parser.add_argument(named, help=word_help(each.option), action="store_const", const=True)
                continue
            parser.add_argument(
                named,
                help=word_help(each.option),
                choices=tuple(each.choices) if each.choices and not each.open else None,
                type=number if each.whole else str if each.range is None else float,
            )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        help=word_help(say("usage.output", "also write the result to this file, or '-' for standard output; it stays on the shelf")),
    )
    parser.add_argument("--model", default="", type=os.path.expanduser, help=word_help(NAMES_MODEL))
    choices = parser.add_argument_group(in_terminal(say("usage.by-hand", "manual settings")), in_terminal(CHOICES_HELP))
    choices.add_argument("--chunk", help=word_help(say("usage.chunk", "queries per attention chunk: a whole number, or auto")))
    choices.add_argument("--dtype", choices=(AUTO, *get_args(Dtype)), help=word_help(say("usage.dtype", "the dtype to compute in")))
    choices.add_argument(
        "--gqa", choices=(AUTO, *get_args(Gqa)), help=word_help(say("usage.gqa", "how grouped-query attention is computed"))
    )
    choices.add_argument(
        "--kernels", help=word_help(say("usage.kernels", "the torch attention kernels that may be used, separated by commas, or auto"))
    )
    choices.add_argument(
        "--offload",
        choices=(AUTO, *get_args(Offload)),
        help=word_help(say("usage.offload", "which model parts stay out of the device's memory while idle")),
    )
    choices.add_argument(
        "--quantised", choices=(AUTO, *get_args(Quantised)), help=word_help(say("usage.quantised", "the quantisation of the weights"))
    )
    add_common_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help=word_help(say("usage.quiet", "print the result's path and errors only")))
    parser.add_argument("--json", action="store_true", help=word_help(say("usage.json-events", "print every event as a line of JSON")))
    parser.add_argument(
        "--anew", action="store_true", help=word_help(say("usage.anew", "start from the beginning instead of resuming an unfinished job"))
    )
    codes = (f"  {code:<4} {in_terminal(meaning)}" for code, meaning in EXIT_CODES.items())
    parser.epilog = "\n".join((in_terminal(say("usage.codes", "exit codes:")), *codes))


def read_settings(args: argparse.Namespace, rows: Rows) -> dict[str, Any]:
    """Return what a request's fields are to be by the options given."""
    given = [(each, getattr(args, each.name)) for each in rows.values() if each.option]
    return {each.field: value for each, value in given if value not in (None, each.open_value)}


def choose_by_hand(args: argparse.Namespace) -> Choice:
    """Return the Machine tab's choice, overridden by the command's options."""
    names = ("dtype", "gqa", "kernels", "offload", "quantised")
    given = {name: value for name in names if (value := getattr(args, name)) is not None}
    values: dict[str, Any] = {name: None if value in (AUTO, "") else value for name, value in given.items()}
    if values.get("kernels") is not None:
        values["kernels"] = tuple(each.strip() for each in values["kernels"].split(","))
    return dataclasses.replace(read_choice(paths.home(args.home)), **values)


def read_text(given: str | None, file: Path | None) -> str:
    """Return the text given, or that of the file, or standard input, which "-" names in either place."""
    if given is not None and given != "-":
        return given
    try:
        return file.read_text("utf-8") if file is not None and file != STDIN else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as fault:
        raise Trouble(
            say(
                "command.file",
                "{file} cannot be read as text ({fault}). Choose a text file in UTF-8.",
                file=str(file or "standard input"),
                fault=word_fault(fault),
            )
        ) from fault


def run_job(request: Request, args: argparse.Namespace, use: Callable[[Keeper, Path], None] | None = None) -> int:
    """Run a request through the keeper, as the window does, and return the exit code. `use` gets each result's file once it is written."""
    keeper, choice = prepare(request, args)
    try:
        end = follow(keeper, start_or_resume(keeper, request, choice, args), choose_show(args))
        outputs: Sequence[Path | None] = output_file.number_paths(args.output, len(end.files)) if args.output else [None] * len(end.files)
        written = [write_result(Path(file), path) for file, path in zip(end.files, outputs, strict=True)]
        if use is not None:
            for file in end.files:
                use(keeper, Path(file))
    finally:
        keeper.close()
    print_written([path for path in written if path is not None and path != output_file.STDOUT], args)
    if isinstance(end, Failed) and (end.files or end.cure == "go-on"):
        print_sentence(
            say("command.go-on", "Run the same command again to resume: finished parts are kept. Add --anew to start from the beginning.")
        )
    if None in written:
        return UNWRITTEN
    return choose_code(end, end.files)


def choose_code(end: Finished | Stopped | Failed, made: Sequence[Any]) -> int:
    """Return the exit code of what ended so, and of which so much is made."""
    if isinstance(end, Failed) and end.code == Impossible.code and not made:
        return TROUBLE
    return {Finished: FINISHED, Stopped: STOPPED}.get(type(end), INCOMPLETE if made else FAILED)


def run_jobs(requests: Sequence[Request], args: argparse.Namespace, titles: Sequence[str]) -> tuple[list[Path], int]:
    """Run requests one after another, each unless the same was finished before; return their files, up to the first one that was not finished, and
    the exit code."""
    (keeper, choice), files, code = prepare(requests[0], args), list[Path](), FINISHED
    try:
        for number, (request, title) in enumerate(zip(requests, titles, strict=True), 1):
            if not args.quiet:
                print_sentence(
                    say("command.chapter", "Chapter {number} of {count}: {title}", number=number, count=len(requests), title=title)
                )
            made = None if args.anew else keeper.find_made(request, choice)
            if made is None:
                end = follow(keeper, start_or_resume(keeper, request, choice, args), choose_show(args))
                if not isinstance(end, Finished):
                    if (code := choose_code(end, files)) != TROUBLE:
                        print_sentence(say("command.book-goes-on", "Run the same command again to resume: finished chapters are kept."))
                    break
            files.append(made.path if made is not None else Path(end.files[0]))
    finally:
        keeper.close()
    return files, code


def prepare(request: Request, args: argparse.Namespace) -> tuple[Keeper, Choice]:
    """Refuse what cannot be, before an engine starts; return what runs such a request, and the manual settings."""
    choice, chunk = choose_by_hand(args), read_chunk(paths.home(args.home)) if args.chunk is None else parse_chunk(args.chunk)
    if args.output == output_file.STDOUT:
        output_file.check_stdout(request, args.json)
    elif args.output is not None:
        output_file.check_writable(args.output, request)
    find_model(paths.home(args.home), request)
    keeper = open_keeper(args)
    keeper.set_chunk(chunk)
    return keeper, choice


def choose_show(args: argparse.Namespace) -> Callable[[Event], None]:
    if args.json:
        return partial(print_json, out=sys.stdout)
    return partial(print_progress, out=sys.stderr, errors_only=args.quiet)


def open_keeper(args: argparse.Namespace) -> Keeper:
    home, pretended = paths.home(args.home), read_pretended(args)
    try:
        return Keeper(home, pretended, patient=False)
    except OSError as fault:
        raise Trouble(
            say(
                "command.home",
                "Hearth's folder {folder} cannot be used ({fault}). Choose another folder with --home.",
                folder=str(home.root),
                fault=word_fault(fault),
            )
        ) from fault


def start_or_resume(keeper: Keeper, request: Request, choice: Choice, args: argparse.Namespace) -> Job:
    """Resume the unfinished job of exactly this request, if there is one; else start one."""
    before = None if args.anew else keeper.find_unfinished(request, choice)
    if before is None:
        return keeper.submit(request, choice)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(before.created_s))
    if not args.quiet:
        print_sentence(
            say("command.goes-on", "Resuming the job that was started on {when}. Add --anew to start from the beginning.", when=when)
        )
    keeper.resume(before.id)
    return before


def follow(keeper: Keeper, job: Job, show: Callable[[Event], None]) -> Finished | Stopped | Failed:
    """Show a job's events to its end. Ctrl+C stops the job, which keeps finished parts."""
    events = keeper.follow(job.id)
    while True:
        try:
            for event in events:
                show(event)
                if isinstance(event, END):
                    return event
        except KeyboardInterrupt:
            keeper.stop(job.id)
            events = keeper.follow(job.id)


def write_result(file: Path, path: Path | None) -> Path | None:
    """Write the result to `path`, if given; return where it is, or None after reporting that it could not be written."""
    if path is None:
        return file
    try:
        output_file.write(file, path)
    except OSError as fault:
        print_sentence(
            say(
                "output.late",
                "{path} could not be written ({fault}). The result is on the Shelf, as {file}.",
                path=str(path),
                fault=word_fault(fault),
                file=str(file),
            )
        )
        return None
    return path


def print_written(made: Sequence[Path], args: argparse.Namespace) -> None:
    if made:
        print(json.dumps({"event": "written", "files": [*map(str, made)]}) if args.json else "\n".join(map(str, made)), flush=True)


def print_answer(sentence: Sentence) -> None:
    """Print what a command was asked for, on standard output."""
    print(word_for(sys.stdout, sentence), flush=True)


def print_sentence(sentence: Sentence) -> None:
    """Print what a person has to know beside it, on standard error."""
    print(f"hearth: {word_for(sys.stderr, sentence)}", file=sys.stderr, flush=True)
