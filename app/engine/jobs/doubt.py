"""Word what a part's length lets doubt, for whoever reads a job's remarks. Pure."""

from __future__ import annotations

from app.base.sentence import Sentence, say
from app.engine.jobs.events import PartDone


def word_doubt(part: PartDone) -> Sentence | None:
    """Return what to tell of a part that is likely wrong; None of any other."""
    number = part.index + 1
    if part.doubt == "long":
        return say("speech.ran-on", "Part {part} ran on, much longer than its words take. Redo it, or change its words.", part=number)
    if part.doubt == "short":
        return say("speech.ended-early", "Part {part} ended much sooner than its words take. Redo it, or change its words.", part=number)
    return None
