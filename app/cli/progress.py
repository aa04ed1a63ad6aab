"""Print a job's events: progress as one live line on a terminal, or every event as a line of JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import IO, Final

from app.base.duration import word_duration
from app.base.sentence import Sentence
from app.engine.jobs.doubt import word_doubt
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, Note, PartDone, Step, Stopped, Unloaded

BAR_LETTERS: Final = 24
ERASE_LINE: Final = "\r\x1b[K"
EVENT_NAMES: Final[dict[type, str]] = {PartDone: "part"}
"""JSON calls all other events by their lower-case class name."""


def print_json(event: Event, out: IO[str]) -> None:
    name = EVENT_NAMES.get(type(event), type(event).__name__.lower())
    print(json.dumps({"event": name, **to_plain(event)}), file=out, flush=True)


def print_progress(event: Event, out: IO[str], errors_only: bool = False) -> None:
    """Redraw the bar on a terminal; print other events on lines of their own."""
    if errors_only and not isinstance(event, Failed):
        return
    live = out.isatty()
    if isinstance(event, Step):
        if live:
            print(ERASE_LINE + format_step(event), end="", file=out, flush=True)
        return
    text = format_event(event)
    if text:
        print((ERASE_LINE if live else "") + text, file=out, flush=True)


def format_event(event: Event) -> str:
    """Return the line for an event; empty if it has none."""
    match event:
        case Loading() | Unloaded() | Note() | Adjusted():
            return str(event.sentence)
        case PartDone():
            seconds = f", {word_duration(event.seconds, exact=True)}" if event.seconds else ""
            done = [f"part {event.index + 1} of {event.total} is done{seconds}"] if event.total > 1 else []
            return "\n".join([*done, *map(str, filter(None, [word_doubt(event)]))])
        case Failed():
            return "hearth: " + " ".join(map(str, (event.sentence, *event.objections)))
        case Finished() | Stopped():
            result = "done" if isinstance(event, Finished) else "stopped; finished parts are kept"
            sound = f" for {word_duration(event.seconds, exact=True)} of sound" if event.seconds else ""
            return f"{result}, {word_duration(event.elapsed_s, exact=True)}{sound}"
    return ""


def format_step(step: Step) -> str:
    words = [f"[{format_bar(step.done, step.total)}]", f"{step.rate:.1f} {step.unit}/s"]
    if step.parts > 1:
        words.insert(0, f"{name_parts(step)} of {step.parts}")
    if step.realtime is not None:
        words.append(f"{step.realtime:.2f}x realtime")
    if step.eta_s is not None:
        words.append(f"about {word_duration(step.eta_s)} left")
    used, highest = step.memory.process_bytes / (1 << 30), step.memory.highest_bytes / (1 << 30)
    words.append(f"{used:.1f} GB, highest {highest:.1f}")
    return "  ".join(words)


def name_parts(step: Step) -> str:
    first = step.part + 1
    return f"part {first}" if step.at_once == 1 else f"parts {first} to {step.part + step.at_once}"


def format_bar(done: float, total: float) -> str:
    full = round(BAR_LETTERS * done / max(1, total))
    return "#" * full + "." * (BAR_LETTERS - full)


def to_plain(event: Event) -> dict[str, object]:
    """Return the event's fields for JSON, sentences in English."""
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
