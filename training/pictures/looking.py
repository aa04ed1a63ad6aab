"""Say what is wrong in a picture, by drawing: of all drawings in which one thing is another, which one does the picture resemble most?

Nothing here is learned. Each thing of the scene is drawn as every noun, in every colour, smaller, larger and not at all, over the picture's own
ground, and the likest drawing says what stands there. What is said of the whole is the answer whose drawings are nearest in colour or in detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from training.pictures.draw import draw, place_things
from training.pictures.scenes import Scene, Spot
from training.pictures.world import COLOURS, GROUNDS, NOUNS, TIMES, WEATHERS

Floats = NDArray[np.float32]

SIZE, COARSE = 128, 16
SEEDS = 80  # so many drawings of each answer
REACH = 1.3  # a figure ends within so many of its radii
SEEN = 10.0  # of 255: less than this is no figure
EXTRA = 64.0  # of 255: so far off over EXTRA_SHARE of the picture is a thing that nobody asked for
EXTRA_SHARE = 0.01
CLEARLY = 1.5  # so much liker: where no background is asked for, its colour is a guess and a flat drawing is never quite alike
LAMPLIT = 0.75  # lamplight leaves the sides darker than so much of the middle
OTHER_SIZES = (0.6, 1.0, 1.55)
LIKELY = 3  # so many of the likest nouns are compared at other sizes too
FAULTS = ("whole", "kind", "colour", "size", "missing", "extra")


def reduced(picture: NDArray[np.uint8]) -> Floats:
    """Return a picture of any multiple of SIZE as floats of that size."""
    step = len(picture) // SIZE
    return picture.astype(np.float32).reshape(SIZE, step, SIZE, step, 3).mean((1, 3))


def _blurred(pixels: Floats, radius: int) -> Floats:
    """Return the mean of the square of this radius around each pixel."""
    planes = torch.from_numpy(np.ascontiguousarray(np.atleast_3d(pixels).transpose(2, 0, 1)))
    for side in ((2 * radius + 1, 1), (1, 2 * radius + 1)):
        planes = functional.avg_pool2d(planes[None], side, 1, tuple(x // 2 for x in side), count_include_pad=False)[0]
    found: Floats = planes.permute(1, 2, 0).numpy()
    return found


def _off(one: Floats, other: Floats) -> float:
    """Return how unlike two cut-outs are: in colour, and in their edges."""
    error = one - other
    return float((error**2).mean() + (np.diff(error, axis=0) ** 2).mean() + (np.diff(error, axis=1) ** 2).mean())


def _near(spot: Spot, reach: float) -> tuple[slice, slice]:
    low_y, low_x = (max(0, int((at - reach * spot.radius) * SIZE)) for at in (spot.y, spot.x))
    high_y, high_x = (min(SIZE, int((at + reach * spot.radius) * SIZE) + 2) for at in (spot.y, spot.x))
    return slice(low_y, high_y), slice(low_x, high_x)


class Ground:
    """The picture's ground as it would be without things: the drawn one, in the picture's own light."""

    def __init__(self, picture: Floats, scene: Scene) -> None:
        self.broad: Floats
        self.scene, self.spots = scene, place_things(scene)
        self.drawn = draw(scene, SIZE, True, []).astype(np.float32)
        self.free = free = np.ones((SIZE, SIZE), np.float32)
        for spot in self.spots:
            free[_near(spot, REACH)] = 0
        off = (picture - self.drawn) * free[..., None]
        light = np.zeros_like(picture)
        for radius in (40, 20, 8):  # what lies farther off counts where nothing is nearer
            share = _blurred(free, radius)
            light = np.where(share > 0.08, _blurred(off, radius) / np.maximum(share, 0.08), light)
            self.broad = self.drawn + light if radius > 8 else self.broad
        self.own = self.drawn + light

    def with_things(self, spots: Sequence[Spot]) -> Floats:
        """Draw these things over the picture's own ground."""
        drawn = draw(self.scene, SIZE, True, spots).astype(np.float32)
        shown = (np.abs(drawn - self.drawn).max(-1) > SEEN)[..., None]
        return np.where(shown, drawn, self.own)


