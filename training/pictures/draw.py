"""Draw a scene: its ground, weather and things, with the chances of its seed, in its style. Knows no captions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from training.pictures.figures import FIGURES, MIRRORED
from training.pictures.pen import Colour, Pen, Point, darker, lighter, mix
from training.pictures.scenes import Scene, Spot, lay_out
from training.pictures.world import BACKGROUNDS, NOUNS, zone_of

Floats = NDArray[np.float32]

OVERSAMPLING = 3
EDGE = 0.012
DARK = 290  # red, green and blue together
HORIZON = 0.57
PALETTE: dict[str, Colour] = {
    "red": (214, 56, 54), "orange": (242, 138, 44), "yellow": (252, 210, 68), "green": (80, 156, 82), "blue": (52, 110, 196),
    "purple": (130, 80, 172), "pink": (246, 158, 186), "brown": (132, 86, 56), "grey": (146, 148, 156), "white": (250, 248, 242),
    "black": (38, 36, 44),
}  # fmt: skip
SKY: dict[str, tuple[Colour, Colour]] = {
    "day": ((104, 176, 230), (222, 238, 240)), "sunset": ((104, 82, 158), (252, 172, 112)), "night": ((16, 22, 58), (62, 78, 128)),
}  # fmt: skip
WET_SKY: dict[str, tuple[Colour, Colour]] = {
    "day": ((126, 142, 160), (196, 206, 214)), "sunset": ((104, 88, 128), (212, 160, 140)), "night": ((20, 24, 46), (58, 66, 94)),
}  # fmt: skip
TINT: dict[str, Colour] = {"day": (1.0, 1.0, 1.0), "sunset": (1.0, 0.85, 0.8), "night": (0.68, 0.7, 0.88)}
GROUND: dict[str, tuple[Colour, Colour]] = {
    "hills": ((150, 196, 112), (100, 164, 80)), "snow": ((214, 226, 240), (244, 247, 250)), "desert": ((238, 202, 136), (222, 172, 100)),
    "sea": ((104, 176, 208), (38, 106, 170)),
}  # fmt: skip
STONE, SNOW_CAP = (132, 138, 168), (246, 248, 252)
RAIN: tuple[Colour, Colour] = (206, 224, 244), (96, 124, 176)
"""Rain has these before most grounds, and before paper and snow."""
BANDS: tuple[Colour, ...] = ((226, 74, 70), (246, 154, 60), (252, 218, 84), (104, 182, 96), (70, 132, 208), (142, 92, 182))


def _column(height: int, width: int, stops: Sequence[Colour], bottom: float = 1.0) -> Floats:
    """Return a vertical gradient through these colours."""
    at = np.clip(np.linspace(0, 1, height) / bottom, 0, 1) * (len(stops) - 1)
    channels = [np.interp(at, range(len(stops)), [s[c] for s in stops]) for c in range(3)]
    return np.stack(channels, -1).astype(np.float32)[:, None, :].repeat(width, 1)


def _fixed(name: str) -> random.Random:
    """Return the one draw that gives hills, mountains, clouds, stars, waves, rain or a wash their shapes in every picture. Seeds that moved
    them would ask the UNet for each of them at every offset, which so small a model cannot learn: they came out mushy."""
    return random.Random(name)


def _shifted(rng: random.Random, colour: Colour, by: float) -> Colour:
    """Return a colour somewhat lighter, darker, warmer or colder."""
    light, warm = rng.uniform(-by, by), rng.uniform(-0.6 * by, 0.6 * by)
    red, green, blue = (max(0.0, min(255.0, c + d)) for c, d in zip(colour, (light + warm, light, light - warm), strict=True))
    return red, green, blue


def _plain(rng: random.Random, scene: Scene, big: int) -> Image.Image:
    """Draw the background of plain pictures: a gradient in a shade of its colour, lit from one side."""
    worn = {colour for group in scene.groups for colour in (group.colour, NOUNS[group.kind].natural[0])}
    name = scene.background or rng.choice([colour for colour in BACKGROUNDS if colour not in worn])
    base = PALETTE[name]
    if not scene.background:
        base = lighter(base, rng.uniform(0.35, 0.6))
    base = _shifted(rng, base, 44 if name not in ("white", "black", "grey") else 16)
    if name == "white":
        base = darker(base, rng.uniform(0, 0.16))
    pixels = _column(big, big, (lighter(base, rng.uniform(0.0, 0.36)), darker(base, rng.uniform(0.0, 0.28))))
    turn = rng.randrange(4)
    return Image.fromarray(np.rot90(pixels, turn).round().astype(np.uint8))


def _sky(rng: random.Random, scene: Scene, big: int) -> Image.Image:
    top, low = (WET_SKY if scene.weather in ("rain", "snowfall") else SKY)[scene.time]
    by = 54 if scene.time != "night" else 26
    image = Image.fromarray(_column(big, big, (_shifted(rng, top, by), _shifted(rng, low, by)), HORIZON + 0.04).round().astype(np.uint8))
    if scene.time == "night" and scene.weather not in ("rain", "snowfall"):
        pen, where = ImageDraw.Draw(image), _fixed("stars")
        for i in range(24):
            x, y, r = (
                (i % 6 + where.random()) / 6 * big,
                (0.02 + 0.115 * (i // 6 + where.random())) * big,
                where.uniform(0.008, 0.014) * big,
            )
            pen.ellipse([x - r, y - r, x + r, y + r], fill=(250, 244, 214))
    return image


def _glow(image: Image.Image, x: float, y: float, radius: float, colour: Colour, strength: float) -> Image.Image:
    """Brighten around a light."""
    size = image.width
    axis = (np.arange(size, dtype=np.float32) + 0.5) / size
    far = ((axis[None, :] - x) ** 2 + (axis[:, None] - y) ** 2) / radius**2
    share = (strength * np.exp(-far))[:, :, None]
    pixels = np.asarray(image, np.float32)
    return Image.fromarray((pixels + share * (np.asarray(colour, np.float32) - pixels)).round().astype(np.uint8))


def _mountains(rng: random.Random, pen: Pen) -> None:
    foot = HORIZON + 0.06
    for x, top, half in ((0.12, HORIZON - 0.24, 0.24), (0.87, HORIZON - 0.2, 0.23), (0.47, HORIZON - 0.3, 0.3)):
        stone = _shifted(rng, STONE, 12)
        pen.shape(stone, [(x, top), (x + half, foot), (x - half, foot)])
        pen.shape(darker(stone, 0.16), [(x, top), (x + half, foot), (x + 0.1 * half, foot)])
        edge, cap = top + 0.36 * (foot - top), 0.36 * half
        pen.shape(
            SNOW_CAP,
            [(x, top), (x + cap, edge), (x + 0.4 * cap, edge - 0.02), (x, edge + 0.025), (x - 0.4 * cap, edge - 0.02), (x - cap, edge)],
        )


def _ground(rng: random.Random, scene: Scene, pen: Pen) -> None:
    far, near = (_shifted(rng, colour, 38) for colour in GROUND[scene.ground])
    if scene.ground == "sea":
        for i in range(8):
            top = HORIZON + (1 - HORIZON) * i / 8
            pen.box(mix(far, near, i / 7), 0, top, 1, 1)
        where = _fixed("waves")
        for i in range(9):
            x, y, w = (i % 3 + where.random()) / 3, HORIZON + 0.05 + 0.12 * (i // 3 + where.random()), where.uniform(0.05, 0.09)
            pen.stroke(lighter(mix(far, near, 0.5), 0.4), 0.012, [(x - w, y), (x + w, y)])
        return
    for level, colour, height, phase, waves in ((HORIZON, far, 0.04, 0.6, 1.15), (HORIZON + 0.15, near, 0.035, 3.4, 0.8)):
        ridge: list[Point] = [(i / 40, level + height * math.sin(2 * math.pi * waves * i / 40 + phase)) for i in range(41)]
        pen.shape(colour, [*ridge, (1, 1), (0, 1)])


def _clouds(scene: Scene, pen: Pen) -> None:
    """Lay a row of clouds along the top; heavy ones where it rains or snows."""
    wet = scene.weather in ("rain", "snowfall")
    colour: Colour = (122, 130, 148) if wet else (252, 252, 252)
    where = _fixed("clouds")
    for x in (0.12, 0.42, 0.72, 0.98) if wet else (0.2, 0.55, 0.88):
        FIGURES["cloud"](
            replace(pen, x=x * pen.radius, y=where.uniform(0.08, 0.14) * pen.radius, radius=where.uniform(0.1, 0.13) * pen.radius), colour
        )


def _falling(scene: Scene, pen: Pen) -> None:
    """Let it rain or snow over everything, on a loose grid so that no part stays dry."""
    where, on_pale = _fixed("falling"), scene.style == "pencil" or scene.ground == "snow"
    for row in range(7):
        for column in range(7):
            x = (column + 0.5 * (row % 2) + where.uniform(-0.2, 0.2)) / 7
            y = 0.2 + 0.8 * (row + where.uniform(-0.25, 0.25)) / 7
            if scene.weather == "rain":
                pen.stroke(RAIN[on_pale], 0.014, [(x, y), (x - 0.022, y + 0.065)])
            else:
                pen.disc((255, 255, 255), x, y, 0.016)


def place_things(scene: Scene) -> list[Spot]:
    """Return the things inside the picture, each in its colour. Only what the caption says counts here: a seed that moved things would
    ask the UNet for every figure at every offset, which so small a model cannot learn."""
    found = []
    for spot in lay_out(scene):
        x, y = (min(1 - keep * spot.radius, max(keep * spot.radius, at)) for at, keep in ((spot.x, 1.2), (spot.y, 1.06)))
        found.append(Spot(spot.kind, spot.colour or NOUNS[spot.kind].natural[0], x, y, spot.radius))
    return found


def edge_of(colour: str) -> Colour:
    """Return the colour of a figure's edge, dark around what is light and light around what is dark: it is seen before any ground."""
    own = PALETTE[colour]
    return lighter(own, 0.5) if sum(own) < DARK else darker(own, 0.5)


