"""Draw a scene as a flat illustration with soft gradients, four times oversampled. Knows no captions."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from assets.starter.training.painter.scenes import Scene, Thing

Picture = NDArray[np.float32]
Point = tuple[float, float]

PALETTE = {
    "red": (214, 62, 58), "orange": (240, 140, 52), "yellow": (250, 208, 76), "green": (86, 156, 88),
    "blue": (58, 112, 190), "purple": (128, 84, 166), "pink": (244, 164, 188), "white": (250, 247, 240),
    "black": (42, 40, 48),
}  # fmt: skip
SKY = {
    "day": ((108, 178, 226), (176, 214, 232), (236, 240, 228)),
    "sunset": ((96, 78, 150), (232, 116, 124), (252, 186, 112)),
    "night": ((16, 22, 56), (32, 44, 92), (64, 82, 130)),
}
TINT = {"day": (1.0, 1.0, 1.0), "sunset": (1.0, 0.76, 0.72), "night": (0.42, 0.47, 0.66)}
GROUND = {  # the far layer and the near one
    "green hills": ((164, 200, 118), (112, 168, 84)),
    "snowy hills": ((222, 232, 242), (246, 248, 250)),
    "dunes": ((240, 208, 142), (226, 178, 104)),
    "sea": ((112, 176, 206), (40, 104, 164)),
}
SUN = {"day": (255, 216, 92), "sunset": (255, 226, 128)}
MOON = (248, 242, 212)
MOUNTAIN = {
    "day": ((128, 138, 172), (168, 176, 198)),
    "sunset": ((128, 138, 172), (168, 176, 198)),
    "night": ((84, 90, 112), (104, 112, 132)),
}
SNOW_CAP = (246, 248, 252)
ROOF, HULL = (122, 78, 66), (118, 72, 56)
CLOUD = {"day": (255, 255, 255), "sunset": (255, 214, 204)}
HORIZON = 0.58
OVERSAMPLING = 4


def outline(kind: str, n: int = 48) -> list[Point]:
    """Return a shape as a polygon in a circle of radius one, y downwards."""
    turn = [2 * math.pi * i / n for i in range(n)]
    circle = [(math.cos(a), math.sin(a)) for a in turn]
    if kind == "circle":
        return circle
    if kind == "square":
        return [(-0.82, -0.82), (0.82, -0.82), (0.82, 0.82), (-0.82, 0.82)]
    if kind == "triangle":
        return [(0, -0.98), (1.0, 0.78), (-1.0, 0.78)]
    if kind == "star":
        radii = [1.12 if i % 2 == 0 else 0.47 for i in range(10)]
        return [(r * math.sin(math.pi * i / 5), 0.06 - r * math.cos(math.pi * i / 5)) for i, r in enumerate(radii)]
    heart = [(math.sin(a) ** 3, -(13 * math.cos(a) - 5 * math.cos(2 * a) - 2 * math.cos(3 * a) - math.cos(4 * a)) / 16) for a in turn]
    return [(1.02 * x, 1.02 * y - 0.08) for x, y in heart]


class _Canvas:
    """A picture while it is drawn: colours as floats from 0 to 255, objects blended by their coverage."""

    def __init__(self, size: int) -> None:
        self.size = size
        axis = (np.arange(size, dtype=np.float32) + 0.5) / size
        self.x, self.y = axis[None, :], axis[:, None]
        self.pixels: Picture = np.zeros((size, size, 3), np.float32)

    def cover(self, points: Sequence[Point]) -> Picture:
        """Return how much of each pixel the polygon covers."""
        big = self.size * OVERSAMPLING
        image = Image.new("L", (big, big))
        pen = ImageDraw.Draw(image)
        pen.polygon([(x * big, y * big) for x, y in points], fill=255)
        return np.asarray(image.reduce(OVERSAMPLING), np.float32) / 255

    def lay(self, cover: Picture, colour: Picture | Sequence[float]) -> None:
        self.pixels += cover[:, :, None] * (np.asarray(colour, np.float32) - self.pixels)

    def shadow(self, cover: Picture, strength: float = 0.16) -> None:
        blurred = Image.fromarray((cover * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(self.size * 0.014))
        dark = np.asarray(blurred, np.float32) / 255
        shift = max(1, round(self.size * 0.016))
        dark = np.pad(dark, ((shift, 0), (shift // 2, 0)))[: self.size, : self.size]
        self.pixels *= 1 - strength * dark[:, :, None]

    def column(self, *stops: Sequence[float], top: float = 0.0, bottom: float = 1.0) -> Picture:
        """Return a vertical gradient through these colours."""
        at = np.clip((self.y[:, 0] - top) / (bottom - top), 0, 1) * (len(stops) - 1)
        channels = [np.interp(at, range(len(stops)), [s[c] for s in stops]) for c in range(3)]
        return np.stack(channels, -1).astype(np.float32)[:, None, :].repeat(self.size, 1)

    def glow(self, x: float, y: float, radius: float, colour: Sequence[float], strength: float) -> None:
        far = ((self.x - x) ** 2 + (self.y - y) ** 2) / radius**2
        self.lay((strength * np.exp(-far)).astype(np.float32), colour)

    def disc(self, x: float, y: float, radius: float) -> Picture:
        return self.cover(_moved(outline("circle"), x, y, radius))


def _moved(points: Sequence[Point], x: float, y: float, radius: float) -> list[Point]:
    return [(x + radius * px, y + radius * py) for px, py in points]


def _shaded(canvas: _Canvas, colour: Sequence[float], thing: Thing, depth: float = 0.11) -> Picture:
    """Shade the colour, lit from the upper left."""
    slope = np.clip(((canvas.x - thing.x) * 0.5 + (canvas.y - thing.y)) / thing.radius / 1.2, -1, 1)
    light = np.asarray(colour, np.float32) * np.ones((canvas.size, canvas.size, 1), np.float32)
    towards = np.where(slope[:, :, None] < 0, np.float32(255), np.float32(0))
    return (light + (towards - light) * np.abs(slope)[:, :, None] * depth).astype(np.float32)


def _draw_shapes(canvas: _Canvas, scene: Scene) -> None:
    base = np.asarray(PALETTE[scene.background], np.float32)
    canvas.pixels[:] = canvas.column(base + (255 - base) * 0.08, base * 0.95)
    for thing in scene.things:
        cover = canvas.cover(_moved(outline(thing.kind), thing.x, thing.y, thing.radius))
        canvas.shadow(cover)
        canvas.lay(cover, _shaded(canvas, PALETTE[thing.colour], thing))


def _draw_sky(canvas: _Canvas, scene: Scene, rng: random.Random) -> None:
    canvas.pixels[:] = canvas.column(*SKY[scene.background], bottom=HORIZON + 0.04)
    if scene.background == "night":
        for _ in range(16):
            canvas.lay(0.8 * canvas.disc(rng.random(), rng.uniform(0.03, 0.45), rng.uniform(0.005, 0.008)), MOON)
    for thing in scene.things:
        if thing.kind == "sun":
            colour = SUN[scene.background]
            canvas.glow(thing.x, thing.y, thing.radius * 2.4, colour, 0.55)
            canvas.lay(canvas.disc(thing.x, thing.y, thing.radius), colour)
        elif thing.kind in ("moon", "crescent moon"):
            cover = canvas.disc(thing.x, thing.y, thing.radius)
            canvas.glow(thing.x, thing.y, thing.radius * 2.2, (120, 130, 170), 0.5)
            if thing.kind == "crescent moon":
                shade = canvas.disc(thing.x + 0.5 * thing.radius, thing.y - 0.2 * thing.radius, 0.92 * thing.radius)
                cover = cover * (1 - shade)
            canvas.lay(cover, MOON)
    if scene.clouds:
        taken = [t.x for t in scene.things if t.kind == "sun"]
        free = [x for x in (0.18, 0.5, 0.82) if all(abs(x - t) > 0.2 for t in taken)]
        for x in rng.sample(free, 2):
            y, r = rng.uniform(0.1, 0.19), 0.06
            puffs = [
                canvas.disc(x + dx * r, y + dy * r, k * r)
                for dx, dy, k in ((-1.2, 0.25, 0.7), (0, -0.2, 1.05), (1.2, 0.2, 0.75), (0.2, 0.4, 0.9))
            ]
            canvas.lay(0.94 * np.max(puffs, 0), CLOUD[scene.background])


def tinted(colour: Sequence[float], time: str) -> list[float]:
    """Return an object's colour at this time of day."""
    return [c * k for c, k in zip(colour, TINT[time], strict=True)]


