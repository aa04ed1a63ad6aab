"""Match a prompt to the captions the starter painter learned, and report the differences."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.engine.text.caption import find_lost
from app.engine.text.nearest_caption import find_nearest
from app.engine.text.prompt_weights import split_weights
from app.engine.text.unknown import Unknown, find_in_prompt
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


def match_prompt(folder: Path, prompt: str) -> Match:
    """Match by the words and the grammar of its card. Weights are ignored."""
    card = json.loads((folder / "starter.json").read_text("utf-8"))
    asked = "".join(text for text, _ in split_weights(prompt)).lower()
    near, learned = find_nearest(asked, card["grammar"])
    words = re.findall(r"\w+", asked)
    if not asked.strip() or (words and learned and set(words) <= set(card["words"])):
        return Match(prompt)
    missing = find_lost(asked, near, card["grammar"])
    if not near:
        examples = card["examples"]
        offered = tuple(examples[(len(prompt) + place) % len(examples)] for place in range(OFFERED))
        return Match(
            offered[0],
            say(
                "starter.unknown",
                "The starter painter cannot paint: {words}. It paints this instead: {caption}. {advice}",
                words=tuple((missing or words or asked.split())[:NAMED]),
                caption=offered[0],
                advice=ANYTHING,
            ),
            offered,
        )
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
    return find_in_prompt(prompt, json.loads((folder / "starter.json").read_text("utf-8"))["grammar"])