class _Even(random.Random):
    """Leaves nothing to chance: the middle of every range."""

    def random(self) -> float:
        return 0.5


def draw(scene: Scene, size: int, even: bool = False, spots: Sequence[Spot] | None = None) -> NDArray[np.uint8]:
    """Draw the scene as (size, size, 3) bytes; it looks the same at every size. An `even` drawing is the same for all seeds. `spots` are
    other things than the scene's."""
    rng, big = _Even() if even else random.Random(scene.seed), size * OVERSAMPLING
    spots = place_things(scene) if spots is None else spots
    image = _sky(rng, scene, big) if scene.ground else _plain(rng, scene, big)
    tint = TINT[scene.time] if scene.ground else (1.0, 1.0, 1.0)
    outline = 0.011 * big if scene.style == "pencil" else 0.0
    for spot in spots:
        if spot.kind in ("sun", "moon", "crescent moon") and scene.ground:
            image = _glow(image, spot.x, spot.y, spot.radius * 2.2, (255, 232, 160) if spot.kind == "sun" else (150, 160, 206), 0.5)
    pen = Pen(ImageDraw.Draw(image), 0, 0, big, False, tint, outline)
    if scene.ground:
        if scene.weather in ("clouds", "rain", "snowfall"):
            _clouds(scene, pen)
        if scene.weather == "rainbow":
            for i, colour in enumerate(BANDS):
                pen.image.arc(
                    [(0.06 + 0.022 * i) * big, (0.16 + 0.022 * i) * big, (0.94 - 0.022 * i) * big, (1.04 - 0.022 * i) * big],
                    180,
                    360,
                    tuple(round(c) for c in lighter(colour, 0.15)),
                    round(0.024 * big),
                )
        if scene.mountains:
            _mountains(rng, pen)
        _ground(rng, scene, pen)
    for spot in spots:
        x, y, radius = spot.x * big, spot.y * big, spot.radius * big
        own = replace(pen, x=x, y=y, radius=radius, flip=spot.kind in MIRRORED and spot.x > 0.5)
        if not scene.ground or zone_of(spot.kind, scene.ground) == "land":
            shadow = [x - 0.85 * radius, y + 0.86 * radius, x + 0.85 * radius, y + 1.1 * radius]
            pen.image.ellipse(shadow, fill=_under(image, x, y + radius))
        colour = _shifted(rng, PALETTE[spot.colour], 16)
        FIGURES[spot.kind](replace(own, flat=edge_of(spot.colour), swollen=EDGE * big), colour)
        FIGURES[spot.kind](own, colour)
    if scene.weather in ("rain", "snowfall"):
        _falling(scene, pen)
    pixels = np.asarray(image.reduce(OVERSAMPLING), np.float32)
    if scene.style:
        pixels = STYLED[scene.style](pixels)
    return np.clip(pixels + 0.5, 0, 255).astype(np.uint8)


