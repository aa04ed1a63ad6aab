"""Draw random scenes of the world, and lay out where each thing stands. Knows no pixels and no words."""

from __future__ import annotations

import random
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from app.engine.pictures.scenes.scene import Group
from app.engine.pictures.scenes.scene import Scene as Said
from training.pictures.world import COLOURS, COLUMNS, GROUNDS, LIGHTS, MOST_THINGS, NOUNS, PLACES, SIZES, STYLES, TIMES, zone_of

HELD_OUT_IN = 12  # one combination of slots in so many is never trained on
SKY_LEVEL, GROUND_LEVEL = 0.2, 0.74
ROW_RADIUS = {1: 0.26, 2: 0.2, 3: 0.15, 4: 0.19}  # by how many things share the picture; four stand in two rows
MOST_RADIUS = {1: 0.34, 2: 0.235, 3: 0.16, 4: 0.21}
LEAST_RADIUS, WIDEST_ROOM = 0.085, 0.22
FREE_PLACES = ("middle", "left", "right", "top", "bottom", "top left", "bottom right", "top right", "bottom left")


@dataclass(frozen=True, slots=True)
class Scene(Said):
    """What the painter's reader makes of a caption, with the chances of a seed; here a landscape always has its time."""

    time: str = "day"
    seed: int = 0

    @property
    def key(self) -> str:
        """Return the scene without random details: scenes with equal keys fit the same captions."""
        return repr(replace(self, seed=0))

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.key.encode()) % HELD_OUT_IN == 0


@dataclass(frozen=True, slots=True)
class Spot:
    """Where one thing stands: shares of the picture."""

    kind: str
    colour: str
    x: float
    y: float
    radius: float


def _row(count: int, x: float, y: float, width: float) -> list[tuple[float, float]]:
    """Spread `count` points over this width around x."""
    return [(x + width * ((i + 0.5) / count - 0.5), y) for i in range(count)]


def _near(count: int, x: float, y: float, room: float) -> tuple[list[tuple[float, float]], float]:
    """Put things that share one place close together: in a row of two, more in two rows. Return where, and their radius."""
    if count == 1:
        return [(x, y)], room
    half = max(0.5 * room, LEAST_RADIUS)
    rows = {2: ((-1, 0), (1, 0)), 3: ((-1, 1), (1, 1), (0, -1)), 4: ((-1, -1), (1, -1), (-1, 1), (1, 1))}[count]
    return [(x + half * dx, y + half * dy) for dx, dy in rows], half


def _spots(group: Group, points: Sequence[tuple[float, float]], radius: float, most: float = 1.0) -> list[Spot]:
    """Give the group's things their size: no larger than `most`, so that neighbours stay apart."""
    r = min(most, radius * NOUNS[group.kind].scale) * SIZES[group.size]
    return [Spot(group.kind, group.colour, x, y, r) for x, y in points]


def _in_order(groups: Sequence[Group], points: Sequence[tuple[float, float]], radius: float, most: float) -> list[list[Spot]]:
    """Give the groups' things these points one after the other."""
    found, at = [], 0
    for group in groups:
        found.append(_spots(group, points[at : at + group.count], radius, most))
        at += group.count
    return found


def _apart(one: str, other: str) -> float:
    (x, y), (other_x, other_y) = PLACES[one], PLACES[other]
    return max(abs(x - other_x), abs(y - other_y))


def _freest(free: Sequence[str], taken: Collection[str]) -> str:
    """Return the place farthest from those taken, the first of several."""
    return max(free, key=lambda place: min(_apart(place, other) for other in taken))


