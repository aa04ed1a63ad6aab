"""Write a scene as a sketch: for each of 8 x 8 cells, what its caption says of it, by formula. The text encoder learns to write sketches,
the UNet to paint from them, apart and at the same time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assets.starter.training.pictures.draw import PALETTE
from assets.starter.training.pictures.scenes import Scene, lay_out
from assets.starter.training.pictures.world import GROUNDS, NOUNS, STYLES, TIMES, WEATHERS

Floats = NDArray[np.float32]

CELLS = 8
WIDTH = 128
SCALE = 2.0
REACH = 1.5  # a thing is told in the cells up to so many of its radii from its middle
_KINDS = {kind: i for i, kind in enumerate(NOUNS)}
_PLACE, _SCENE = 12, 5 + len(GROUNDS) + len(TIMES) + len(WEATHERS) - 1 + 1 + len(STYLES) - 1
_THING = 1 + len(_KINDS) + 4 + 3
USED = 1 + _PLACE + _SCENE + _THING
KINDS_AT = slice(1 + _PLACE + _SCENE + 1, 1 + _PLACE + _SCENE + 1 + len(_KINDS))
THING_AT = 1 + _PLACE + _SCENE


def _places() -> Floats:
    """Return waves of three lengths along rows and columns, by which a cell is found."""
    at = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS
    waves = np.concatenate([[np.sin(np.pi * n * at), np.cos(np.pi * n * at)] for n in (1, 2, 4)]).T
    rows, columns = waves[:, None, :].repeat(CELLS, 1), waves[None, :, :].repeat(CELLS, 0)
    return np.concatenate([rows, columns], -1).astype(np.float32)


PLACES = _places()


def _natural(kind: str, colour: str) -> Floats:
    """Return a colour from -1 to 1; unsaid, the mean of the noun's own."""
    named = [colour] if colour else NOUNS[kind].natural
    return np.mean([PALETTE[name] for name in named], 0).astype(np.float32) / 127.5 - 1


def _scene_facts(scene: Scene) -> Floats:
    ground = PALETTE[scene.background] if scene.background else (127.5, 127.5, 127.5)
    plain = not scene.ground
    return np.asarray([
        plain, *(np.asarray(ground) / 127.5 - 1 if plain else (0, 0, 0)), bool(scene.background),
        *(scene.ground == name for name in GROUNDS), *(not plain and scene.time == name for name in TIMES),
        *(scene.weather == name for name in WEATHERS[1:]), scene.mountains, *(scene.style == name for name in STYLES[1:]),
    ], np.float32)  # fmt: skip


def complete(rows: Tensor) -> Tensor:
    """Fill up to WIDTH so that each cell's mean is 0 and its variance 1, as the encoder's last norm leaves them."""
    spare = WIDTH - rows.shape[-1]
    total = rows.sum(-1, keepdim=True)
    rest = WIDTH - rows.pow(2).sum(-1, keepdim=True) - total**2 / spare
    if rest.min() < 0:
        raise ValueError("a sketch says more than its width can hold; lower SCALE")
    sign = 1 - 2 * (torch.arange(spare) % 2)
    return torch.cat([rows, -total / spare + sign * (rest / spare).sqrt()], -1)


def sketch(scene: Scene | None) -> Floats:
    """Return (64, USED); of no scene, the sketch of the empty caption."""
    facts = np.zeros((CELLS, CELLS, USED), np.float32)
    facts[..., 1 : 1 + _PLACE] = 0.7 * PLACES
    if scene is None:
        facts[..., 0] = 1
        return SCALE * facts.reshape(CELLS * CELLS, USED)
    facts[..., 1 + _PLACE : THING_AT] = 0.7 * _scene_facts(scene)
    at = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS
    nearest = np.full((CELLS, CELLS), REACH, np.float32)
    for spot in lay_out(scene):
        dx, dy = np.broadcast_arrays((at[None, :] - spot.x) / spot.radius, (at[:, None] - spot.y) / spot.radius)
        far = np.maximum(np.abs(dx), np.abs(dy))
        far = np.where(far == far.min(), np.minimum(far, 0.9 * REACH), far)  # a small thing is told in one cell at least
        told = np.zeros((CELLS, CELLS, _THING), np.float32)
        told[..., 0] = 1
        told[..., 1 + _KINDS[spot.kind]] = 1
        told[..., -7:-4] = _natural(spot.kind, spot.colour)
        told[..., -4] = bool(spot.colour)
        told[..., -3], told[..., -2], told[..., -1] = np.clip(dx, -2, 2) * 0.7, np.clip(dy, -2, 2) * 0.7, spot.radius * 5
        here = far < nearest
        facts[here, THING_AT:] = told[here]
        nearest = np.where(here, far, nearest)
    return SCALE * facts.reshape(CELLS * CELLS, USED)


NOTHING = complete(torch.zeros(1, USED))
"""What the encoder writes where the caption's own words stand: a constant."""
