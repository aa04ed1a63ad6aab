"""Split a script at its marks, speakers' tags and pauses, into turns."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.base.duration import word_duration
from app.base.sentence import say_to_all
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits
from app.engine.speech.text.layout import list_paragraphs
from app.engine.speech.text.script_brackets import ROUND, spell_for
from app.engine.speech.text.script_problem import Problem
from app.engine.speech.text.turns import Pause, Turn

PAUSE_S = 0.5
PAUSE_MOST_S = 30.0

# Possessive quantifiers keep these linear: scripts come from guests and other programs, too.
MARK = re.compile(r"\[\s*+(?:s|speaker)\s*+(\d{1,6})\s*+\]|[(\[]\s*+pause\b\s*+[:,]?+([^()\[\]]*+)[)\]]", re.IGNORECASE)
LENGTH = re.compile(r"\s*+(\d{1,6}(?:\.\d{1,6})?)\s*+(ms|seconds?|sec|s)?+\s*+", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def split_marks(text: str, limits: VoiceLimits, problems: list[Problem]) -> Iterator[Turn | Pause]:
    """Split into turns, one for each sentence, and pauses, in order; also return the problems found."""
    speaker, begin, said, corrected, merged, tagged = 1, 0, 0, 0, 0, False
    last_said = 0
    wrong: list[str] = []
    marks = [*MARK.finditer(text)]
    has_tags = any(mark[1] for mark in marks)
    for mark in [*marks, None]:
        chunk = text[begin : mark.start() if mark else len(text)]
        if WORD.search(chunk) or ROUND.search(chunk):
            if has_tags and not tagged and not said and limits.speakers > 1:
                problems.append(
                    Problem("note", say_to_all("script.no-tag", "The script does not begin with a speaker's tag, so [S1] speaks first."))
                )
            merged += tagged and last_said == speaker
            said, last_said, tagged = said + 1, speaker, False
        yield from _split_paragraphs(chunk, speaker, limits, problems)
        if mark is None:
            break
        begin = mark.end()
        if mark[1]:
            speaker, tagged = int(mark[1]), True
            corrected += mark[0] != f"[S{speaker}]"
            if not 1 <= speaker <= limits.speakers:
                wrong.append(mark[0])
        else:
            yield Pause(_read_pause_s(mark, problems))
    if wrong:
        problems.append(
            Problem(
                "fatal",
                say_to_all(
                    "script.speakers",
                    "{name} has {count} {count:speaker|speakers}, but the script uses {tags}. Give these lines to {known}.",
                    tags=tuple(dict.fromkeys(wrong[:5])),
                    name=word_name(limits.name),
                    count=limits.speakers,
                    known=limits.tags,
                ),
            )
        )
    elif corrected:
        problems.append(
            Problem(
                "note",
                say_to_all(
                    "script.tags",
                    "{count} {count:tag is|tags are} read as if written the usual way: {known}.",
                    count=corrected,
                    known=limits.tags,
                ),
            )
        )
    if merged:
        problems.append(
            Problem(
                "note",
                say_to_all(
                    "script.alternate",
                    "In {count} {count:place|places} a speaker has two lines in a row; they are joined into one turn.",
                    count=merged,
                ),
            )
        )


def _split_paragraphs(chunk: str, speaker: int, limits: VoiceLimits, problems: list[Problem]) -> Iterator[Turn | Pause]:
    paragraphs, pause_after_s = list_paragraphs(chunk, limits.letters is not None)
    for paragraph in paragraphs:
        if paragraph.pause_before_s:
            yield Pause(paragraph.pause_before_s, layout=True)
        if WORD.search(paragraph.text) or ROUND.search(paragraph.text):
            yield from (Turn(speaker, said) for said in spell_for(paragraph.text, limits, problems) if said)
    if pause_after_s:
        yield Pause(pause_after_s, layout=True)


def _read_pause_s(mark: re.Match[str], problems: list[Problem]) -> float:
    length = LENGTH.fullmatch(mark[2])
    if length is None:
        if mark[2].strip():
            problems.append(
                Problem(
                    "warning",
                    say_to_all("script.pause", "Hearth does not understand {mark}. Write it like this: (pause 0.5s).", mark=mark[0]),
                )
            )
        return PAUSE_S
    seconds = float(length[1]) / (1000 if (length[2] or "").lower() == "ms" else 1)
    if seconds > PAUSE_MOST_S:
        problems.append(
            Problem(
                "warning",
                say_to_all(
                    "script.pause-long", "{mark} is too long; the pause will last {most}.", mark=mark[0], most=word_duration(PAUSE_MOST_S)
                ),
            )
        )
    return min(seconds, PAUSE_MOST_S)
