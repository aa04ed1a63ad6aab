"""Compare a picture with its scene: colour, shape, place, count, background. By pixels only, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from assets.starter.training.painter import draw
from assets.starter.training.painter.regions import Floats, Mask, Region, distance, regions, stretched
from assets.starter.training.painter.scenes import COLUMNS, HOUSE_COLOURS, LIGHT_RADIUS, PLACES, SAIL_COLOURS, SHAPES, SIZES, Scene, Thing

SIZE = 128  # pictures are judged at this size
LIGHT_AREA = np.pi * (LIGHT_RADIUS * SIZE) ** 2
ROOF_LEAST, HULL_LEAST, FOLIAGE_LEAST = 80, 70, 110


def _small(picture: NDArray[np.uint8]) -> Floats:
    factor = len(picture) // SIZE
    pixels: Floats = picture.astype(np.float64).reshape(SIZE, factor, SIZE, factor, 3).mean((1, 3))
    return pixels


def _nearest(pixel: Floats, colours: Mapping[str, Sequence[float]]) -> str:
    return min(colours, key=lambda name: float(distance(pixel, colours[name])))


def _unlike(pixels: Floats, ground: Floats) -> Mask:
    """Return where the picture differs from its background, which may be shaded or lit."""
    far = np.min([distance(pixels, ground * k) for k in np.arange(0.8, 1.09, 0.04)], 0)
    mask: Mask = far > 30
    return mask


@cache
def _templates() -> dict[str, tuple[Floats, float]]:
    """Return each shape's coverage of its box, and its width over height."""
    found = {}
    for kind in SHAPES:
        thing = Thing(kind, "black", "middle", "big", 0.5, 0.5, SIZES["big"])
        pixels = _small(draw.draw(Scene("one", "white", (thing,)), SIZE))
        region = regions(_unlike(pixels, np.asarray(draw.PALETTE["white"], float)), 50)[0]
        found[kind] = (stretched(region), region.width / region.height)
    return found


def _shape_of(region: Region) -> tuple[str, float, float]:
    """Return the most similar shape, its similarity (intersection over union), and the error of its proportions."""
    cover = stretched(region)
    alike = {kind: float(np.minimum(cover, t).sum() / np.maximum(cover, t).sum()) for kind, (t, _) in _templates().items()}
    kind = max(alike, key=lambda name: alike[name])
    return kind, alike[kind], abs(np.log(region.width / region.height / _templates()[kind][1]))


def _core_colour(pixels: Floats, region: Region) -> str:
    inner = region.mask.copy()
    for axis in (0, 1):
        for shift in (-2, 2):
            inner &= np.roll(region.mask, shift, axis)
    chosen = pixels[inner if inner.sum() >= 12 else region.mask]
    return _nearest(np.median(chosen, 0), draw.PALETTE)


def _size_of(region: Region, kind: str) -> str:
    whole = _templates()[kind][0].mean()
    box = {"square": 1.64}.get(kind, 2.0)  # the box's geometric mean side for a radius of one
    radius = np.sqrt(region.area / whole) / box / SIZE
    return min(SIZES, key=lambda name: abs(np.log(radius / SIZES[name])))


def _judge_thing(pixels: Floats, region: Region, thing: Thing) -> list[str]:
    kind, alike, skew = _shape_of(region)
    faults = []
    if kind != thing.kind or alike < 0.8 or skew > 0.22:
        faults.append(f"shape: {kind} ({alike:.2f}, {skew:.2f}) for {thing.kind}")
    elif _size_of(region, kind) != thing.size:
        faults.append(f"size: {_size_of(region, kind)} for {thing.size}")
    colour = _core_colour(pixels, region)
    if colour != thing.colour:
        faults.append(f"colour: {colour} for {thing.colour}")
    return faults


def _judge_shapes(pixels: Floats, scene: Scene) -> list[str]:
    border = np.concatenate([pixels[:3].reshape(-1, 3), pixels[-3:].reshape(-1, 3), pixels[:, 0], pixels[:, -1]])
    ground = np.median(border, 0)
    name = _nearest(ground, draw.PALETTE)
    if name != scene.background:
        return [f"background: {name} for {scene.background}"]
    mask = _unlike(pixels, ground)
    found = regions(mask, 40)
    if len(found) != len(scene.things) or mask.sum() - sum(r.area for r in found) > 60:
        return [f"count: {len(found)} for {len(scene.things)}"]
    # Objects are matched by their position, in the order in which the caption names them.
    across = scene.relation not in ("above", "below")
    backwards = scene.relation in ("right of", "below")
    found.sort(key=lambda r: r.x if across else r.y, reverse=backwards)
    faults = [fault for region, thing in zip(found, scene.things, strict=True) for fault in _judge_thing(pixels, region, thing)]
    for region, thing in zip(found, scene.things, strict=True):
        x, y = PLACES[thing.place] if thing.place else (region.x if across else 0.5, 0.5 if across else region.y)
        if max(abs(region.x - x), abs(region.y - y)) > 0.12:
            faults.append(f"place: {region.x:.2f} {region.y:.2f} for {thing.place or 'in line'}")
    return faults


def _column_of(x: float) -> str:
    return min(COLUMNS, key=lambda name: abs(COLUMNS[name] - x))


def _judge_places(found: list[Region], things: list[Thing], name: str) -> list[str]:
    if len(found) != len(things):
        return [f"count: {len(found)} {name} for {len(things)}"]
    where = [_column_of(region.x) for region in found]
    asked = [thing.place for thing in things if thing.place]
    missed = [place for place in asked if place not in where]
    return [f"place: {name} at {', '.join(where)} for {place}" for place in missed]


