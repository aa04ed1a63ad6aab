"""Read a file of captions beside which a person wrote down what they mean, and compare that with the scene that the reader makes of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.engine.pictures.scenes.scene import Group
from training.pictures.scenes import Scene, lay_out

SIZES = {"small": "small", "large": "big"}
STYLES = {"flat": "", "lamplight": "lamp"}
NEAR_MIDDLE = 0.12
"""A thing no farther from the middle is not at a side."""
SHOWN = {"clouds": ("clouds", "rain", "snowfall"), "cloud": ("clouds", "rain", "snowfall"), "star": ("night",)}
"""In these weathers and times it is seen too."""
SIDES = {"left": (0, -1), "right": (0, 1), "top": (1, -1), "bottom": (1, 1)}
RELATIONS = {"left of": (0, -1), "right of": (0, 1), "above": (1, -1), "below": (1, 1)}


def read_file(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return lists of captions by their names, each with `caption`, `things` (count, noun, colour, size, place), `ground`, `background`,
    `time`, `extras`, `style` and `not`; what is null may be any."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {"captions": found}


def _middles(scene: Scene) -> list[tuple[float, float]]:
    """Return the middle of each group's things."""
    spots, found = lay_out(scene), []
    for group in scene.groups:
        own = [spot for spot in spots if (spot.kind, spot.colour) == (group.kind, group.colour)][: group.count]
        spots = [spot for spot in spots if spot not in own]
        found.append((sum(spot.x for spot in own) / len(own), sum(spot.y for spot in own) / len(own)))
    return found


def _is(thing: Mapping[str, Any], group: Group) -> bool:
    size = SIZES.get(thing["size"] or "", "")
    return (
        (thing["noun"], thing["count"]) == (group.kind, group.count)
        and thing["colour"] in (None, group.colour)
        and size in ("", group.size)
    )


def _stands(place: str, at: tuple[float, float], land: bool) -> bool:
    """See whether a thing is at these sides; in a landscape the ground and the sky say how high."""
    if place == "middle":
        return abs(at[0] - 0.5) <= NEAR_MIDDLE and (land or abs(at[1] - 0.5) <= NEAR_MIDDLE)
    return all(way * (at[axis] - 0.5) > NEAR_MIDDLE for axis, way in map(SIDES.__getitem__, place.split()))


def misread(told: Mapping[str, Any], scene: Scene) -> list[str]:
    """List what the scene does not have of what was told, and what it has besides."""
    wrong, left = [], list(zip(scene.groups, _middles(scene), strict=True))
    found: list[tuple[float, float] | None] = []
    for thing in told["things"]:
        fitting = [each for each in left if _is(thing, each[0])]
        place = thing["place"] if isinstance(thing["place"], str) else ""
        fitting = [each for each in fitting if not place or _stands(place, each[1], bool(scene.ground))] or fitting
        if not fitting and thing["count"] > 1:  # "a tent between two pines" has each at its side
            fitting = [each for each in left if _is({**thing, "count": 1}, each[0])][: thing["count"]]
            if len(fitting) == thing["count"]:
                left = [each for each in left if each not in fitting]
                found.append(None)
                continue
            fitting = []
        plain = not any(thing[name] for name in ("colour", "size", "place"))
        if not fitting and plain and {scene.weather, scene.time if scene.ground else ""} & {*SHOWN.get(thing["noun"], ())}:
            found.append(None)
        elif not fitting:
            wrong.append(f"thing: {thing['noun']}")
            found.append(None)
        if not fitting:
            continue
        left.remove(fitting[0])
        found.append(fitting[0][1])
        if place and not _stands(place, fitting[0][1], bool(scene.ground)):
            wrong.append(f"place: {thing['noun']} {place}")
    for thing, own in zip(told["things"], found, strict=True):
        if own and isinstance(thing["place"], dict) and (other := found[thing["place"]["other"]]):
            axis, way = RELATIONS[thing["place"]["relation"]]
            wrong += [f"place: {thing['noun']} {thing['place']['relation']}"] if way * (own[axis] - other[axis]) <= 0 else []
    wrong += [f"besides: {group.kind}" for group, _ in left]
    return wrong + _misread_whole(told, scene)


def _misread_whole(told: Mapping[str, Any], scene: Scene) -> list[str]:
    asked = {"ground": "" if told["ground"] == "plain" else told["ground"], "background": told["background"], "time": told["time"]}
    asked["style"] = STYLES.get(told["style"], told["style"])
    wrong = [
        f"{name}: {getattr(scene, name) or 'none'} for {value or 'none'}"
        for name, value in asked.items()
        if value is not None and getattr(scene, name) != value
    ]
    seen: Sequence[str] = ("mountains",) * scene.mountains + (scene.weather,)
    wrong += [f"extra: {each}" for each in told["extras"] if not {each, *SHOWN.get(each, ())} & {*seen}]
    here = {scene.weather, *(group.kind for group in scene.groups), *("mountains",) * scene.mountains}
    return wrong + [f"unwanted: {each}" for each in told["not"] if each in here]
