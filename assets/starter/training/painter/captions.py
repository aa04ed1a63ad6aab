"""Describe a scene in varied English. The engine checks prompts against the same words."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from assets.starter.training.painter.scenes import COLOURS, HOUSE_COLOURS, SAIL_COLOURS, SHAPES, Scene, Thing

NUMBERS = {2: ("two", "2"), 3: ("three", "3")}
OPENINGS = ("", "", "", "", "", "a picture of ", "a drawing of ", "an illustration of ", "a painting of ")
PLACE_WORDS = {
    "middle": ("in the middle", "in the centre", "in the center"),
    "left": ("at the left", "on the left", "on the left side"),
    "right": ("at the right", "on the right", "on the right side"),
    "top": ("at the top",),
    "bottom": ("at the bottom",),
    "top left": ("at the top left", "in the top left corner"),
    "top right": ("at the top right", "in the top right corner"),
    "bottom left": ("at the bottom left", "in the bottom left corner"),
    "bottom right": ("at the bottom right", "in the bottom right corner"),
}
RELATION_WORDS = {
    "left of": ("left of", "to the left of", "on the left of"),
    "right of": ("right of", "to the right of", "on the right of"),
    "above": ("above", "over"),
    "below": ("below", "under"),
}
SYNONYMS = {"big": ("big", "large"), "small": ("small", "little")}
TIME_WORDS = {
    "day": ("by day", "in the daytime", "on a sunny day", "on a clear day"),
    "sunset": ("at sunset", "in the evening", "at dusk"),
    "night": ("at night", "by night", "on a starry night"),
}
GROUND_WORDS = {
    "green hills": ("green hills", "rolling green hills", "grassy hills", "a green meadow"),
    "snowy hills": ("snowy hills", "snow", "hills covered in snow", "a winter landscape"),
    "dunes": ("sand dunes", "a desert", "desert dunes"),
    "sea": ("the sea", "the ocean", "a calm sea"),
}
THING_WORDS = {"house": ("house", "cottage"), "boat": ("sailboat", "boat", "sailing boat"), "tree": ("tree", "round tree"),
               "pine": ("pine tree", "pine", "fir tree"), "moon": ("full moon", "moon"), "sun": ("sun",)}  # fmt: skip
MOUNTAIN_WORDS = ("mountains behind", "mountains in the background", "snowy mountains", "mountains")
CLOUD_WORDS = ("white clouds", "clouds", "a few clouds")


def _with_article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _word(rng: random.Random, name: str) -> str:
    return rng.choice(SYNONYMS.get(name, (name,)))


def _shape(rng: random.Random, thing: Thing) -> str:
    size = "" if thing.size == "medium" else _word(rng, thing.size) + " "
    return f"{size}{_word(rng, thing.colour)} {_word(rng, thing.kind)}"


def _say_shapes(rng: random.Random, scene: Scene) -> str:
    first = scene.things[0]
    if scene.pattern == "row":
        number = rng.choice(NUMBERS[len(scene.things)])
        subject = f"{number} {_word(rng, first.colour)} {first.kind}s" + rng.choice((" in a row", ""))
    elif scene.pattern == "pair":
        subject = f"{_with_article(_shape(rng, first))} {rng.choice(RELATION_WORDS[scene.relation])} "
        subject += _with_article(_shape(rng, scene.things[1]))
    else:
        subject = _with_article(_shape(rng, first))
        if first.place != "middle" or rng.random() < 0.3:
            subject += " " + rng.choice(PLACE_WORDS[first.place])
    ground = _word(rng, scene.background)
    return rng.choice(
        (
            f"{rng.choice(OPENINGS)}{subject} on {_with_article(ground)} background",
            f"{rng.choice(OPENINGS)}{subject} on {_with_article(ground)} background",
            f"{subject}, {ground} background",
            f"on {_with_article(ground)} background, {subject}",
            f"{_with_article(ground)} background with {subject}",
        )
    )


def _say_thing(rng: random.Random, kind: str, things: Sequence[Thing]) -> str:
    """Describe one or two things of a kind; two trees share a phrase."""
    word = rng.choice(THING_WORDS.get(kind, (kind,)))
    colour = things[0].colour + " " if kind in ("house", "boat") else ""
    places = [rng.choice(PLACE_WORDS[t.place]) for t in things if t.place]
    if len(things) == 2:
        return f"two {word}s {places[0]} and {places[1]}" if len(places) == 2 else f"two {word}s"
    place = " " + places[0] if places else ""
    if kind in ("sun", "moon") and rng.random() < 0.4:
        return f"the {word}{place}"
    return _with_article(colour + word) + place


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _say_landscape(rng: random.Random, scene: Scene) -> str:
    ground, time = rng.choice(GROUND_WORDS[scene.ground]), rng.choice(TIME_WORDS[scene.background])
    if scene.background == "day" and not any(t.kind == "sun" for t in scene.things):
        time = rng.choice(("by day", "in the daytime", "on a clear day"))
    kinds = list(dict.fromkeys(t.kind for t in scene.things))
    parts = [_say_thing(rng, kind, [t for t in scene.things if t.kind == kind]) for kind in kinds]
    if scene.mountains:
        parts.append(rng.choice(MOUNTAIN_WORDS))
    if scene.clouds:
        parts.append(rng.choice(CLOUD_WORDS))
    rng.shuffle(parts)
    where = f"{rng.choice(OPENINGS)}{ground} {time}"
    form = rng.randrange(4)
    if not parts:
        return where if form < 2 else f"{time}, {ground}"
    if form == 0:
        return f"{where} with {_join(parts)}"
    if form == 1:
        return f"{where}, {_join(parts)}"
    if form == 2:
        return f"{time}, {ground} with {_join(parts)}"
    return f"{_join(parts)}, {ground} {time}"


def say(scene: Scene, seed: int) -> str:
    """Return a caption of the scene; its wording depends on the seed."""
    rng = random.Random(seed)
    return _say_landscape(rng, scene) if scene.pattern == "landscape" else _say_shapes(rng, scene)


def grammar() -> dict[str, Any]:
    """Return the captions' language as tables, with which the engine reads prompts."""
    return {
        "colours": list(COLOURS), "shapes": list(SHAPES), "things": {k: list(v) for k, v in THING_WORDS.items()} | {"crescent moon": ["crescent moon"]},
        "colours_of": {"house": list(HOUSE_COLOURS), "boat": list(SAIL_COLOURS)},
        "size": {k: list(v) for k, v in SYNONYMS.items()}, "count": {str(k): list(v) for k, v in NUMBERS.items()},
        "place": {k: list(v) for k, v in PLACE_WORDS.items()}, "relation": {k: list(v) for k, v in RELATION_WORDS.items()},
        "time": {k: list(v) for k, v in TIME_WORDS.items()}, "ground": {k: list(v) for k, v in GROUND_WORDS.items()},
        "extra": {"mountains": list(MOUNTAIN_WORDS), "clouds": list(CLOUD_WORDS)},
    }  # fmt: skip


def words_of(captions: Sequence[str]) -> list[str]:
    """Return every word of these captions, sorted."""
    return sorted({word for caption in captions for word in re.findall(r"[a-z0-9]+", caption.lower())})