def _lay_plain(groups: Sequence[Group]) -> list[list[Spot]]:
    """Put said places where they are said; what is left in a row, four in two rows, or in the places that are free."""
    total = sum(group.count for group in groups)
    if not any(group.place for group in groups):
        points = _row(total, 0.5, 0.5, 0.98 if total > 1 else 1) if total < 4 else [(x, y) for y in (0.27, 0.73) for x in (0.27, 0.73)]
        return _in_order(groups, points, ROW_RADIUS[total], MOST_RADIUS[total]) if total else []
    taken = {group.place for group in groups if group.place}
    places: list[str] = []
    for group in groups:
        places.append(group.place or _freest([other for other in FREE_PLACES if other not in taken], taken))
        taken.add(places[-1])
    found = []
    for group, place in zip(groups, places, strict=True):
        x, y = PLACES[place]
        beside = [_apart(place, other) for other in places if other != place]
        level = [other for other in places if other != place and abs(y - PLACES[other][1]) < 0.1]
        if group.count > 1 and x == 0.5 and not level:
            points, radius = _row(group.count, 0.5, y, 0.94), min(ROW_RADIUS[max(2, group.count)], 0.17, 0.5 * min(beside, default=0.5))
            found.append(_spots(group, points, radius, 0.46 / group.count))
        else:
            points, radius = _near(group.count, x, y, min(WIDEST_ROOM, 0.5 * min(beside, default=1.0)))
            found.append(_spots(group, points, radius, radius * 1.1))
    return found


def _lay_level(groups: Sequence[Group], level: float, radius: float) -> list[list[Spot]]:
    """Put a landscape's things of one level into columns."""
    total = sum(group.count for group in groups)
    said = {group.place for group in groups if group.place}
    if not said:
        return _in_order(groups, _row(total, 0.5, level, 0.96), radius, 0.47 / total)
    free = [column for column in ("right", "left", "middle") if column not in said]
    spare = iter((0.36, 0.64, 0.5, 0.2))
    middles = [PLACES[group.place or free.pop(0)][0] if group.place or free else next(spare) for group in groups]
    found = []
    for group, x in zip(groups, middles, strict=True):
        beside = min((abs(x - other) for other in middles if other != x), default=1.0)
        points, most = _near(group.count, x, level, min(radius * (1.1 if group.count == 1 else 1.35), 0.6 * beside))
        found.append(_spots(group, points, radius, most))
    return found


def lay_out(scene: Scene) -> list[Spot]:
    """Return where each thing stands, without the chances of a seed; a landscape's sky comes first."""
    if not scene.ground:
        return [spot for spots in _lay_plain(scene.groups) for spot in spots]
    zones = [zone_of(group.kind, scene.ground) for group in scene.groups]
    high = [group for group, zone in zip(scene.groups, zones, strict=True) if zone == "sky"]
    low = [group for group, zone in zip(scene.groups, zones, strict=True) if zone != "sky"]
    up = _lay_level(high, SKY_LEVEL, 0.145) if high else []
    down = _lay_level(low, GROUND_LEVEL, 0.17) if low else []
    return [spot for spots in (*up, *down) for spot in spots]


def _group(rng: random.Random, kinds: Sequence[str], place: str, count: int = 1) -> Group:
    kind = rng.choice(kinds)
    colour = rng.choice(COLOURS) if rng.random() < (0.8 if len(NOUNS[kind].natural) > 3 else 0.55) else ""
    size = rng.choice(("small", "big")) if rng.random() < 0.35 else ""
    return Group(kind, colour, size, count, place)


def _counts(rng: random.Random) -> list[int]:
    """Draw how many things each group has; four in all at most."""
    return list(
        rng.choices(
            ((1,), (1, 1), (1, 1, 1), (1, 1, 1, 1), (2,), (3,), (4,), (2, 1), (1, 2), (3, 1), (1, 3), (2, 2), (1, 1, 2), (2, 1, 1)),
            (20, 26, 12, 5, 6, 6, 5, 6, 6, 2, 2, 3, 1, 1),
        )[0]
    )


