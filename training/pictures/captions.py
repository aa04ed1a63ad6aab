"""Describe a scene in English: the captions that the painter learns. The engine brings freer sentences into the same words."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

from app.engine.pictures.scenes.scene import Group
from training.pictures.scenes import Scene
from training.pictures.synonyms import ALSO, NEAR, ONLY_AT, OUTDOORS, SHOWS, USUAL_GROUND
from training.pictures.world import BACKGROUNDS, COLOURS, FAINT, LIGHTS, MOST_THINGS, NOUNS, OPEN_TIMES, PLACES, SHAPES

NUMBERS = {2: ("two", "2"), 3: ("three", "3"), 4: ("four", "4")}
PLACE_WORDS = {
    "middle": ("in the middle",), "left": ("at the left", "on the left"), "right": ("at the right", "on the right"),
    "top": ("at the top",), "bottom": ("at the bottom",), "top left": ("at the top left",), "top right": ("at the top right",),
    "bottom left": ("at the bottom left",), "bottom right": ("at the bottom right",),
}  # fmt: skip
RELATION_WORDS = {"left": "left of", "right": "right of", "top": "above", "bottom": "below"}
SIZE_WORDS = {"big": ("big", "large"), "small": ("small", "little")}
TIME_WORDS = {"day": ("by day",), "sunset": ("at sunset",), "night": ("at night", "by night")}
GROUND_WORDS = {
    "hills": ("green hills", "a meadow"),
    "snow": ("snowy hills", "snow"),
    "desert": ("a desert", "sand dunes"),
    "sea": ("the sea", "a calm sea"),
}
WEATHER_WORDS = {"clouds": ("clouds",), "rain": ("rain",), "snowfall": ("falling snow",), "rainbow": ("a rainbow",)}
MOUNTAIN_WORDS = ("mountains behind", "mountains")
STYLE_WORDS = {
    "watercolour": ("a watercolour of ", "in watercolour"),
    "pencil": ("a pencil drawing of ", "in pencil"),
    "lamp": ("", "in lamplight"),
}
PLURALS = {
    "person": "people",
    "snowman": "snowmen",
    "fish": "fish",
    "butterfly": "butterflies",
    "cactus": "cacti",
    "crescent moon": "crescent moons",
}


def plural(kind: str) -> str:
    return PLURALS.get(kind, kind + "s")


def with_article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _name(rng: random.Random, group: Group) -> str:
    size = rng.choice(SIZE_WORDS[group.size]) if group.size else ""
    noun = plural(group.kind) if group.count > 1 else group.kind
    words = " ".join(word for word in (size, group.colour, noun) if word)
    return f"{rng.choice(NUMBERS[group.count])} {words}" if group.count > 1 else with_article(words)


def _say_group(rng: random.Random, group: Group) -> str:
    return f"{_name(rng, group)} {rng.choice(PLACE_WORDS[group.place])}" if group.place else _name(rng, group)


def join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _say_groups(rng: random.Random, groups: Sequence[Group]) -> str:
    """Say two opposite things by their relation half of the time."""
    if [g.place for g in groups] in (["left", "right"], ["right", "left"], ["top", "bottom"], ["bottom", "top"]) and rng.random() < 0.5:
        return f"{_name(rng, groups[0])} {RELATION_WORDS[groups[0].place]} {_name(rng, groups[1])}"
    return join([_say_group(rng, group) for group in groups])


def say(scene: Scene, seed: int) -> str:
    """Return a caption of the scene; its wording depends on the seed."""
    rng = random.Random(seed)
    if scene.ground:
        where = rng.choice(GROUND_WORDS[scene.ground])
        if scene.time != "day" or rng.random() < 0.5:
            where += " " + rng.choice(TIME_WORDS[scene.time])
        parts = [_say_group(rng, group) for group in scene.groups]
        parts += [rng.choice(WEATHER_WORDS[scene.weather])] if scene.weather else []
        parts += [rng.choice(MOUNTAIN_WORDS)] if scene.mountains else []
        words = where if not parts else f"{where} with {join(parts)}" if rng.random() < 0.6 else f"{join(parts)}, {where}"
    else:
        words = _say_groups(rng, scene.groups)
        if scene.background:
            words += rng.choice((f" on {with_article(scene.background)} background", f", {scene.background} background"))
    if scene.style:
        before, after = STYLE_WORDS[scene.style]
        words = before + words if before and rng.random() < 0.5 else f"{words}, {after}"
    return words


def grammar() -> dict[str, Any]:
    """Return the captions' language as tables, with which the engine reads prompts."""
    return {
        "colours": list(COLOURS),
        "shapes": list(SHAPES),
        "nouns": {kind: {"plural": plural(kind), "natural": list(noun.natural), "zones": list(noun.zones)} for kind, noun in NOUNS.items()},
        "size": {k: list(v) for k, v in SIZE_WORDS.items()},
        "count": {str(k): list(v) for k, v in NUMBERS.items()},
        "place": {k: list(PLACE_WORDS[k]) for k in PLACES},
        "relation": dict(RELATION_WORDS),
        "time": {k: list(v) for k, v in TIME_WORDS.items()},
        "ground": {k: list(v) for k, v in GROUND_WORDS.items()},
        "weather": {k: list(v) for k, v in WEATHER_WORDS.items()},
        "mountains": list(MOUNTAIN_WORDS),
        "style": {k: [words.strip() for words in v if words] for k, v in STYLE_WORDS.items()},
        "lights": {k: list(v) for k, v in LIGHTS.items()},
        "most": MOST_THINGS,
        "also": ALSO,
        "near": NEAR,
        "shows": SHOWS,
        "outdoors": list(OUTDOORS),
        "only_at": ONLY_AT,
        "usual_ground": USUAL_GROUND,
        "backgrounds": list(BACKGROUNDS),
        "open_times": list(OPEN_TIMES),
        "faint": FAINT,
    }


def words_of(captions: Sequence[str]) -> list[str]:
    """Return every word of these captions, sorted."""
    return sorted({word for caption in captions for word in re.findall(r"[a-z0-9]+", caption.lower())})
