"""Match a prompt to what a painter with a card of nouns was taught: the caption it gets, and what the person is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.base.sentence import Sentence
from app.engine.pictures.scenes.ahead import OF_A_THING
from app.engine.pictures.scenes.drafts import Denied
from app.engine.pictures.scenes.left_open import fill
from app.engine.pictures.scenes.possible import fit
from app.engine.pictures.scenes.read import read
from app.engine.pictures.scenes.scene import Scene, write
from app.engine.pictures.scenes.tables import Mark, Tables
from app.engine.pictures.scenes.words import Phrase, split_phrases


@dataclass(frozen=True, slots=True)
class Understood:
    """What a prompt was understood as."""

    scene: Scene
    caption: str
    """It is empty if there is nothing to paint."""
    lost: tuple[str, ...]
    """The prompt's words, in its order, tell what is replaced, changed or left out."""
    reasons: tuple[Sentence, ...]
    literal: bool
    """True: the caption says what was typed, as it was typed but for small words."""
    emptied: bool
    """True: nothing is left to paint because of what is unwanted."""
    times: tuple[str, ...]
    """These times fit as well, if none was said."""
    unwanted: frozenset[str]
    """None of these values may be chosen for what was not said."""


def understand(prompt: str, negative: str, tables: Tables) -> Understood:
    """Read a prompt, without what the negative prompt names."""
    phrases = split_phrases(prompt, tables)
    found = read(phrases)
    unwanted = [each for each in _list_unwanted(negative, tables) if each not in found.denied]
    fitted = fit(found, unwanted, tables.grammar)
    caption = write(fitted.scene, tables.grammar)
    replaced = [each.typed for each in phrases if each.source == "near" and not any(_denies(each, denied) for denied in found.denied)]
    lost = sorted({word.lower() for word in (*fitted.lost, *replaced)}, key=prompt.lower().find)
    known = all(each.source in ("", "taught") for each in phrases)
    known &= all(each.role != "preposition" for each in phrases)  # nothing is painted in something or behind it
    literal = not lost and known and _say_alike(phrases, split_phrases(caption, tables))
    return Understood(
        fitted.scene,
        caption,
        tuple(lost),
        tuple(dict.fromkeys(fitted.reasons)),
        literal,
        not caption and (fitted.changed or bool(found.denied)),
        fitted.times,
        fitted.unwanted,
    )


def vary(found: Understood, tables: Tables, seed: int) -> str:
    """Return the caption with what it leaves open chosen by the seed."""
    return write(fill(found.scene, found.times, found.unwanted, tables.grammar, seed), tables.grammar) if found.caption else ""


def _list_unwanted(negative: str, tables: Tables) -> list[Denied]:
    return read(split_phrases(negative, tables), unwanted=True).denied if negative.strip() else []


def _denies(phrase: Phrase, denied: Denied) -> bool:
    return any((mark.slot, mark.value) == (denied.slot, denied.value) for mark in phrase.marks)


def _say_alike(one: Sequence[Phrase], other: Sequence[Phrase]) -> bool:
    """Whether two captions say the same of the same things in the same order, and the same around them; "left of" is as good as places."""
    marks, others = ([mark for phrase in each for mark in phrase.marks if mark != Mark("time", "day")] for each in (one, other))
    by_relation = any(mark.slot == "relation" for mark in marks)
    ignored = ("place", "relation") if by_relation else ()
    of_things = ("noun", *OF_A_THING)

    def split(said: Sequence[Mark]) -> tuple[list[Mark], set[Mark]]:
        return [each for each in said if each.slot in of_things], {each for each in said if each.slot not in (*of_things, *ignored)}

    return split(marks) == split(others)
