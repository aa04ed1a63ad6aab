"""What a caption means to a painter: up to a few groups of things, and the whole around them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Group:
    """One thing or several alike; what is empty is not said."""

    kind: str
    colour: str = ""
    size: str = ""
    count: int = 1
    place: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """A landscape with its `ground`, or things before a plain background; an empty one is not said."""

    groups: tuple[Group, ...] = ()
    background: str = ""
    ground: str = ""
    time: str = ""
    weather: str = ""
    mountains: bool = False
    style: str = ""