def _plain(rng: random.Random) -> Scene:
    counts = _counts(rng)
    kinds = ("circle", "square", "triangle", "star", "heart") if rng.random() < 0.25 else tuple(NOUNS)
    places = [""] * len(counts)
    chance = rng.random()
    if len(counts) == 2 and chance < 0.55:
        places = list(rng.choice((("left", "right"), ("right", "left"), ("top", "bottom"), ("bottom", "top"))))
    elif chance < 0.75 or (len(counts) == 1 and chance < 0.5):
        places = rng.sample(tuple(PLACES), len(counts))
        if len(counts) > 1 and rng.random() < 0.25:
            places[rng.randrange(len(counts))] = ""
        if len(counts) == 1 and places == ["middle"]:
            places = [""]
    groups = [_group(rng, kinds, place, count) for place, count in zip(places, counts, strict=True)]
    grounds = [c for c in COLOURS if c not in {g.colour or NOUNS[g.kind].natural[0] for g in groups}]
    background = "" if rng.random() < 0.2 else "white" if rng.random() < 0.3 and "white" in grounds else rng.choice(grounds)
    return Scene(_distinct(rng, groups, background), background)


def _distinct(rng: random.Random, groups: Sequence[Group], background: str) -> tuple[Group, ...]:
    """Give no thing the background's colour: it would not be seen."""
    found = []
    for group in groups:
        own = NOUNS[group.kind].natural
        clash = background == (group.colour or own[0])
        found.append(replace(group, colour=rng.choice([c for c in COLOURS if c != background])) if background and clash else group)
    return tuple(found)


def _landscape(rng: random.Random) -> Scene:
    time = rng.choices(TIMES, (0.45, 0.25, 0.3))[0]
    ground = rng.choices(GROUNDS, (0.38, 0.22, 0.16, 0.24))[0]
    mountains = rng.random() < 0.25
    rainbow = 0.12 if time == "day" else 0.0
    wet = {"snow": (0.5, 0.12, 0.02, 0.36, rainbow / 3), "desert": (0.75, 0.2, 0.05, 0.03, rainbow / 3)}.get(
        ground, (0.48, 0.15, 0.22, 0.06, rainbow)
    )
    weather = rng.choices(("", "clouds", "rain", "snowfall", "rainbow"), wet)[0]
    here = "sea" if ground == "sea" else "land"
    low = [kind for kind in NOUNS if here in NOUNS[kind].zones]
    high = [k for k in NOUNS if "sky" in NOUNS[k].zones and k not in ("sun", "moon", "crescent moon") and not (weather and k == "cloud")]
    counts = _counts(rng) if rng.random() < 0.85 else []
    groups: list[Group] = []
    if rng.random() < (0.55 if weather in ("", "clouds") else 0.15) and sum(counts) < MOST_THINGS:
        groups.append(Group(rng.choice(LIGHTS[time]), "", rng.choice(("", "", "", "big", "small")), 1, rng.choice(("", *COLUMNS))))
    flying = rng.choices((0, 1, 2), (0.7, 0.22, 0.08))[0]
    columns, airy = rng.sample(COLUMNS, 3), rng.sample(COLUMNS, 3)
    if groups and groups[0].place in airy:
        airy.remove(groups[0].place)
    placed = rng.random() < 0.6
    for i, count in enumerate(counts):
        up = i >= len(counts) - flying
        free = airy if up else columns
        place = free.pop() if placed and free and rng.random() < 0.85 else ""
        groups.append(_group(rng, high if up else low, place, count))
    return Scene(tuple(groups), "", ground, time, weather, mountains)


def draw_lot(rng: random.Random) -> Scene:
    """Draw a random scene of the world."""
    found = _plain(rng) if rng.random() < 0.5 else _landscape(rng)
    style = rng.choice(STYLES[1:]) if rng.random() < 0.3 else ""
    return replace(found, style=style, seed=rng.randrange(1 << 30))


def scene(seed: int, held_out: bool = False) -> Scene:
    """Return the scene of this seed, from those for training or from those held out."""
    rng = random.Random(seed)
    while True:
        found = draw_lot(rng)
        if found.held_out == held_out:
            return found
