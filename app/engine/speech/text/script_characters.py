"""Clean the characters of a script: plain quotes and dashes, no control characters but line ends; a word on what a voice cannot read."""

from __future__ import annotations

import unicodedata
from typing import Final

from app.base.sentence import Sentence, say_to_all
from app.engine.models.model_names import word_name
from app.engine.models.voice_limits import VoiceLimits, name_main
from app.engine.speech.text.likely_language import guess_language, name_language
from app.engine.speech.text.script_problem import Problem
from app.engine.speech.text.written_out import can_read

ACCENTS_MOST = 30
LATIN: Final = frozenset({"en", "de", "es", "fr", "it", "nl", "pt"})
"""These languages are written in Latin letters: to a voice that speaks another one too, no character is strange."""
PLAIN = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("–—―", " - "), "−": "-", "‐": "-", "‑": "-",
        "…": "...", "\u00a0": " ", "\u202f": " ", "\u200b": "", "\u200d": "", "\ufeff": "", "\u00ad": "",
    }
)  # fmt: skip


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


def clean_text(text: str, limits: VoiceLimits, problems: list[Problem]) -> str:
    plain = unicodedata.normalize("NFC", _limit_accents(text)).translate(PLAIN)
    replaced = sum(text.count(chr(code)) for code in PLAIN if chr(code) not in "\u00a0\u202f\u200b\u200d\ufeff\u00ad")
    if replaced and limits.letters is None:
        problems.append(
            Problem(
                "note",
                say_to_all(
                    "script.typographic",
                    "Curly quotes, long dashes and similar characters are replaced by plain ones, which {name} reads better: {count}.",
                    name=word_name(limits.name),
                    count=replaced,
                ),
            )
        )
    for line_end in ("\r\n", "\r", "\u2028"):
        plain = plain.replace(line_end, "\n")
    for paragraph_end in ("\u2029", "\f"):
        plain = plain.replace(paragraph_end, "\n\n")
    visible = "".join(each if each == "\n" or unicodedata.category(each)[0] != "C" else " " for each in plain)
    if strange := list_strange(visible, limits):
        problems.append(Problem("warning", _name_strange(" ".join(strange[:12]), limits)))
    elif (other := find_other_language(visible, limits)) is not None:
        problems.append(Problem("warning", other))
    return visible


def find_other_language(text: str, limits: VoiceLimits) -> Sentence | None:
    """Say that a text seems to be in a language that the voice does not speak."""
    seems = guess_language(text)
    if not seems or limits.speaks(seems):
        return None
    return say_to_all(
        "script.other-language",
        "This seems to be {language}. {name} speaks {spoken} only, so it may not be understood.",
        language=name_language(seems),
        name=word_name(limits.name),
        spoken=tuple(name_language(name_main(each)) for each in limits.languages),
    )


def list_strange(text: str, limits: VoiceLimits) -> list[str]:
    return sorted({each for each in text if not each.isascii() and is_strange(each, limits)})


def is_strange(sign: str, limits: VoiceLimits) -> bool:
    """Tell whether a voice skips a character, or makes noise of it."""
    if unicodedata.category(sign).startswith("Z"):
        return False
    if limits.letters is not None:
        return not can_read(sign)
    return ord(sign) > 0x24F and LATIN.issuperset(map(name_main, limits.languages))


def _name_strange(signs: str, limits: VoiceLimits) -> Sentence:
    if limits.letters is not None:
        return say_to_all(
            "script.skipped", "{name} only reads English. It skips these characters: {signs}", name=word_name(limits.name), signs=signs
        )
    if limits.languages != ("en",):
        return say_to_all(
            "script.not-known",
            "{name} may not know these characters; they may come out as noise: {signs}",
            name=word_name(limits.name),
            signs=signs,
        )
    return say_to_all(
        "script.not-english",
        "{name} only knows English. These characters may come out as noise: {signs}",
        name=word_name(limits.name),
        signs=signs,
    )