def _draw_ground(canvas: _Canvas, scene: Scene, rng: random.Random) -> None:
    time = scene.background
    if scene.mountains:
        peaks = [(x + rng.uniform(-0.05, 0.05), rng.uniform(0.3, 0.38), 0.26) for x in (0.12, 0.5, 0.88)]
        for x, top, half in peaks:
            foot = HORIZON + 0.06
            body = canvas.cover([(x, top), (x + half, foot), (x - half, foot)])
            stone = [tinted(c, time) for c in MOUNTAIN[time]]
            canvas.lay(body, canvas.column(*stone, top=0.3, bottom=0.62))
            cap, edge = 0.3, top + 0.3 * (foot - top)
            teeth = [(x + cap * half, edge), (x + 0.12 * half, edge - 0.02), (x, edge + 0.02), (x - 0.12 * half, edge - 0.02)]
            canvas.lay(canvas.cover([(x, top), *teeth, (x - cap * half, edge)]), tinted(SNOW_CAP, time))
    far, near = (tinted(c, time) for c in GROUND[scene.ground])
    if scene.ground == "sea":
        water = canvas.cover([(0, HORIZON), (1, HORIZON), (1, 1), (0, 1)])
        canvas.lay(water, canvas.column(far, near, top=HORIZON))
        for thing in scene.things:
            if thing.kind in ("sun", "moon", "crescent moon"):
                beam = np.exp(-(((canvas.x - thing.x) / 0.07) ** 2)) * np.clip(1.5 - (canvas.y - HORIZON) / 0.28, 0, 1)
                canvas.lay((0.45 * water * beam).astype(np.float32), SUN.get(time, MOON))
        return
    for level, colour, height in ((HORIZON, far, 0.035), (HORIZON + 0.14, near, 0.03)):
        phase, waves = rng.uniform(0, 2 * math.pi), rng.uniform(0.8, 1.2)
        ridge = [(i / 40, level + height * math.sin(2 * math.pi * waves * i / 40 + phase)) for i in range(41)]
        lit = [c + (255 - c) * 0.12 for c in colour]
        canvas.lay(canvas.cover([*ridge, (1, 1), (0, 1)]), canvas.column(lit, [c * 0.9 for c in colour], top=level - 0.05))


