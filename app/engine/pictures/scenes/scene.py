"""What a caption means to a painter: up to a few groups of things, and the whole around them; and the plain caption that its text encoder learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any


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


def write(scene: Scene, grammar: Mapping[str, Any]) -> str:
    """Return the caption; empty if there is nothing to paint."""
    groups = scene.groups
    if len(groups) == 1 and groups[0].place == "middle" and not scene.ground:
        groups = (replace(groups[0], place=""),)  # it is where a lone thing stands anyhow
    things = [_write_group(group, grammar) for group in groups]
    if scene.ground:
        around = [grammar["weather"][scene.weather][0]] if scene.weather else []
        around += [grammar["mountains"][0]] if scene.mountains else []
        words = grammar["ground"][scene.ground][0]
        words += f" {grammar['time'][scene.time][0]}" if scene.time != "day" else ""
        words += f" with {_join(things + around)}" if things + around else ""
    elif things:
        words = _join(things) + (f" on {_with_article(scene.background)} background" if scene.background else "")
    else:
        return ""
    return f"{words}, {grammar['style'][scene.style][-1]}" if scene.style else str(words)


def _write_group(group: Group, grammar: Mapping[str, Any]) -> str:
    noun = grammar["nouns"][group.kind]["plural"] if group.count > 1 else group.kind
    size = grammar["size"][group.size][0] if group.size else ""
    name = " ".join(word for word in (size, group.colour, noun) if word)
    name = f"{grammar['count'][str(group.count)][0]} {name}" if group.count > 1 else _with_article(name)
    return f"{name} {grammar['place'][group.place][0]}" if group.place else name


def _with_article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
