"""What speak and paint share: their options, one job carried out, its events shown as a bar or as lines of JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final, get_args

from app.cli import output_file
from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice, Dtype, Gqa, Offload, Quantised
from app.engine.jobs.events import END, Adjusted, Event, Failed, Finished, Loading, Note, Part, Step, Stopped, Unloaded
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request
from app.engine.models.chosen import chosen
from app.engine.process.keeper import Keeper
from app.paths import home
from app.sentence import Sentence, Trouble, say

FINISHED, FAILED, TROUBLE, INCOMPLETE, UNWRITTEN, STOPPED = 0, 1, 2, 3, 4, 130
CODES = """exit codes:
  0    all of it is made
  1    nothing could be made
  2    it cannot be done as asked; nothing was begun
  3    only some parts are made: -o holds those, and the same command goes on with the rest
  4    it is made, but could not be written to -o; the message says where it is
  130  stopped with Ctrl+C; what was there is kept
"""
FORCED: Final = "What is given here counts for this command. For the rest, what was chosen by hand on the Machine tab applies; auto leaves it to Hearth."
BAR_LETTERS = 24


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, help="write the result here, too; it stays on the shelf")
    parser.add_argument("--model", default="", help="a name from 'hearth models', or a local folder or file")
    parser.add_argument("--seed", type=int, help="the same seed gives the same result")
    forced = parser.add_argument_group("choices by hand", FORCED)
    forced.add_argument("--chunk", help="queries at a time in attention: a whole number, or auto")
    forced.add_argument("--dtype", choices=(AUTO, *get_args(Dtype)), help="compute in this precision")
    forced.add_argument("--gqa", choices=(AUTO, *get_args(Gqa)), help="how grouped heads are handled")
    forced.add_argument("--kernels", help="which of torch's attention kernels may run, by commas, or auto")
    forced.add_argument("--offload", choices=(AUTO, *get_args(Offload)), help="which parts wait outside the device's memory")
    forced.add_argument("--quantised", choices=(AUTO, *get_args(Quantised)), help="which smaller weights are taken")
    common(parser)
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")
    parser.add_argument("--anew", action="store_true", help="begin again, where the same command would go on with what it did not finish")  # fmt: skip
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, CODES


def common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pretend", default="", metavar="MACHINE", help="plan as another machine would: gtx-1060, m1-8gb ..."
    )
    parser.add_argument("--home", type=Path, help="everything Hearth writes goes under this folder")


def choice_of(args: argparse.Namespace) -> Choice:
    """The Machine tab's, with what the command says in its place."""
    names = ("dtype", "gqa", "kernels", "offload", "quantised")
    said = {name: value for name in names if (value := getattr(args, name)) is not None}
    given: dict[str, Any] = {name: None if value in (AUTO, "") else value for name, value in said.items()}
    if given.get("kernels") is not None:
        given["kernels"] = tuple(given["kernels"].split(","))
    if args.chunk is not None:
        given["chunk"] = parse_chunk(args.chunk)
    return dataclasses.replace(chosen(home(args.home)), **given)


def text_of(given: str | None, file: Path | None) -> str:
    """The text itself, a file's, or what is piped in."""
    if given is not None and given != "-":
        return given
    try:
        return file.read_text("utf-8") if file is not None else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as fault:
        raise Trouble(
            say(
                "command.file",
                "{file} cannot be read as text: {fault}.",
                file=str(file or "standard input"),
                fault=str(fault),
            )
        ) from fault


def carry_out(request: Request, args: argparse.Namespace) -> int:
    """One job through the keeper, as the window does it. Ctrl+C stops it and keeps what is there; a second one gives up waiting."""
    choice = choice_of(args)
    if args.output is not None:
        output_file.writable(args.output, request)
    keeper = opened(args)
    show = as_lines(sys.stdout) if args.json else as_bar(sys.stderr)
    end: Event | None = None
    keeper.set_chunk(choice.chunk)
    try:
        job = begun(keeper, request, choice, args.anew)
        events = keeper.follow(job.id)
        while end is None:
            try:
                for event in events:
                    show(event)
                    end = event if isinstance(event, END) else end
            except KeyboardInterrupt:
                keeper.stop(job.id)
                events = keeper.follow(job.id)
    finally:
        keeper.close()
    assert isinstance(end, END)
    asked = output_file.names(args.output, len(end.files)) if args.output else [None] * len(end.files)
    written = [saved(Path(file), path) for file, path in zip(end.files, asked, strict=True)]
    for path in written:
        if path is not None and not args.json:
            print(path)
    if isinstance(end, Failed) and (end.files or end.cure == "go-on"):
        tell(say("command.go-on", "The same command goes on from here: what is finished is not done again. With --anew it begins from the start."))  # fmt: skip
    if None in written:
        return UNWRITTEN
    return {Finished: FINISHED, Stopped: STOPPED}.get(type(end), INCOMPLETE if end.files else FAILED)


