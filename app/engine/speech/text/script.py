"""Check scripts and split them at turns into parts that a voice can speak at once. Pure, and fast enough for every key
press."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from app.base.duration import word_duration
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.request import Actor
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.text.script_characters import clean_text, list_strange
from app.engine.speech.text.script_marks import split_marks
from app.engine.speech.text.script_problem import Problem
from app.engine.speech.text.turns import ScriptPart, gather_parts

LONG_S = 600.0
PROBLEMS_TOLD = 100


@dataclass(frozen=True, slots=True)
class ParsedScript:
    parts: tuple[ScriptPart, ...]
    problems: tuple[Problem, ...]
    seconds_estimate: float
    pause_after_s: float = 0.0
    actors: tuple[Actor, ...] = ()
    """In a script with a cast (cast_script.py), the number of a speaker less one finds who speaks."""

    @property
    def fatal(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "fatal")

    def estimate_seconds(self, speed: float) -> float:
        """Estimate how long it lasts at a speed, which leaves the pauses as they are."""
        spoken_s = sum(part.seconds for part in self.parts)
        return self.seconds_estimate - spoken_s + spoken_s / speed


@functools.lru_cache(maxsize=8)
def parse_script(text: str, limits: VoiceLimits = DIA) -> ParsedScript:
    """Split a script into parts and list every problem; a fatal one means that it cannot be spoken. The result is
    cached: check, page, engine and delivery parse the same script once in each process."""
    problems: list[Problem] = []
    parts, pause_s = read_parts(text, limits, problems)
    seconds = sum(part.seconds + part.pause_before_s for part in parts) + pause_s
    if parts and seconds < limits.part_least_s:
        problems.append(
            Problem(
                "warning",
                say_to_all(
                    "script.short",
                    "This is only about {time} of speech. Below {least}, {name} often makes noise; write a little more.",
                    time=word_duration(seconds, exact=True),
                    name=word_name(limits.name),
                    least=word_duration(limits.part_least_s),
                ),
            )
        )
    problems += list_length(parts, seconds)
    return ParsedScript(tuple(parts), shorten_list(problems), seconds, pause_s)


def read_parts(text: str, limits: VoiceLimits, problems: list[Problem]) -> tuple[list[ScriptPart], float]:
    """Split a script into parts; return the pause after the last, too."""
    cleaned = clean_text(text, limits, problems)
    marks = tuple(split_marks(cleaned, limits, problems))
    parts, pause_s = gather_parts(marks, limits)
    if not parts:
        problems[:] = _name_lack(problems, limits, cleaned)
    return parts, pause_s


def list_length(parts: list[ScriptPart], seconds: float) -> list[Problem]:
    """Say that a script is long."""
    if seconds <= LONG_S:
        return []
    words = say_to_all(
        "script.long", "This script is long: {parts} {parts:part|parts}. Finished parts are kept if you stop.", parts=len(parts)
    )
    return [Problem("note", words)]


def _name_lack(problems: list[Problem], limits: VoiceLimits, cleaned: str) -> list[Problem]:
    """Say why nothing is left to speak: no words at all, or none that this voice reads, which says all there is to say."""
    if limits.letters is not None and list_strange(cleaned, limits):
        return [
            Problem(
                "fatal",
                say_to_all("script.no-english", "{name} can read none of this script. Write it in English.", name=word_name(limits.name)),
            )
        ]
    return [
        *problems,
        Problem("fatal", say_to_all("script.no-words", "The script has only tags, pauses or punctuation. Add some words to speak.")),
    ]


def require_speakable(text: str, limits: VoiceLimits = DIA) -> ParsedScript:
    """Return the script; raise a Trouble if this voice cannot speak it."""
    return require_no_fault(parse_script(text, limits))


def require_no_fault(checked: ParsedScript) -> ParsedScript:
    if checked.fatal:
        first, *others = checked.fatal
        cure = next((each.cure for each in checked.fatal if each.cure), "")
        raise Trouble(first.sentence, *(each.sentence for each in others), cure=cure)
    return checked


def shorten_list(problems: list[Problem]) -> tuple[Problem, ...]:
    """Keep what is fatal and the first of the others; a script may have a problem every three letters."""
    if len(problems) <= PROBLEMS_TOLD:
        return tuple(problems)
    fatal = [each for each in problems if each.severity == "fatal"]
    return (*[each for each in problems if each.severity != "fatal"][:PROBLEMS_TOLD], *fatal)