def _draw_house(canvas: _Canvas, t: Thing, time: str) -> None:
    w, h = 0.92 * t.radius, t.radius
    left, right, top, foot = t.x - w, t.x + w, t.y - 0.35 * h, t.y + h
    wall = canvas.cover([(left, top), (right, top), (right, foot), (left, foot)])
    canvas.lay(wall, _shaded(canvas, tinted(PALETTE[t.colour], time), t, 0.06))
    roof = [(left - 0.18 * w, top), (t.x, top - 0.85 * h), (right + 0.18 * w, top)]
    canvas.lay(canvas.cover(roof), tinted(ROOF, time))
    door = [(t.x - 0.62 * w, foot), (t.x - 0.62 * w, foot - 0.75 * h), (t.x - 0.2 * w, foot - 0.75 * h), (t.x - 0.2 * w, foot)]
    canvas.lay(canvas.cover(door), tinted((96, 62, 54), time))
    a, b, c, d = t.x + 0.16 * w, t.x + 0.66 * w, foot - 0.95 * h, foot - 0.45 * h
    lamp = (255, 214, 110) if time == "night" else tinted((196, 226, 238), time)
    canvas.lay(canvas.cover([(a, c), (b, c), (b, d), (a, d)]), lamp)


def _draw_tree(canvas: _Canvas, t: Thing, time: str) -> None:
    r, foot = t.radius, t.y + t.radius
    trunk = [(t.x - 0.13 * r, t.y), (t.x + 0.13 * r, t.y), (t.x + 0.16 * r, foot), (t.x - 0.16 * r, foot)]
    canvas.lay(canvas.cover(trunk), tinted((112, 78, 58), time))
    if t.kind == "pine":
        for lift, half in ((0.55, 0.72), (-0.05, 0.6), (-0.6, 0.46)):
            tier = [(t.x - half * r, t.y + lift * r), (t.x, t.y + (lift - 0.95) * r), (t.x + half * r, t.y + lift * r)]
            canvas.lay(canvas.cover(tier), _shaded(canvas, tinted((38, 98, 84), time), t, 0.1))
    else:
        crown = np.max(
            [canvas.disc(t.x + dx * r, t.y + dy * r, k * r) for dx, dy, k in ((0, -0.45, 0.68), (-0.4, -0.05, 0.5), (0.4, -0.05, 0.5))], 0
        )
        canvas.lay(crown, _shaded(canvas, tinted((58, 128, 62), time), t, 0.14))


def _draw_boat(canvas: _Canvas, t: Thing, time: str) -> None:
    r, deck = t.radius, t.y + 0.35 * t.radius
    sail = [(t.x + 0.02 * r, t.y - 1.25 * r), (t.x + 0.02 * r, deck - 0.08 * r), (t.x + 0.85 * r, deck - 0.08 * r)]
    jib = [(t.x - 0.1 * r, t.y - 0.95 * r), (t.x - 0.1 * r, deck - 0.08 * r), (t.x - 0.7 * r, deck - 0.08 * r)]
    for points in (sail, jib):
        canvas.lay(canvas.cover(points), _shaded(canvas, tinted(PALETTE[t.colour], time), t, 0.08))
    hull = [(t.x - 1.0 * r, deck), (t.x + 1.05 * r, deck), (t.x + 0.65 * r, deck + 0.42 * r), (t.x - 0.65 * r, deck + 0.42 * r)]
    canvas.lay(canvas.cover(hull), tinted(HULL, time))


def draw(scene: Scene, size: int) -> NDArray[np.uint8]:
    """Draw the scene as (size, size, 3) bytes; it looks the same at every size."""
    canvas, rng = _Canvas(size), random.Random(scene.seed)
    if scene.pattern != "landscape":
        _draw_shapes(canvas, scene)
    else:
        _draw_sky(canvas, scene, rng)
        _draw_ground(canvas, scene, rng)
        for thing in scene.things:
            if thing.kind == "house":
                _draw_house(canvas, thing, scene.background)
            elif thing.kind in ("tree", "pine"):
                _draw_tree(canvas, thing, scene.background)
            elif thing.kind == "boat":
                _draw_boat(canvas, thing, scene.background)
    return np.clip(canvas.pixels + 0.5, 0, 255).astype(np.uint8)
