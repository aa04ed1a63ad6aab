"""Choose by the seed what a caption leaves open, so that its pictures differ: colours, sizes, places, the background, the time and the sky."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.engine.pictures.scenes.scene import Group, Scene

COLUMNS: Final = ("left", "middle", "right")


class Chooser:
    """Chooses what is not said. Each choice depends on the seed and on what is chosen alone, so that the same seed paints the same picture."""

    def __init__(self, seed: int, unwanted: frozenset[str], grammar: Mapping[str, Any]) -> None:
        self.seed, self.unwanted, self.grammar = seed, unwanted, grammar

    def choose(self, what: str, values: Sequence[str]) -> str:
        """Return one of these values that is not unwanted; "" if there is none."""
        free = [value for value in values if value not in self.unwanted]
        return free[zlib.crc32(f"{self.seed} {what}".encode()) % len(free)] if free else ""


def fill(scene: Scene, times: Sequence[str], unwanted: frozenset[str], grammar: Mapping[str, Any], seed: int) -> Scene:
    """Return the scene with what it leaves open chosen by the seed. `times` are those that fit a landscape whose time was not said."""
    chooser = Chooser(seed, unwanted, grammar)
    groups = tuple(_colour(chooser, place, group, scene) for place, group in enumerate(scene.groups))
    if sum(group.count for group in groups) == 1:  # two big ones would grow together
        groups = (replace(groups[0], size=groups[0].size or chooser.choose("size", ("", "big"))),)
    if not scene.ground:
        used = {group.colour or grammar["nouns"][group.kind]["natural"][0] for group in groups}
        free = [colour for colour in grammar["backgrounds"] if colour not in used]
        return replace(scene, groups=groups, background=scene.background or chooser.choose("background", free))
    time = chooser.choose("time", times) or scene.time
    covered = time == "night" or any(_flies(group, grammar) for group in groups)  # clouds would hide stars, a sun or a bird
    weather = scene.weather or ("" if covered else chooser.choose("sky", ("", "clouds")))
    return replace(scene, groups=_spread(chooser, groups), time=time, weather=weather)


def _flies(group: Group, grammar: Mapping[str, Any]) -> bool:
    return "sky" in grammar["nouns"][group.kind]["zones"]


def _colour(chooser: Chooser, place: int, group: Group, scene: Scene) -> Group:
    """Give a thing one of its own colours, but none that is lost before what is behind it."""
    behind = {scene.background, *chooser.grammar["faint"].get(scene.ground, ())}
    own = [colour for colour in chooser.grammar["nouns"][group.kind]["natural"] if colour not in behind]
    return replace(group, colour=group.colour or chooser.choose(f"colour {place}", own))


def _spread(chooser: Chooser, groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """Put a thing without a place, alone on the ground or in the sky, into a column."""
    skies = [_flies(group, chooser.grammar) for group in groups]
    return tuple(
        replace(each, place=each.place or chooser.choose(f"place {sky}", COLUMNS)) if each.count == skies.count(sky) == 1 else each
        for each, sky in zip(groups, skies, strict=True)
    )