def _under(image: Image.Image, x: float, y: float) -> tuple[int, int, int]:
    """Return the colour of a soft shadow at this point."""
    at = (min(image.width - 1, max(0, int(x))), min(image.height - 1, max(0, int(y))))
    seen = image.getpixel(at)
    assert isinstance(seen, tuple)
    red, green, blue = (round(0.84 * c) for c in seen)
    return red, green, blue


def _noise(size: int, cells: int) -> Floats:
    """Return smooth noise from 0 to 1 of so many cells across, always the same."""
    grid = np.random.default_rng(cells).random((cells, cells), np.float32)
    smooth = Image.fromarray((grid * 255).astype(np.uint8)).resize((size, size), Image.Resampling.BICUBIC)
    return np.asarray(smooth, np.float32) / np.float32(255)


def _watercolour(pixels: Floats) -> Floats:
    """Let colours run, pale and blotched, on paper that stays white at the rim."""
    size = len(pixels)
    soft = Image.fromarray(pixels.astype(np.uint8)).filter(ImageFilter.MedianFilter(3)).filter(ImageFilter.GaussianBlur(size / 180))
    wash = np.asarray(soft, np.float32) * 0.84 + 255 * 0.16
    wash = wash + (255 - wash) * (0.36 * _noise(size, 9) ** 1.4)[:, :, None]
    axis = np.abs(np.linspace(-1, 1, size, dtype=np.float32))
    edge = np.maximum(axis[None, :], axis[:, None]) + 0.1 * (_noise(size, 14) - 0.5)
    rim = np.clip((edge - 0.88) / 0.05, 0, 1)[:, :, None]
    return (wash + (np.asarray((252, 250, 244), np.float32) - wash) * rim).astype(np.float32)


def _pencil(pixels: Floats) -> Floats:
    """Leave outlines on paper, filled lightly with a breath of their colours."""
    size = len(pixels)
    light = pixels @ np.asarray((0.3, 0.59, 0.11), np.float32)
    grey = 252 - (255 - light) * (0.6 + 0.1 * _noise(size, 24))
    tone = grey[:, :, None] * np.ones(3, np.float32)
    return (tone + 0.6 * (pixels - light[:, :, None])).astype(np.float32)


def _lamp(pixels: Floats) -> Floats:
    """Leave the room dark but for the warm light of one lamp above the middle."""
    size = len(pixels)
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size
    far = ((x - 0.5) ** 2 + (y - 0.48) ** 2) / 0.42**2
    light = (0.37 + 0.8 * np.exp(-far))[:, :, None]
    return np.minimum(255, pixels * light * np.asarray((1.0, 0.84, 0.58), np.float32) + np.asarray((14, 8, 10), np.float32))


STYLED = {"watercolour": _watercolour, "pencil": _pencil, "lamp": _lamp}
