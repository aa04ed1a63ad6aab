"""Word what a part's length lets doubt, for whoever reads a job's remarks. Pure."""

from __future__ import annotations

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.engine.jobs.events import PartDone


def word_doubt(part: PartDone) -> Sentence | None:
    """Return what to tell of a part that is likely wrong; None of any other."""
    number, time = part.index + 1, word_duration(part.seconds, exact=True)
    if part.doubt == "long":
        return say(
            "speech.ran-on",
            "Part {part} ran on for {time}, much longer than its words take. Redo it, or change its words.",
            part=number,
            time=time,
        )
    if part.doubt == "short":
        return say(
            "speech.ended-early",
            "Part {part} ended after {time}, much sooner than its words take. Redo it, or change its words.",
            part=number,
            time=time,
        )
    return None
