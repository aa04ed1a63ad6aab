"""Match prompts to what the starter painter learned: learned captions are painted as they are, others as the nearest, and what differs is named."""

from __future__ import annotations

import difflib
import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from app.engine.text import caption, starter_words
from app.engine.text.caption import ALIKE
from app.engine.text.nearest_caption import find_nearest
from app.paths import assets
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
    "a red square below a red square": "two red squares in a row on a white background",
    "a big red square below a red square": "two red squares in a row on a white background",
    "a house on the left and a tree on the left, green hills by day": "green hills by day with a red house at the left and a tree at the right",
    "a red circle and a red circle and a red circle and a red circle": "three red circles in a row on a white background",
    "a small red circle and a red circle": "a small red circle left of a red circle on a white background",
    "a big red circle in the middle": "a big red circle on a white background",
    "green hills by day with a house, a tree and a sun": "green hills by day with a red house at the left, a tree at the right and a sun at the left",
    "4 green hearts on a black background": "three green hearts in a row on a black background",
    "a red circle on a white background blue": "a red circle on a white background",
    "green hills by day with three trees": "green hills by day with two trees",
    "green hills by day with two houses": "green hills by day with a red house at the left",
}


def test_every_caption_of_the_training_passes() -> None:
    missed = [caption for seed in range(2_000) if not find_nearest(caption := say(scene(seed), seed), GRAMMAR)[1]]
    assert missed == []


@pytest.mark.parametrize("prompt", OFF)
def test_any_other_is_named_with_the_nearest_one(prompt: str) -> None:
    assert find_nearest(prompt, GRAMMAR) == (OFF[prompt], False)
    assert find_nearest(OFF[prompt], GRAMMAR) == (OFF[prompt], True), "what is offered was learned"


def test_what_is_offered_was_always_learned() -> None:
    """Two learned captions run into one are no caption any more."""
    for seed in range(400):
        offered, learned = find_nearest(f"{say(scene(seed), seed)} and {say(scene(seed + 1), seed)}", GRAMMAR)
        assert not learned and find_nearest(offered, GRAMMAR) == (offered, True), offered


def test_nothing_known_offers_nothing() -> None:
    assert find_nearest("a dragon on mars", GRAMMAR) == ("", False)


def test_the_card_holds_the_grammar_of_the_captions() -> None:
    assert grammar() == GRAMMAR


LOST = {
    "a red circle": [], "Blue.": [], "a house": [], "please paint a boat": [], "a calm sea at night without clouds": [],
    "a green ball on a white background": ["ball"], "four green hearts on a black background": ["four"], "two red circles and a blue star": ["two"],
    "a red circle on a red background": ["red"], "a red car": ["car"], "a (purple:1.2) house": ["purple"], "a big horse in the snow": ["big", "horse"],
    "a red circle at the bottom right and a blue star at the top left": ["at the bottom right", "at the top left"],
    "green hills by day with a red circle": ["green hills", "by day"], "a house on the left and a tree on the left": ["on the left"],
}  # fmt: skip


@pytest.mark.parametrize("prompt", LOST)
def test_what_a_caption_changes_or_leaves_out_is_named(prompt: str) -> None:
    match = starter_words.match_prompt(FOLDER, prompt)
    assert match.note is not None and find_nearest(match.caption, GRAMMAR) == (match.caption, True)
    values = dict(match.note.values)
    assert values["caption"] == match.caption
    assert match.note.key == ("starter.changed" if LOST[prompt] else "starter.completed")
    assert values.get("words", ()) == tuple(LOST[prompt])
    assert match.offered == ((match.caption,) if LOST[prompt] else ())


def test_what_was_learned_is_painted_as_it_is_written() -> None:
    prompt = "a (red:1.3) circle on a white background"
    assert starter_words.match_prompt(FOLDER, prompt) == starter_words.Match(prompt)


@pytest.mark.parametrize("prompt", ["quarterly report", "a dragon on (Mars:1.2)", "the right answer", "一个红色的圆"])
def test_where_nothing_was_learned_captions_are_offered_and_one_is_painted(prompt: str) -> None:
    match = starter_words.match_prompt(FOLDER, prompt)
    assert match.note is not None and match.note.key == "starter.unknown"
    assert len(set(match.offered)) == starter_words.OFFERED and match.caption == match.offered[0]
    assert all(find_nearest(each, GRAMMAR)[1] for each in match.offered)


def test_any_heap_of_words_is_painted_as_something_learned() -> None:
    card = json.loads((FOLDER / "starter.json").read_text("utf-8"))
    draw = random.Random(1)
    words = [*card["words"], *ALIKE, "boats", "houses", "suns", "dragon", "without", "7", "circel"]
    for _ in range(1_500):
        prompt = " ".join(draw.choices(words, k=draw.randint(1, 8)))
        caption = starter_words.match_prompt(FOLDER, prompt).caption
        assert find_nearest(caption, GRAMMAR)[1], (prompt, caption)


def test_several_of_a_thing_that_it_learned_once_stand_in_one_place() -> None:
    assert find_nearest("boats at the left and at the right", GRAMMAR)[0] == "the sea by day with a white boat at the left"


def test_a_long_prompt_of_words_that_are_nearly_known_is_split_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    real = difflib.get_close_matches

    def compare(word: str, possibilities: Sequence[str], *limits: Any) -> list[str]:
        compared.extend([word] * bool(possibilities))
        return real(word, possibilities, *limits)

    monkeypatch.setattr(difflib, "get_close_matches", compare)
    prompt = " ".join(f"circl{number}e" for number in range(2000)) + " cirkle cirkle"
    assert len(caption.split_phrases("a cirkle " + prompt, GRAMMAR)) > 1000
    assert compared.count("cirkle") == 1 and len(compared) == caption.UNKNOWN_MOST