def opened(args: argparse.Namespace) -> Keeper:
    place = home(args.home)
    try:
        return Keeper(place, args.pretend, patient=False)
    except OSError as fault:
        raise Trouble(say("command.home", "{folder}, where Hearth keeps its things, cannot be used ({fault}). Name another folder with --home.", folder=str(place.root), fault=output_file.why(fault))) from fault  # fmt: skip


def begun(keeper: Keeper, request: Request, choice: Choice, anew: bool) -> Job:
    """Where exactly this was asked for before and not finished, that is gone on with."""
    before = None if anew else keeper.unfinished(request, choice)
    if before is None:
        return keeper.submit(request, choice)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(before.created_s))
    tell(say("command.goes-on", "Going on with what was begun on {when}. To begin from the start instead: --anew", when=when))  # fmt: skip
    keeper.go_on(before.id)
    return before


def saved(file: Path, path: Path | None) -> Path | None:
    """Where the result is to be had; None where it could not be written, which is told."""
    if path is None:
        return file
    try:
        output_file.write(file, path)
    except OSError as fault:
        tell(say("output.late", "{path} could not be written ({fault}). The result is on the Shelf, in {file}.", path=str(path), fault=output_file.why(fault), file=str(file)))  # fmt: skip
        return None
    return path


def tell(sentence: Sentence) -> None:
    print(f"hearth: {sentence}", file=sys.stderr, flush=True)


def as_lines(out: IO[str]) -> Callable[[Event], None]:
    def show(event: Event) -> None:
        print(json.dumps({"event": type(event).__name__.lower(), **plain(event)}), file=out, flush=True)

    return show


def plain(event: Event) -> dict[str, object]:
    """Sentences as English, all else as it is."""
    values: dict[str, object] = {}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Sentence):
            value = str(value)
        elif isinstance(value, tuple):
            value = [str(each) if isinstance(each, Sentence) else each for each in value]
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = dataclasses.asdict(value)
        values[field.name] = value
    return values


def as_bar(out: IO[str]) -> Callable[[Event], None]:
    live = out.isatty()

    def line(text: str) -> None:
        print(("\r\x1b[K" if live else "") + text, file=out, flush=True)

    def show(event: Event) -> None:
        match event:
            case Step():
                if live:
                    print("\r\x1b[K" + bar(event), end="", file=out, flush=True)
            case Loading() | Unloaded() | Note() | Adjusted():
                line(str(event.sentence))
            case Part() if event.total > 1:
                line(
                    f"part {event.index + 1} of {event.total} is done"
                    + (f", {event.seconds:.1f} s" if event.seconds else "")
                )
            case Failed():
                line("hearth: " + " ".join(map(str, (event.sentence, *event.objections))))
            case Finished() | Stopped():
                word = "done" if isinstance(event, Finished) else "stopped, what was there is kept"
                line(
                    f"{word}, {event.elapsed_s:.1f} s"
                    + (f" for {event.seconds:.1f} s of sound" if event.seconds else "")
                )

    return show


def bar(step: Step) -> str:
    full = round(BAR_LETTERS * step.done / max(1, step.total))
    parts = [f"[{'#' * full}{'.' * (BAR_LETTERS - full)}]", f"{step.rate:.1f} {step.unit}/s"]
    if step.parts > 1:
        parts.insert(0, f"part {step.part + 1} of {step.parts}")
    if step.realtime is not None:
        parts.append(f"{step.realtime:.2f}x realtime")
    if step.eta_s is not None:
        parts.append(f"{step.eta_s:.0f} s left")
    parts.append(f"{step.memory.process_bytes / (1 << 30):.1f} GB, highest {step.memory.highest_bytes / (1 << 30):.1f}")
    return "  ".join(parts)
