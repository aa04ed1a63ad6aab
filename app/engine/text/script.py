"""Check and clean scripts, and split them at turns into parts that a voice can speak at once. Pure, and fast enough for
every key press."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from app.duration import word_duration
from app.engine.text.model_names import word_name
from app.engine.text.turns import ScriptPart, Turn, gather_parts
from app.engine.text.voice_limits import DIA, NONVERBALS, VoiceLimits
from app.engine.text.written_out import can_read, punctuate_lines, write_out
from app.sentence import Sentence, Trouble, say

Severity = Literal["note", "warning", "fatal"]
PAUSE_S = 0.5
PAUSE_MOST_S = 30.0
LONG_S = 600.0
PROBLEMS_TOLD, ACCENTS_MOST = 100, 30

# Possessive quantifiers keep these linear: scripts come from guests and other programs, too.
MARK = re.compile(r"\[\s*+(?:s|speaker)\s*+(\d{1,6})\s*+\]|\(\s*+pause\b([^()]*+)\)", re.IGNORECASE)
LENGTH = re.compile(r"\s*+(\d{1,6}(?:\.\d{1,6})?)\s*+(ms|seconds?|sec|s)?+\s*+", re.IGNORECASE)
SQUARE = re.compile(r"\[([^\[\]]{0,40})\]")
ROUND = re.compile(r"\(([^()]{1,40})\)")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
PLAIN = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("–—―", " - "), "−": "-", "‐": "-", "‑": "-",
        "…": "...", "\u00a0": " ", "\u202f": " ", "\u200b": "", "\u200d": "", "\ufeff": "", "\u00ad": "",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    sentence: Sentence
    cure: str = ""


@dataclass(frozen=True, slots=True)
class ParsedScript:
    parts: tuple[ScriptPart, ...]
    problems: tuple[Problem, ...]
    seconds_estimate: float
    pause_after_s: float = 0.0

    @property
    def fatal(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "fatal")


@functools.lru_cache(maxsize=8)
def parse_script(text: str, limits: VoiceLimits = DIA) -> ParsedScript:
    """Split a script into parts and list every problem; a fatal one means that it cannot be spoken. The result is
    cached: check, page, engine and delivery parse the same script once in each process."""
    problems: list[Problem] = []
    marks = tuple(_split_marks(_clean(text, limits, problems), limits, problems))
    parts, pause_s = gather_parts(marks, limits)
    if not parts:
        problems.append(Problem("fatal", _name_lack(problems, limits)))
    seconds = sum(part.seconds + part.pause_before_s for part in parts) + pause_s
    if parts and seconds < limits.part_least_s:
        problems.append(
            Problem(
                "warning",
                say(
                    "script.short",
                    "This is only about {time} of speech. Below {least}, {name} often makes noise; write a little more.",
                    time=word_duration(seconds, exact=True),
                    name=word_name(limits.name),
                    least=word_duration(limits.part_least_s),
                ),
            )
        )
    if seconds > LONG_S:
        problems.append(
            Problem(
                "note",
                say(
                    "script.long",
                    "This is about {time} of speech in {parts} {parts:part|parts}. Finished parts are kept if you stop.",
                    time=word_duration(seconds),
                    parts=len(parts),
                ),
            )
        )
    return ParsedScript(tuple(parts), _shorten_list(problems), seconds, pause_s)


def _name_lack(problems: list[Problem], limits: VoiceLimits) -> Sentence:
    """Say why nothing is left to speak: no words at all, or none that this voice reads."""
    if any(each.sentence.key == "script.skipped" for each in problems):
        return say("script.no-english", "{name} can read none of this script. Write it in English.", name=word_name(limits.name))
    return say("script.no-words", "The script has only tags, pauses or punctuation. Add some words to speak.")


def require_speakable(text: str, limits: VoiceLimits = DIA) -> ParsedScript:
    """Return the script; raise a Trouble if this voice cannot speak it."""
    checked = parse_script(text, limits)
    if checked.fatal:
        first, *others = checked.fatal
        cure = next((each.cure for each in checked.fatal if each.cure), "")
        raise Trouble(first.sentence, *(each.sentence for each in others), cure=cure)
    return checked


def _shorten_list(problems: list[Problem]) -> tuple[Problem, ...]:
    """Keep what is fatal and the first of the others; a script may have a problem every three letters."""
    if len(problems) <= PROBLEMS_TOLD:
        return tuple(problems)
    fatal = [each for each in problems if each.severity == "fatal"]
    return (*[each for each in problems if each.severity != "fatal"][:PROBLEMS_TOLD], *fatal)


def _limit_accents(text: str) -> str:
    """Keep at most ACCENTS_MOST combining characters in a row: Python sorts them in quadratic time when it normalises."""
    if text.isascii():
        return text
    kept, run = [], 0
    for letter in text:
        run = run + 1 if unicodedata.combining(letter) else 0
        if run <= ACCENTS_MOST:
            kept.append(letter)
    return "".join(kept)


def _clean(text: str, limits: VoiceLimits, problems: list[Problem]) -> str:
    lines = text if limits.letters is None else punctuate_lines(text)
    plain = unicodedata.normalize("NFC", _limit_accents(lines)).translate(PLAIN)
    replaced = sum(text.count(chr(code)) for code in PLAIN if chr(code) not in "\u00a0\u202f\u200b\u200d\ufeff\u00ad")
    if replaced and limits.letters is None:
        problems.append(
            Problem(
                "note",
                say(
                    "script.typographic",
                    "Curly quotes, long dashes and similar characters are replaced by plain ones, which Dia reads better: {count}.",
                    count=replaced,
                ),
            )
        )
    visible = "".join(each if unicodedata.category(each)[0] != "C" else " " for each in plain)
    strange = sorted({each for each in visible if not each.isascii() and is_strange(each, limits)})
    if strange:
        problems.append(Problem("warning", _name_strange(" ".join(strange[:12]), limits)))
    return visible


def is_strange(sign: str, limits: VoiceLimits) -> bool:
    """Tell whether a voice skips a character, or makes noise of it."""
    if unicodedata.category(sign).startswith("Z"):
        return False
    return ord(sign) > 0x24F if limits.letters is None else not can_read(sign)


def _name_strange(signs: str, limits: VoiceLimits) -> Sentence:
    if limits.letters is not None:
        return say(
            "script.skipped", "{name} only reads English. It skips these characters: {signs}", name=word_name(limits.name), signs=signs
        )
    return say("script.not-english", "Dia only knows English. These characters may come out as noise: {signs}", signs=signs)


def _split_marks(text: str, limits: VoiceLimits, problems: list[Problem]) -> Iterator[Turn | float]:
    """Split into turns and pauses, in order; also return the problems found."""
    speaker, begin, said, corrected, merged, tagged = 1, 0, 0, 0, 0, False
    last_said = 0
    wrong: list[str] = []
    for mark in [*MARK.finditer(text), None]:
        chunk = " ".join(text[begin : mark.start() if mark else len(text)].split())
        if _WORD.search(chunk) or ROUND.search(chunk):
            if not tagged and not said:
                problems.append(
                    Problem("note", say("script.no-tag", "The script does not begin with a speaker's tag, so [S1] speaks first."))
                )
            merged += tagged and last_said == speaker
            said, last_said, tagged = said + 1, speaker, False
            if spelled := _spell_for(chunk, limits, problems):
                yield Turn(speaker, spelled)
        if mark is None:
            break
        begin = mark.end()
        if mark[1]:
            speaker, tagged = int(mark[1]), True
            corrected += mark[0] not in ("[S1]", "[S2]")
            if speaker not in (1, 2):
                wrong.append(mark[0])
        else:
            yield _read_pause_s(mark, problems)
    if wrong:
        problems.append(
            Problem(
                "fatal",
                say(
                    "script.speakers",
                    "{name} has only two speakers, [S1] and [S2], but the script uses {tags}. Give these lines to one of the two.",
                    tags=tuple(dict.fromkeys(wrong[:5])),
                    name=word_name(limits.name),
                ),
            )
        )
    elif corrected:
        problems.append(
            Problem(
                "note",
                say("script.tags", "{count} {count:tag is|tags are} read as [S1] or [S2], which is the usual spelling.", count=corrected),
            )
        )
    if merged:
        problems.append(
            Problem(
                "note",
                say(
                    "script.alternate",
                    "In {count} {count:place|places} a speaker has two lines in a row; they are joined into one turn.",
                    count=merged,
                ),
            )
        )


def _read_pause_s(mark: re.Match[str], problems: list[Problem]) -> float:
    length = LENGTH.fullmatch(mark[2])
    if length is None:
        if mark[2].strip():
            problems.append(
                Problem(
                    "warning", say("script.pause", "Hearth does not understand {mark}. Write it like this: (pause 0.5s).", mark=mark[0])
                )
            )
        return PAUSE_S
    seconds = float(length[1]) / (1000 if (length[2] or "").lower() == "ms" else 1)
    if seconds > PAUSE_MOST_S:
        problems.append(
            Problem(
                "warning",
                say("script.pause-long", "{mark} is too long; the pause will last {most}.", mark=mark[0], most=word_duration(PAUSE_MOST_S)),
            )
        )
    return min(seconds, PAUSE_MOST_S)


def _spell_for(text: str, limits: VoiceLimits, problems: list[Problem]) -> str:
    """Rewrite the text in characters the voice knows."""

    def square(found: re.Match[str]) -> str:
        inside = found[1].strip().lower()
        if inside in limits.nonverbals:
            return f"({inside})"
        problems.append(Problem("warning", _name_tag(found[0], limits)))
        return found[1]

    text = SQUARE.sub(square, text)
    for found in ROUND.finditer(text):
        inside = found[1].strip().lower()
        if limits.letters is not None and inside in NONVERBALS:
            problems.append(
                Problem(
                    "warning",
                    say(
                        "script.reads-sound",
                        "{name} reads {mark} aloud. {advice}",
                        mark=found[0],
                        name=word_name(limits.name),
                        advice=say("owner.dia-sounds", "Dia can make such sounds."),
                    ),
                    cure="use:dia-1.6b",
                )
            )
        elif limits.letters is None and len(inside.split()) <= 2 and inside not in limits.nonverbals:
            problems.append(
                Problem(
                    "warning",
                    say(
                        "script.nonverbal",
                        "{name} does not know the sound {mark}, which may come out as noise. It knows (laughs), (sighs), (coughs) and others.",
                        mark=found[0],
                        name=word_name(limits.name),
                    ),
                )
            )
    return text if limits.letters is None else write_out(text)


def _name_tag(mark: str, limits: VoiceLimits) -> Sentence:
    if not limits.nonverbals:
        return say(
            "script.square-plain",
            "{name} does not know the tag {mark}; it will be read aloud. Use [S1] and [S2].",
            mark=mark,
            name=word_name(limits.name),
        )
    return say(
        "script.square",
        "{name} does not know the tag {mark}; it will be read aloud. Use [S1] and [S2], and sounds such as (laughs).",
        mark=mark,
        name=word_name(limits.name),
    )
