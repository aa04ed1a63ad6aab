"""Match a prompt to the captions the starter painter learned, and say what it gets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from app.base.sentence import Sentence, say, say_to_all
from app.base.unknown_words import MARKED_MOST, Unknown
from app.engine.pictures.prompts.prompt_weights import NO_WEIGHTS, has_weights
from app.engine.pictures.scenes.match import understand, vary
from app.engine.pictures.scenes.tables import read_card, read_tables
from app.engine.pictures.scenes.words import list_marked, split_phrases

NAMED: Final = 8
"""At most this many words are named as left out."""
OFFERED: Final = 3
ANYTHING: Final = say("owner.anything", "To paint anything, use Stable Diffusion 1.5.")


@dataclass(frozen=True, slots=True)
class Match:
    caption: str
    """The caption that is painted: what the prompt was read as, in the words that were learned."""
    note: Sentence | None = None
    """The caption, where it is not what was typed, and what it lost."""
    offered: tuple[str, ...] = ()
    """Captions to choose from: the read one if it lost something, examples if nothing was read."""
    reasons: tuple[Sentence, ...] = ()
    """Why it loses something."""
    lost: tuple[str, ...] = ()
    """What is changed or left out, in the prompt's words."""


def match_prompt(folder: Path, prompt: str, negative: str = "") -> Match:
    """Read any scene, and the negative prompt as what is not in it. Weights are ignored."""
    if not prompt.strip():
        return Match(prompt)
    found = understand(prompt, negative, read_tables(folder))
    weighted = has_weights(prompt)
    if not found.caption:
        offered = _choose_examples(read_card(folder), prompt)
        if found.emptied:
            told = say_to_all(
                "starter.emptied", "The prompt leaves nothing to paint. This is painted instead: {caption}.", caption=offered[0]
            )
            return Match(offered[0], told, offered)
        unknown = found.lost or re.findall(r"\w+", prompt.lower()) or prompt.split()
        return Match(offered[0], _say_unknown(unknown, offered[0]), offered, found.reasons, found.lost)
    reasons = found.reasons + ((NO_WEIGHTS,) if weighted else ())
    if found.literal and not weighted:
        return Match(found.caption)
    if not found.lost:
        return Match(found.caption, say_to_all("starter.painting", "Painting: {caption}.", caption=found.caption), reasons=reasons)
    told = say_to_all(
        "starter.nearest",
        "Painting: {caption}. Changed or left out: {words}. {advice}",
        caption=found.caption,
        words=found.lost[:NAMED],
        advice=ANYTHING,
    )
    return Match(found.caption, told, (found.caption,), reasons, found.lost)


def choose_caption(folder: Path, prompt: str, negative: str, seed: int) -> str:
    """Return the caption that is painted with this seed: what the prompt leaves open is chosen by it, so that the pictures differ."""
    tables = read_tables(folder)
    return vary(understand(prompt, negative, tables), tables, seed) or match_prompt(folder, prompt, negative).caption


def _choose_examples(card: Mapping[str, Any], prompt: str) -> tuple[str, ...]:
    examples = card["examples"]
    return tuple(examples[(len(prompt) + place) % len(examples)] for place in range(OFFERED))


def _say_unknown(words: Sequence[str], caption: str) -> Sentence:
    return say_to_all(
        "starter.unknown",
        "The starter painter cannot paint: {words}. It paints this instead: {caption}. {advice}",
        words=tuple(words[:NAMED]),
        caption=caption,
        advice=ANYTHING,
    )


def list_unknown(folder: Path, prompt: str, lost: Sequence[str] = ()) -> list[Unknown]:
    """List the words of a prompt that its card does not have, and those that are `lost` for another reason, in order."""
    marked = islice(list_marked(split_phrases(prompt, read_tables(folder))), MARKED_MOST)
    found = [Unknown(each.begin, each.end, each.near) for each in marked]
    for word in lost[:MARKED_MOST]:
        places = (Unknown(*each.span()) for each in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", prompt, re.IGNORECASE))
        found += [place for place in places if all(place.end <= other.begin or other.end <= place.begin for other in found)]
    return sorted(found)


def is_not_english(prompt: str) -> bool:
    """Tell whether a prompt has words in letters other than Latin ones, which the painter does not read at all."""
    return any(letter.isalpha() and not unicodedata.name(letter, "LATIN").startswith("LATIN") for letter in prompt)