def _lights(pixels: Floats, scene: Scene) -> list[Region]:
    """Find everything in the sky that looks like a sun or moon, also a second or a half one."""
    sky = pixels[: int(draw.HORIZON * SIZE) - 8]
    night = scene.background == "night"
    colour = draw.MOON if night else draw.SUN[scene.background]
    near = distance(sky, colour) < (70 if night else 28)
    return regions(np.pad(near, ((0, SIZE - len(sky)), (0, 0))), int(0.12 * LIGHT_AREA))


def _judge_light(pixels: Floats, scene: Scene) -> list[str]:
    asked = [t for t in scene.things if t.kind in ("sun", "moon", "crescent moon")]
    found = _lights(pixels, scene)
    faults = _judge_places(found, asked, "lights")
    if not faults and asked:
        region = found[0]
        fill = region.area / max(region.width, region.height) ** 2
        full = fill > 0.62
        if not 0.25 < region.area / LIGHT_AREA < 1.8 or full == (asked[0].kind == "crescent moon"):
            faults.append(f"shape: light of area {region.area}, fill {fill:.2f} for {asked[0].kind}")
    return faults


def _judge_house(pixels: Floats, scene: Scene) -> list[str]:
    asked, time = [t for t in scene.things if t.kind == "house"], scene.background
    near = distance(pixels, draw.tinted(draw.ROOF, time)) < (22 if time != "night" else 14)
    found = [r for r in regions(near, ROOF_LEAST) if r.width >= 16 and scene.ground != "sea"]
    faults = _judge_places(found, asked, "houses")
    if not faults and asked:
        roof = found[0]
        wall = pixels[roof.bottom + 1 : roof.bottom + 4, roof.left + 5 : roof.right - 5].reshape(-1, 3)
        colour = _nearest(np.median(wall, 0), {c: draw.tinted(draw.PALETTE[c], time) for c in HOUSE_COLOURS})
        if colour != asked[0].colour:
            faults.append(f"colour: {colour} house for {asked[0].colour}")
    return faults


def _judge_boat(pixels: Floats, scene: Scene) -> list[str]:
    asked, time = [t for t in scene.things if t.kind == "boat"], scene.background
    near = distance(pixels, draw.tinted(draw.HULL, time)) < (24 if time != "night" else 15)
    found = [r for r in regions(near, HULL_LEAST) if r.width >= 16 and scene.ground == "sea"]
    faults = _judge_places(found, asked, "boats")
    if not faults and asked:
        hull = found[0]
        above = pixels[max(0, hull.top - 18) : hull.top - 2, hull.left : hull.right].reshape(-1, 3)
        sails = {c: draw.tinted(draw.PALETTE[c], time) for c in SAIL_COLOURS}
        counts = {c: int((distance(above, tint) < (34 if time != "night" else 24)).sum()) for c, tint in sails.items()}
        colour = max(counts, key=lambda c: counts[c])
        if colour != asked[0].colour or counts[colour] < 60:
            faults.append(f"colour: {colour} sail ({counts[colour]}) for {asked[0].colour}")
    return faults


def _judge_trees(pixels: Floats, scene: Scene) -> list[str]:
    asked = [t for t in scene.things if t.kind in ("tree", "pine")]
    red, green, blue = np.moveaxis(pixels / np.asarray(draw.TINT[scene.background]), -1, 0)
    land = np.arange(SIZE)[:, None] > 0.4 * SIZE
    foliage = (red < 94) & (green - red > 35) & (green - blue > -6) & land
    found = [] if scene.ground == "sea" else regions(foliage, FOLIAGE_LEAST)
    faults = _judge_places(found, asked, "trees")
    if not faults:
        for region, thing in zip(found, asked, strict=True):
            kind = "tree" if np.median((green - blue)[region.mask]) > 38 else "pine"
            if kind != thing.kind:
                faults.append(f"shape: {kind} for {thing.kind}")
    return faults


def _judge_landscape(pixels: Floats, scene: Scene) -> list[str]:
    time = scene.background
    sky = _nearest(np.median(pixels[:5].reshape(-1, 3), 0), {name: stops[0] for name, stops in draw.SKY.items()})
    if sky != time:
        return [f"background: {sky} for {time}"]
    faults = []
    near = {name: [0.9 * c for c in draw.tinted(layers[1], time)] for name, layers in draw.GROUND.items()}
    ground = _nearest(np.median(pixels[-6:].reshape(-1, 3), 0), near)
    if ground != scene.ground:
        faults.append(f"background: {ground} for {scene.ground}")
    caps = distance(pixels[int(0.3 * SIZE) : int(0.47 * SIZE)], draw.tinted(draw.SNOW_CAP, time)) < 24
    if (caps.sum() > 30) != scene.mountains:
        faults.append(f"count: mountain snow {caps.sum()} for mountains {scene.mountains}")
    puffs = distance(pixels[: int(0.28 * SIZE)], draw.CLOUD[time]) < 26 if time != "night" else np.zeros(1)
    if (puffs.sum() > 90) != scene.clouds:
        faults.append(f"count: cloud {puffs.sum()} for clouds {scene.clouds}")
    for judge in (_judge_light, _judge_house, _judge_boat, _judge_trees):
        faults += judge(pixels, scene)
    return faults


def faults(picture: NDArray[np.uint8], scene: Scene) -> list[str]:
    """List the picture's faults as "kind: found for asked"."""
    pixels = _small(picture)
    return _judge_landscape(pixels, scene) if scene.pattern == "landscape" else _judge_shapes(pixels, scene)
