"""What speak and paint share: their options, one job carried out, its events shown as a bar or as lines of JSON."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, get_args

from app.compat.plan import Choice, Dtype, Gqa, chunk_of
from app.engine.event import END, Adjusted, Event, Failed, Finished, Loading, Note, Part, Step, Stopped, Unloaded
from app.engine.process import Keeper
from app.engine.request import Request
from app.paths import home
from app.sentence import Sentence, Trouble, say

FINISHED, FAILED, TROUBLE, STOPPED = 0, 1, 2, 130
BAR_LETTERS = 24


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", type=Path, help="write the result here, too; it stays on the shelf")
    parser.add_argument("--model", default="", help="a name from 'hearth models', or a local folder or file")
    parser.add_argument("--seed", type=int, help="the same seed gives the same result")
    parser.add_argument("--chunk", help="queries at a time in attention: a whole number, or auto")
    parser.add_argument("--dtype", choices=get_args(Dtype), help="compute in this precision")
    parser.add_argument("--gqa", choices=get_args(Gqa), help="how grouped heads are handled")
    parser.add_argument("--kernels", help="which of torch's attention kernels may run, by commas")
    common(parser)
    parser.add_argument("--json", action="store_true", help="print every event as a line of JSON")


def common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pretend", default="", metavar="MACHINE", help="plan as another machine would: gtx-1060, m1-8gb ..."
    )
    parser.add_argument("--home", type=Path, help="everything Hearth writes goes under this folder")


def choice_of(args: argparse.Namespace) -> Choice:
    kernels = tuple(args.kernels.split(",")) if args.kernels else None
    return Choice(chunk=chunk_of(args.chunk), gqa=args.gqa, kernels=kernels, dtype=args.dtype)


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
    keeper = Keeper(home(args.home), args.pretend)
    show = as_lines(sys.stdout) if args.json else as_bar(sys.stderr)
    end: Event | None = None
    keeper.set_chunk(choice.chunk)
    try:
        job = keeper.submit(request, choice)
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
    for number, file in enumerate(end.files):
        saved = Path(file)
        if args.output is not None:
            saved = args.output if number == 0 else args.output.with_stem(f"{args.output.stem} {number + 1}")
            saved.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, saved)
        if not args.json:
            print(saved)
    return {Finished: FINISHED, Stopped: STOPPED}.get(type(end), FAILED)


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
