"""Define the painter's scenes: their slots, random draws, and which are held out. Knows no pixels and no words."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white", "black")
SHAPES = ("circle", "square", "triangle", "star", "heart")
SIZES = {"small": 0.13, "medium": 0.18, "big": 0.3}  # radius, as a share of the picture
PLACES = {
    "middle": (0.5, 0.5), "left": (0.23, 0.5), "right": (0.77, 0.5), "top": (0.5, 0.23), "bottom": (0.5, 0.77),
    "top left": (0.23, 0.23), "top right": (0.77, 0.23), "bottom left": (0.23, 0.77), "bottom right": (0.77, 0.77),
}  # fmt: skip
RELATIONS = ("left of", "right of", "above", "below")

TIMES = ("day", "sunset", "night")
GROUNDS = ("green hills", "snowy hills", "dunes", "sea")
COLUMNS = {"left": 0.2, "middle": 0.5, "right": 0.8}
HOUSE_COLOURS = ("red", "white", "yellow", "blue")
SAIL_COLOURS = ("white", "red", "yellow")
LIGHT_RADIUS = 0.1
LIGHTS = {"day": ("sun",), "sunset": ("sun",), "night": ("moon", "crescent moon")}

UNSAID_PLACE = 0.06  # how often a landscape leaves it open where a thing stands
HELD_OUT_IN = 12  # one slot combination in so many is never trained on


@dataclass(frozen=True, slots=True)
class Thing:
    """One object. `x`, `y` and `radius` are shares of the picture; `place` and `size` are named in captions, an empty place is not."""

    kind: str
    colour: str
    place: str
    size: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class Scene:
    """A landscape with its `ground`, or shapes, with an empty `ground` and a `background` colour."""

    pattern: str
    background: str
    things: tuple[Thing, ...]
    relation: str = ""
    ground: str = ""
    mountains: bool = False
    clouds: bool = False
    seed: int = 0

    @property
    def key(self) -> str:
        """Return the scene without random details: scenes with equal keys fit the same captions."""
        things = ";".join(f"{t.kind},{t.colour},{t.place},{t.size}" for t in self.things)
        return f"{self.pattern}|{self.background}|{self.relation}|{self.ground}|{self.mountains}|{self.clouds}|{things}"

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.key.encode()) % HELD_OUT_IN == 0


def _thing(rng: random.Random, kind: str, colour: str, place: str, size: str, x: float, y: float) -> Thing:
    jitter = 0.015
    return Thing(
        kind, colour, place, size, x + rng.uniform(-jitter, jitter), y + rng.uniform(-jitter, jitter), SIZES[size] * rng.uniform(0.93, 1.07)
    )


def _shapes(rng: random.Random) -> Scene:
    pattern = rng.choices(("one", "pair", "row"), (0.35, 0.45, 0.2))[0]
    background, first, second = rng.sample(COLOURS, 3)
    if rng.random() < 0.4:  # most people ask for a white background
        background = "white"
        first, second = rng.sample([c for c in COLOURS if c != "white"], 2)
    seed = rng.randrange(1 << 30)
    if pattern == "one":
        place = rng.choice(("middle", "middle", "middle", *PLACES))
        size = rng.choice(("small", "medium", "medium", "big") if place == "middle" else ("small", "medium", "medium"))
        things = (_thing(rng, rng.choice(SHAPES), first, place, size, *PLACES[place]),)
        return Scene(pattern, background, things, seed=seed)
    if pattern == "row":
        count = rng.choice((2, 3))
        kind, size = rng.choice(SHAPES), "medium" if count == 2 else "small"
        xs = (0.26, 0.74) if count == 2 else (0.17, 0.5, 0.83)
        return Scene(pattern, background, tuple(_thing(rng, kind, first, "", size, x, 0.5) for x in xs), seed=seed)
    relation = rng.choice(RELATIONS)
    if rng.random() < 0.15:
        second = first
    kinds = rng.choice(SHAPES), rng.choice(SHAPES)
    sizes = rng.choices(("medium", "small"), (0.8, 0.2), k=2)
    near, far = (0.25, 0.75) if relation in ("left of", "above") else (0.75, 0.25)
    across = relation in ("left of", "right of")
    spots = ((near, 0.5), (far, 0.5)) if across else ((0.5, near), (0.5, far))
    colours = (first, second)
    if kinds[0] == kinds[1] and first == second:
        colours = (first, rng.choice([c for c in COLOURS if c not in (first, background)]))
    things = tuple(_thing(rng, k, c, "", s, *xy) for k, c, s, xy in zip(kinds, colours, sizes, spots, strict=True))
    return Scene(pattern, background, things, relation=relation, seed=seed)


def _landscape(rng: random.Random) -> Scene:
    time, ground = rng.choice(TIMES), rng.choices(GROUNDS, (0.3, 0.2, 0.15, 0.35))[0]
    things: list[Thing] = []

    def put(kind: str, colour: str, place: str, y: float, radius: float, jitter: float = 0.03) -> None:
        x = COLUMNS[place] + rng.uniform(-jitter, jitter)
        said = "" if rng.random() < UNSAID_PLACE else place
        things.append(Thing(kind, colour, said, "", x, y + rng.uniform(-0.02, 0.02), radius))

    mountains = ground != "dunes" and rng.random() < 0.3
    if rng.random() < 0.85:
        light = rng.choice(LIGHTS[time])
        height = 0.34 if time == "sunset" and not mountains else 0.19
        put(light, "yellow" if light == "sun" else "white", rng.choice(tuple(COLUMNS)), height, LIGHT_RADIUS)
    columns = rng.sample(tuple(COLUMNS), 3)
    if ground == "sea":
        if rng.random() < 0.75:
            put("boat", rng.choice(SAIL_COLOURS), columns[0], 0.7, 0.15)
    else:
        if rng.random() < 0.65:
            put("house", rng.choice(HOUSE_COLOURS), columns[0], 0.74, 0.13)
        if ground != "dunes" and rng.random() < 0.6:
            kind = rng.choice(("tree", "pine"))
            put(kind, "green", columns[1], 0.73, 0.14)
            if rng.random() < 0.25:
                put(kind, "green", columns[2], 0.73, 0.14)
    clouds = time != "night" and rng.random() < 0.3
    seed = rng.randrange(1 << 30)
    return Scene("landscape", time, tuple(things), ground=ground, mountains=mountains, clouds=clouds, seed=seed)


def draw_lot(rng: random.Random) -> Scene:
    """Draw a random scene of the domain."""
    return _shapes(rng) if rng.random() < 0.55 else _landscape(rng)


def scene(seed: int, held_out: bool = False) -> Scene:
    """Return the scene of this seed, from those for training or from those held out."""
    rng = random.Random(seed)
    while True:
        found = draw_lot(rng)
        if found.held_out == held_out:
            return found
