"""Print a job's events: progress as one live line on a terminal, or every event as a line of JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import IO, Final

from app.base.duration import word_duration
from app.base.languages import word_for
from app.base.sentence import Sentence, join_sentences, say
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
            return word_progress(event.sentence)
        case PartDone():
            done = [word_part(event)] if event.total > 1 else []
            return "\n".join(map(word_progress, filter(None, [*done, word_doubt(event)])))
        case Failed():
            return "hearth: " + join_sentences(map(word_progress, (event.sentence, *event.objections)))
        case Finished() | Stopped():
            return word_progress(word_end(event))
    return ""


def word_progress(sentence: Sentence) -> str:
    """Word what stands beside the results, on standard error."""
    return word_for(sys.stderr, sentence)


def word_part(part: PartDone) -> Sentence:
    done = say("progress.part", "part {number} of {total} is done", number=part.index + 1, total=part.total)
    return say("progress.took", "{what}, {time}", what=done, time=word_duration(part.seconds, exact=True)) if part.seconds else done


def word_end(end: Finished | Stopped) -> Sentence:
    done = say("progress.done", "done") if isinstance(end, Finished) else say("progress.stopped", "stopped; finished parts are kept")
    took = say("progress.took", "{what}, {time}", what=done, time=word_duration(end.elapsed_s, exact=True))
    return (
        say("progress.sound", "{what} for {time} of sound", what=took, time=word_duration(end.seconds, exact=True)) if end.seconds else took
    )


def format_step(step: Step) -> str:
    used, highest = (round(each / (1 << 30), 1) for each in (step.memory.process_bytes, step.memory.highest_bytes))
    words = (
        word_parts(step) if step.parts > 1 else None,
        f"[{format_bar(step.done, step.total)}]",
        word_rate(step),
        say("progress.realtime", "{times}x realtime", times=round(step.realtime, 2)) if step.realtime is not None else None,
        say("strip.left", "about {time} left", time=word_duration(step.eta_s)) if step.eta_s is not None else None,
        say("progress.memory", "{used} GB, highest {highest}", used=used, highest=highest),
    )
    return "  ".join(word_progress(each) if isinstance(each, Sentence) else each for each in words if each is not None)


def word_rate(step: Step) -> Sentence:
    if step.unit == "frames":
        return say("rate.frames-alone", "{rate} frames/s", rate=round(step.rate, 1))
    return say("rate.steps", "{rate} steps/s", rate=round(step.rate, 1))


def word_parts(step: Step) -> Sentence:
    first, last = step.part + 1, step.part + step.at_once
    if first == last:
        return say("progress.one", "part {number} of {total}", number=first, total=step.parts)
    return say("progress.several", "parts {first} to {last} of {total}", first=first, last=last, total=step.parts)


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
