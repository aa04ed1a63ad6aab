"""Free captions become scenes: the training's own read as themselves, other sentences as what they mean, and what is lost is named."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.engine.text import starter_words
from app.engine.text.scenes.match import understand
from app.engine.text.scenes.scene import Group, Scene
from app.engine.text.scenes.small_words import ROLE_OF
from app.engine.text.scenes.tables import make_tables
from app.engine.text.scenes.words import split_phrases
from assets.starter.training.pictures.captions import grammar, say
from assets.starter.training.pictures.pack import EXAMPLES
from assets.starter.training.pictures.scenes import scene
from assets.starter.training.pictures.synonyms import ALSO, NEAR
from tests.support.free_captions import HELD_BACK, TUNED_ON

GRAMMAR = grammar()
TABLES = make_tables(GRAMMAR)


def read(prompt: str, negative: str = "") -> str:
    return understand(prompt, negative, TABLES).caption


def describe(found: Scene) -> tuple[list[str], list[str], list[str]]:
    """Return the things without a place in their order, those with one, and the whole, as the meanings beside the captions are written."""
    things = []
    for each in found.groups:
        words = (str(each.count) if each.count > 1 else "", each.size, each.colour, each.kind)
        things.append(" ".join(filter(None, words)) + (f"@{each.place}" if each.place else ""))
    whole = [found.ground, found.time if found.ground and found.time != "day" else "", found.weather, "mountains" if found.mountains else "", found.style]
    return (
        [each for each in things if "@" not in each],
        sorted(each for each in things if "@" in each),
        sorted(filter(None, [*whole, f"on {found.background}" if found.background else ""])),
    )


def parse(meaning: str) -> tuple[list[str], list[str], list[str]]:
    things, _, whole = (part.strip() for part in meaning.partition("|"))
    each = [word.strip() for word in things.split(",") if word.strip()]
    around = [whole] if whole.startswith("on ") else sorted(whole.split())
    return [word for word in each if "@" not in word], sorted(word for word in each if "@" in word), around


def list_wrong(meanings: Mapping[str, str]) -> list[str]:
    return [prompt for prompt, meaning in meanings.items() if describe(understand(prompt, "", TABLES).scene) != parse(meaning)]


def test_every_caption_of_the_training_reads_as_its_scene_without_a_note() -> None:
    for seed in range(2_000):
        asked, caption = scene(seed), say(scene(seed), seed)
        found = understand(caption, "", TABLES)
        groups = tuple(Group(each.kind, each.colour, each.size, each.count, each.place) for each in asked.groups)
        assert found.scene.groups == groups, caption
        for slot in ("background", "ground", "weather", "mountains", "style", *(["time"] if asked.ground else [])):
            assert getattr(found.scene, slot) == getattr(asked, slot), caption
        assert found.literal and not found.lost and not found.reasons, caption


def test_free_captions_are_read_as_they_are_meant() -> None:
    assert len(TUNED_ON) >= 150
    assert not list_wrong(TUNED_ON)


def test_captions_that_the_reader_was_not_made_for_mostly_are_too() -> None:
    assert len(HELD_BACK) >= 50
    wrong = list_wrong(HELD_BACK)
    assert 1 - len(wrong) / len(HELD_BACK) >= 0.75, wrong
