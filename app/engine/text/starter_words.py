"""Match a prompt to the captions the starter painter learned, and report the differences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from app.engine.text.caption import find_lost
from app.engine.text.nearest_caption import find_nearest
from app.engine.text.prompt_weights import NO_WEIGHTS, has_weights, split_weights
from app.engine.text.scenes.match import understand
from app.engine.text.scenes.tables import read_card, read_tables
from app.engine.text.scenes.words import list_marked, split_phrases
from app.engine.text.unknown import MARKED_MOST, Unknown, find_in_prompt
from app.sentence import Sentence, say

NAMED: Final = 8
"""At most this many words are named as left out."""
OFFERED: Final = 3
ANYTHING: Final = say("owner.anything", "To paint anything, use Stable Diffusion 1.5.")


@dataclass(frozen=True, slots=True)
class Match:
    caption: str
    """The caption that is painted: the prompt itself if it was learned, else the nearest one."""
    note: Sentence | None = None
    """How the caption differs from the prompt."""
    offered: tuple[str, ...] = ()
    """Captions to choose from if the prompt loses something."""
    reasons: tuple[Sentence, ...] = ()
    """Why it loses something."""
    negative: str = ""
    """What is left of the negative prompt for the text encoder."""


def match_prompt(folder: Path, prompt: str, negative: str = "") -> Match:
    """Match by the words and the grammar of its card. Weights are ignored."""
    card = read_card(folder)
    if "nouns" in card["grammar"]:
        return _match_scene(folder, prompt, negative)
    return replace(_match_caption(card, prompt), negative=negative)


def _match_scene(folder: Path, prompt: str, negative: str) -> Match:
    """Match to the second edition: any scene is read, and the negative prompt as what is not in it."""
    if not prompt.strip():
        return Match(prompt)
    found = understand(prompt, negative, read_tables(folder))
    weighted = has_weights(prompt)
    if not found.caption:
        offered = _choose_examples(read_card(folder), prompt)
        if found.emptied:
            told = say("starter.emptied", "The prompt leaves nothing to paint. This is painted instead: {caption}.", caption=offered[0])
            return Match(offered[0], told, offered)
        return Match(offered[0], _say_unknown(found.lost or tuple(re.findall(r"\w+", prompt.lower())), offered[0]), offered, found.reasons)
    reasons = found.reasons + ((NO_WEIGHTS,) if weighted else ())
    if found.literal and not weighted:
        return Match(found.caption)
    if not found.lost:
        return Match(found.caption, say("starter.painting", "Painting: {caption}.", caption=found.caption), reasons=reasons)
    told = say(
        "starter.nearest",
        "Painting: {caption}. Changed or left out: {words}. {advice}",
        caption=found.caption,
        words=found.lost[:NAMED],
        advice=ANYTHING,
    )
    return Match(found.caption, told, (found.caption,), reasons)


def _choose_examples(card: Mapping[str, Any], prompt: str) -> tuple[str, ...]:
    examples = card["examples"]
    return tuple(examples[(len(prompt) + place) % len(examples)] for place in range(OFFERED))


def _say_unknown(words: Sequence[str], caption: str) -> Sentence:
    return say(
        "starter.unknown",
        "The starter painter cannot paint: {words}. It paints this instead: {caption}. {advice}",
        words=tuple(words[:NAMED]),
        caption=caption,
        advice=ANYTHING,
    )


def _match_caption(card: Mapping[str, Any], prompt: str) -> Match:
    """Match to the first edition's captions."""
    asked = "".join(text for text, _ in split_weights(prompt)).lower()
    near, learned = find_nearest(asked, card["grammar"])
    words = re.findall(r"\w+", asked)
    if not asked.strip() or (words and learned and set(words) <= set(card["words"])):
        return Match(prompt)
    missing = find_lost(asked, near, card["grammar"])
    if not near:
        offered = _choose_examples(card, prompt)
        return Match(offered[0], _say_unknown(missing or words or asked.split(), offered[0]), offered)
    if not missing:
        return Match(near, say("starter.completed", "Painted as: {caption}.", caption=near))
    return Match(
        near,
        say(
            "starter.changed",
            "Painted as: {caption}. Changed or left out: {words}. {advice}",
            caption=near,
            words=tuple(missing[:NAMED]),
            advice=ANYTHING,
        ),
        (near,),
    )


def list_unknown(folder: Path, prompt: str) -> list[Unknown]:
    """List the words of a prompt that its card does not have."""
    grammar = read_card(folder)["grammar"]
    if "nouns" not in grammar:
        return find_in_prompt(prompt, grammar)
    marked = islice(list_marked(split_phrases(prompt, read_tables(folder))), MARKED_MOST)
    return [Unknown(each.begin, each.end, each.near) for each in marked]
