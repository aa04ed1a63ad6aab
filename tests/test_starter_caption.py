"""Prompts read as the starter painter was taught: learned captions pass, others are told with the nearest that it learned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine.painting import starter
from app.engine.painting.nearest import nearest
from app.paths import assets
from app.sentence import Trouble
from assets.starter.training.painter.captions import grammar, say
from assets.starter.training.painter.scenes import scene

FOLDER = assets() / "starter" / "painter"
GRAMMAR = json.loads((FOLDER / "starter.json").read_text("utf-8"))["grammar"]
OFF = {
    "two red circles and a blue star": "a red circle left of a blue star on a white background",
    "a red circle at the bottom right and a blue star at the top left on a pink background": "a red circle right of a blue star on a pink background",
    "a house": "green hills by day with a red house at the left",
    "four green hearts on a black background": "three green hearts in a row on a black background",
    "a red circle on a red background": "a red circle on a white background",
    "a redd circel on a white background": "a red circle on a white background",
    "a green ball on a white background": "a green circle on a white background",
    "a calm sea at night without clouds": "the sea at night",
    "a ship at dawn": "the sea at sunset with a white boat at the left",
    "green hills by day with a red circle": "a red circle on a white background",
    "a house on the left and a tree on the left, green hills by day": "green hills by day with a red house at the left and a tree at the right",
}  # fmt: skip


def test_every_caption_of_the_training_passes() -> None:
    missed = [caption for seed in range(2_000) if not nearest(caption := say(scene(seed), seed), GRAMMAR)[1]]
    assert missed == []


@pytest.mark.parametrize("prompt", OFF)
def test_any_other_is_named_with_the_nearest_one(prompt: str) -> None:
    assert nearest(prompt, GRAMMAR) == (OFF[prompt], False)
    assert nearest(OFF[prompt], GRAMMAR) == (OFF[prompt], True), "what is offered was learned"


def test_what_is_offered_was_always_learned() -> None:
    """Two learned captions run into one are no caption any more."""
    for seed in range(400):
        offered, learned = nearest(f"{say(scene(seed), seed)} and {say(scene(seed + 1), seed)}", GRAMMAR)
        assert not learned and nearest(offered, GRAMMAR) == (offered, True), offered


def test_nothing_known_offers_nothing() -> None:
    assert nearest("a dragon on mars", GRAMMAR) == ("", False)


def test_the_card_holds_the_grammar_of_the_captions() -> None:
    assert grammar() == GRAMMAR


def test_the_check_names_the_nearest_before_anything_is_painted(tmp_path: Path) -> None:
    starter.check(FOLDER, "a (red:1.3) circle on a white background")
    for prompt, key in (
        ("two red circles and a blue star", "starter.strange-form"),
        ("a red ball left of a dragon", "starter.strange-words"),
    ):
        with pytest.raises(Trouble) as told:
            starter.check(FOLDER, prompt)
        values = dict(told.value.sentence.values)
        assert told.value.sentence.key == key
        assert told.value.cure == f"nearest:{values['example']}"
        starter.check(FOLDER, str(values["example"]))
    with pytest.raises(Trouble) as told:
        starter.check(FOLDER, "a dragon")
    assert told.value.cure == "use:sd15"
