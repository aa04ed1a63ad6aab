"""Find the caption nearest to a prompt among those the starter painter learned. Pure: the window reads prompts, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from app.engine.text.caption import Item, PromptReading, read_prompt

OPPOSITE: Final = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}
LIGHTS: Final = ("sun", "moon", "crescent moon")
TREES: Final = ("tree", "pine")


def find_nearest(prompt: str, grammar: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the nearest learned caption, empty if no word of the prompt is known; and whether the prompt itself is
    one."""
    found = read_prompt(prompt, grammar)
    shapes = [item for item in found.items if item.kind in grammar["shapes"]]
    scenery = [item for item in found.items if item.kind not in grammar["shapes"]]
    landscape = bool(found.ground or found.extras) + len(scenery)
    if shapes and len(shapes) >= landscape:
        caption, exact = _describe_shapes(shapes, found, grammar)
        return caption, exact and not landscape and not found.time
    if landscape or found.time:
        caption, exact = _describe_landscape(scenery, found, grammar)
        return caption, exact and not shapes and not found.background and not found.relation
    return "", False


def _add_article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _describe_shapes(items: list[Item], found: PromptReading, grammar: Mapping[str, Any]) -> tuple[str, bool]:
    """Describe one thing, two side by side, or a row: the only plain pictures that were taught."""
    first, second = items[0], items[1] if len(items) > 1 else None
    taken = [item.colour for item in items]
    ground = found.background
    if not ground or ground in taken[:2]:
        ground = next(colour for colour in ("white", "black", "yellow") if colour not in taken[:2])
    spare = [colour for colour in ("red", "blue", "yellow") if colour not in (ground, *taken[:2])]
    colours = [item.colour or spare.pop(0) for item in items[:2]]
    exact = found.exact and ground == found.background and taken[:2] == colours
    places = grammar["place"]
    if second is None and first.count == 1:
        place = first.places[0] if first.places else ""
        size = first.size if not (first.size == "big" and place not in ("", "middle")) else ""
        words = " ".join(word for word in (size, colours[0], first.kind) if word)
        where = f" {places[place][0]}" if place and place != "middle" else ""
        return (f"{_add_article(words)}{where} on {_add_article(ground)} background", exact and size == first.size and not found.relation)
    small = [item.size == "small" for item in items]
    if second and (first.kind, small[0], colours[0]) == (second.kind, small[1], colours[1]):
        first, second, exact = replace(first, count=len(items)), None, False  # two equal things form a row
    if second is None:
        count = min(first.count, 3)
        number = grammar["count"][str(count)][0]
        exact &= count == first.count and not (first.size or first.places or found.relation)
        return f"{number} {colours[0]} {first.kind}s in a row on {_add_article(ground)} background", exact
    relation = found.relation or _relate(first, second)
    one, other = (
        " ".join(w for w in (i.size if i.size == "small" else "", c, i.kind) if w) for i, c in zip((first, second), colours, strict=True)
    )
    exact &= bool(found.relation) and len(items) == 2 and all(i.count == 1 and not i.places and i.size != "big" for i in items)
    return (
        f"{_add_article(one)} {grammar['relation'][relation][0]} {_add_article(other)} on {_add_article(ground)} background",
        exact and one != other,
    )


def _relate(first: Item, second: Item) -> str:
    """Return the first item's relation to the second, from their places."""
    one, other = (" ".join(item.places) for item in (first, second))
    for side, relation in (("left", "left of"), ("right", "right of"), ("top", "above"), ("bottom", "below")):
        if side in one and side not in other:
            return relation
        if side in other and side not in one:
            return OPPOSITE[relation]
    return "left of"


def _describe_landscape(items: list[Item], found: PromptReading, grammar: Mapping[str, Any]) -> tuple[str, bool]:
    """Describe ground and time, a light, then a boat on the sea or a house and trees on land, one in each column."""
    by_kind: dict[str, Item] = {}
    exact = found.exact and bool(found.ground and found.time)
    for item in items:
        exact &= item.kind not in by_kind
        by_kind.setdefault(item.kind, item)
    ground = found.ground or ("sea" if "boat" in by_kind else "green hills")
    light = next((kind for kind in LIGHTS if kind in by_kind), "")
    time = found.time or ("night" if "moon" in light else "day")
    fits = {"sun": time != "night", "moon": time == "night", "crescent moon": time == "night", "boat": ground == "sea", "house": ground != "sea",
            "tree": ground not in ("sea", "dunes"), "pine": ground not in ("sea", "dunes")}  # fmt: skip
    tree = next((kind for kind in TREES if kind in by_kind), "")
    said = {column for kind, item in by_kind.items() if kind not in LIGHTS for column in item.places}
    used: set[str] = set()
    parts = []
    for item in by_kind.values():
        if not fits[item.kind] or (item.kind in LIGHTS and item.kind != light) or (item.kind in TREES and item.kind != tree):
            exact = False
            continue
        words, same = _describe_thing(item, grammar, used if item.kind not in LIGHTS else set(), said)
        exact &= same
        parts.append(words)
    for extra in dict.fromkeys(found.extras):
        if (extra == "clouds" and time == "night") or (extra == "mountains" and ground == "dunes"):
            exact = False
            continue
        parts.append(grammar["extra"][extra][0])
    where = f"{grammar['ground'][ground][0]} {grammar['time'][time][0]}"
    return (
        f"{where} with {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"{where} with {parts[0]}" if parts else where
    ), exact


def _describe_thing(item: Item, grammar: Mapping[str, Any], used: set[str], said: set[str]) -> tuple[str, bool]:
    """Return the learned phrase nearest to an item, and whether it means the same."""
    colours = grammar["colours_of"].get(item.kind, [])
    own = "green" if item.kind in TREES else ""
    colour = item.colour if item.colour in colours else colours[0] if colours else ""
    exact = (
        item.colour in (colour, own if not colours else colour)
        and not item.size
        and (item.count == 1 or (item.kind in TREES and item.count == 2))
    )
    if item.kind in LIGHTS:
        exact = exact or item.colour == "yellow" == {"sun": "yellow"}.get(item.kind)
    columns = []
    for place in (item.places if item.kind in TREES else item.places[:1]) or ("",):
        column = next((c for c in ("left", "right", "middle") if c in place), "")
        exact &= place in ("", column) and (not column or column not in used)
        taken = used if place else used | said
        columns.append(column if column and column not in used else next((c for c in ("left", "right", "middle") if c not in taken), ""))
        used.add(columns[-1])
    where = " and ".join(grammar["place"][column][0] for column in columns if column)
    name = " ".join(word for word in (colour, item.kind) if word)
    if item.kind in TREES and item.count > 1:
        return f"two {item.kind}s" + (f" {where}" if len(columns) == 2 else ""), (exact and len(columns) == 2) or (
            exact and not item.places
        )
    return f"{_add_article(name)} {where}".rstrip(), exact