def _thing_faults(picture: Floats, ground: Ground, index: int) -> list[str]:
    """Say what stands where this thing was asked for."""
    asked = ground.spots[index]
    here = _near(asked, REACH)

    def unlike(other: Spot | None) -> float:
        spots = [*ground.spots[:index], *([other] if other else []), *ground.spots[index + 1 :]]
        return _off(picture[here], ground.with_things(spots)[here])

    own = NOUNS[asked.kind].natural
    said = {(group.kind, group.colour) for group in ground.scene.groups}
    right = [asked.colour] if (asked.kind, asked.colour) in said else list(own)
    colours = {colour: unlike(replace(asked, colour=colour)) for colour in COLOURS}
    best = min(colours, key=lambda colour: colours[colour])
    likely = {asked.colour, best}  # another noun may be in the colour asked for though this one would be likest in another

    def unlike_all(kind: str, share: float = 1) -> float:
        return min(unlike(replace(asked, kind=kind, colour=colour, radius=share * asked.radius)) for colour in likely)

    found = {kind: unlike_all(kind) for kind in NOUNS if kind != asked.kind} | {asked.kind: colours[best], "": unlike(None)}
    shares: dict[str, float] = {}
    for kind in {asked.kind, *sorted(found, key=lambda kind: found[kind])[:LIKELY]} - {""}:
        sizes = {share: unlike_all(kind, share) for share in OTHER_SIZES}
        shares[kind] = min(sizes, key=lambda share: sizes[share])
        found[kind] = sizes[shares[kind]]
    likest = min(found, key=lambda kind: found[kind])
    if likest != asked.kind:
        return [f"kind: {likest} for {asked.kind}" if likest else f"missing: {asked.kind}"]
    wrong = [] if best in right else [f"colour: {best} for {asked.colour} ({asked.kind})"]
    share = shares[asked.kind]
    return wrong if share == 1 else [*wrong, f"size: {share} of what was asked ({asked.kind})"]


@lru_cache(None)
def _coarse(scene: Scene) -> Floats:
    return draw(scene, COARSE, spots=[]).astype(np.float32)


def _likest_whole(picture: Floats, ground: Ground, name: str, values: Sequence[object]) -> object:
    """Return the answer of whose many drawings without things one comes nearest in its coarse colours."""
    step = SIZE // COARSE
    free, small = (x.reshape(COARSE, step, COARSE, step, -1).mean((1, 3)) for x in (ground.free, picture))
    weights = np.where(free > 0.9, free, 0.001)
    bare = replace(ground.scene, groups=())

    def unlike(value: object) -> float:
        drawn = [_coarse(replace(bare, **{name: value, "seed": seed})) for seed in range(SEEDS)]  # type: ignore[arg-type]
        return min(float((weights * (small - each) ** 2).sum()) for each in drawn)

    return min(values, key=unlike)


def _likest_detail(picture: Floats, ground: Ground, name: str, values: Sequence[object]) -> object:
    """Return the answer whose drawing has the picture's detail, colours apart; another than the first has to be much the liker."""
    fine = picture - _blurred(picture, 6)

    def unlike(value: object) -> float:
        drawn = draw(replace(ground.scene, **{name: value}), SIZE, True).astype(np.float32)  # type: ignore[arg-type]
        return float(((fine - (drawn - _blurred(drawn, 6))) ** 2).mean()) * (1 if value == values[0] else CLEARLY)

    return min(values, key=unlike)


def _is_lamplit(picture: Floats, ground: Ground) -> bool:
    """See whether both sides are darker than the middle, row by row, where no thing stands."""
    light, free = picture.mean(-1), ground.free
    aside = np.abs((np.arange(SIZE) + 0.5) / SIZE - 0.5)
    shares = [(light * free)[:, where].sum(1) / np.maximum(free[:, where].sum(1), 1) for where in (aside > 0.4, aside < 0.2)]
    both = (shares[0] > 0) & (shares[1] > 0)
    return bool(both.any() and (shares[0][both] / shares[1][both]).mean() < LAMPLIT)


def _whole_faults(picture: Floats, ground: Ground) -> list[str]:
    """Name what is wrong of the whole; a background that was not said may be any."""
    scene = ground.scene
    coarse: dict[str, Sequence[object]] = {"background": COLOURS} if scene.background else {}
    fine: dict[str, Sequence[object]] = {}
    if scene.ground:
        coarse = {"ground": GROUNDS, "time": TIMES}
        fine |= {"weather": WEATHERS, "mountains": (False, True)}
    found = {name: _likest_whole(picture, ground, name, values) for name, values in coarse.items()}
    found |= {name: _likest_detail(picture, ground, name, values) for name, values in fine.items()}
    found["style"] = "lamp" if _is_lamplit(picture, ground) else _likest_detail(picture, ground, "style", ("", "watercolour", "pencil"))
    return [
        f"whole: {value or 'no ' + name} for {getattr(scene, name) or 'no ' + name}"
        for name, value in found.items()
        if value != getattr(scene, name)
    ]


def faults(pixels: NDArray[np.uint8], scene: Scene) -> list[str]:
    """List what is wrong as "kind of fault: found for asked"."""
    picture = reduced(pixels)
    ground = Ground(picture, scene)
    wrong = _whole_faults(picture, ground)
    for index in range(len(ground.spots)):
        wrong += _thing_faults(picture, ground, index)
    off = np.abs(picture - ground.broad).max(-1) * ground.free
    share = float((_blurred(off, 2)[..., 0] > EXTRA).mean())
    return [*wrong, f"extra: {100 * share:.1f}% of the picture"] if share > EXTRA_SHARE else wrong


def shows(pixels: NDArray[np.uint8], scene: Scene, kind: str) -> bool:
    """See whether a thing of this kind stands at one of its places in the scene."""
    picture = reduced(pixels)
    ground = Ground(picture, scene)
    found = (_thing_faults(picture, ground, index) for index, spot in enumerate(ground.spots) if spot.kind == kind)
    return any(not each or not each[0].startswith(("kind", "missing")) for each in found)
