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
from app.base.trouble import Trouble
from app.base.unknown_words import MARKED_MOST, Unknown
from app.engine.pictures.prompts.prompt_weights import NO_WEIGHTS, has_weights
from app.engine.pictures.scenes.chinese import find_typed, is_chinese, read_chinese, write_chinese
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
    """This caption is painted: what the prompt was read as, in the words that were learned; empty if that is nothing."""
    note: Sentence | None = None
    """It tells the caption, where that is not what was typed, and what it lost."""
    offered: tuple[str, ...] = ()
    """One may choose from these captions: the read one if it lost something, examples if nothing was read."""
    reasons: tuple[Sentence, ...] = ()
    """They say why it loses something."""
    lost: tuple[str, ...] = ()
    """The prompt's words tell what is changed or left out."""


def match_prompt(folder: Path, prompt: str, negative: str = "") -> Match:
    """Read any scene, in English or simple Chinese, and the negative prompt as what is not in it. Weights are ignored."""
    if not prompt.strip():
        return Match(prompt)
    tables, chinese = read_tables(folder), is_chinese(prompt)
    english = read_chinese(prompt)
    found = understand(english, read_chinese(negative), tables)
    lost = tuple(find_typed(prompt, each) for each in found.lost) if chinese else found.lost
    weighted = has_weights(prompt)
    if not found.caption:
        offered = _choose_examples(read_card(folder), prompt)
        if not lost and not found.emptied and re.search(r"\w", english):  # "paint something nice"
            return Match(offered[0], say_to_all("starter.painting", "Painting: {caption}.", caption=offered[0]), offered)
        if chinese:
            offered = tuple(write_chinese(understand(each, "", tables).scene) for each in offered)
        if found.emptied:
            return Match(
                "", say_to_all("starter.emptied", "The prompt leaves nothing to paint. Try: {caption}.", caption=offered[0]), offered
            )
        unknown = lost or re.findall(r"\w+", prompt.lower()) or prompt.split()
        return Match("", _say_unknown(unknown, offered[0]), offered, found.reasons, lost)
    reasons = found.reasons + ((NO_WEIGHTS,) if weighted else ())
    if found.literal and not weighted and not chinese:
        return Match(found.caption)
    shown = write_chinese(found.scene) if chinese else found.caption
    if not lost:
        return Match(found.caption, say_to_all("starter.painting", "Painting: {caption}.", caption=shown), reasons=reasons)
    told = say_to_all(
        "starter.nearest", "Painting: {caption}. Changed or left out: {words}. {advice}", caption=shown, words=lost[:NAMED], advice=ANYTHING
    )
    return Match(found.caption, told, (shown,), reasons, lost)


def require_match(folder: Path, prompt: str, negative: str) -> Match:
    """As `match_prompt`; raise Trouble where nothing was read: another picture than was asked for is of no use to anybody."""
    match = match_prompt(folder, prompt, negative)
    if not match.caption and match.note is not None:
        raise Trouble(match.note)
    return match


def choose_caption(folder: Path, prompt: str, negative: str, seed: int) -> str:
    """Return the caption that is painted with this seed: what the prompt leaves open is chosen by it, so that the pictures differ."""
    tables = read_tables(folder)
    found = understand(read_chinese(prompt), read_chinese(negative), tables)
    return vary(found, tables, seed) or require_match(folder, prompt, negative).caption


def _choose_examples(card: Mapping[str, Any], prompt: str) -> tuple[str, ...]:
    examples = card["examples"]
    return tuple(examples[(len(prompt) + place) % len(examples)] for place in range(OFFERED))


def _say_unknown(words: Sequence[str], caption: str) -> Sentence:
    return say_to_all(
        "starter.unknown",
        "The starter painter cannot paint: {words}. Try: {caption}. {advice}",
        words=tuple(words[:NAMED]),
        caption=caption,
        advice=ANYTHING,
    )


def list_unknown(folder: Path, prompt: str, lost: Sequence[str] = ()) -> list[Unknown]:
    """List the words of a prompt that its card does not have, and those that are `lost` for another reason, in order. Of a Chinese one, which is
    read in other words, those that are lost alone."""
    chinese = is_chinese(prompt)
    marked = () if chinese else islice(list_marked(split_phrases(prompt, read_tables(folder))), MARKED_MOST)
    found = [Unknown(each.begin, each.end, each.near) for each in marked]
    for word in lost[:MARKED_MOST]:
        shape = re.escape(word) if chinese else rf"(?<!\w){re.escape(word)}(?!\w)"
        places = (Unknown(*each.span()) for each in re.finditer(shape, prompt, re.IGNORECASE))
        found += [place for place in places if all(place.end <= other.begin or other.end <= place.begin for other in found)]
    return sorted(found)


def is_foreign(prompt: str) -> bool:
    """Tell whether a prompt has words in other letters than Latin and Chinese ones, which the painter does not read at all."""
    return any(letter.isalpha() and not unicodedata.name(letter, "LATIN").startswith(("LATIN", "CJK UNIFIED")) for letter in prompt)
