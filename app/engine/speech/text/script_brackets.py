"""Check what stands in brackets in a turn, sounds such as (laughs), and write the turn in characters that the voice knows."""

from __future__ import annotations

import re

from app.base.sentence import Sentence, say, say_to_all
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import NONVERBALS, VoiceLimits
from app.engine.speech.text.script_problem import Problem
from app.engine.speech.text.sentences import split_sentences
from app.engine.speech.text.written_out import has_lower, write_out

# Bounded, which keeps them linear: scripts come from guests and other programs, too.
SQUARE = re.compile(r"\[([^\[\]]{0,40})\]")
ROUND = re.compile(r"\(([^()]{1,40})\)")
CUES = frozenset({"music", "jingle", "sfx"})
"""With one of these a podcast's script tells whoever cuts it what comes there: (music fades in)."""
CUE_WORDS_MOST = 4


def spell_for(text: str, limits: VoiceLimits, problems: list[Problem]) -> list[str]:
    """Return a paragraph's sentences in characters the voice knows."""

    def square(found: re.Match[str]) -> str:
        inside = found[1].strip().lower()
        if inside in limits.nonverbals:
            return f"({inside})"
        problems.append(Problem("warning", _name_tag(found[0], limits)))
        return found[1]

    text = SQUARE.sub(square, text)
    for found in ROUND.finditer(text):
        inside = found[1].strip().lower()
        sound = inside in NONVERBALS
        if limits.letters is not None and (sound or _is_cue(inside)):
            advice = (
                say("owner.dia-sounds", "Dia can make such sounds.")
                if sound
                else say("script.cue-advice", "Leave a pause for it, such as (pause 2s), and lay it in later.")
            )
            problems.append(
                Problem(
                    "warning",
                    say_to_all(
                        "script.reads-sound",
                        "{name} reads {mark} aloud. {advice}",
                        mark=found[0],
                        name=word_name(limits.name),
                        advice=advice,
                    ),
                    cure="use:dia-1.6b" if sound else "",
                )
            )
        elif limits.letters is None and len(inside.split()) <= 2 and inside not in limits.nonverbals:
            problems.append(
                Problem(
                    "warning",
                    say_to_all(
                        "script.nonverbal",
                        "{name} does not know the sound {mark}, which may come out as noise. It knows (laughs), (sighs), (coughs) and others.",
                        mark=found[0],
                        name=word_name(limits.name),
                    ),
                )
            )
    sentences = split_sentences(text)
    if limits.letters is None:
        return sentences
    spells_capitals = has_lower(text)
    return [write_out(sentence, spells_capitals) for sentence in sentences]


def _is_cue(inside: str) -> bool:
    words = inside.replace(":", " ").split()
    return len(words) <= CUE_WORDS_MOST and not CUES.isdisjoint(words)


def _name_tag(mark: str, limits: VoiceLimits) -> Sentence:
    if not limits.nonverbals:
        return say_to_all(
            "script.square-plain",
            "{name} does not know the tag {mark}; it will be read aloud. Use {known}.",
            mark=mark,
            name=word_name(limits.name),
            known=limits.tags,
        )
    return say_to_all(
        "script.square",
        "{name} does not know the tag {mark}; it will be read aloud. Use {known}, and sounds such as (laughs).",
        mark=mark,
        name=word_name(limits.name),
        known=limits.tags,
    )
