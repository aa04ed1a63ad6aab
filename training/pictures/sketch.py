"""Write a scene as a sketch: for each of 8 x 8 cells what its caption says of the whole, and the cell drawn roughly, by formula. The text
encoder learns to write sketches, the UNet to paint from them, apart and at the same time."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.pictures.draw import PALETTE, draw
from training.pictures.scenes import Scene, lay_out
from training.pictures.world import GROUNDS, STYLES, TIMES, WEATHERS

Floats = NDArray[np.float32]

CELLS = 8
DOTS = 4
"""A cell's rough drawing has so many dots a side, as many as the UNet's latents."""
FINER = 4  # a dot is the mean of so many pixels a side
WIDTH = 128
SCALE = 2.0
REACH = 1.25  # a thing is told in the cells up to so many of its radii from its middle
_PLACE, _SCENE = 12, 5 + len(GROUNDS) + len(TIMES) + len(WEATHERS) - 1 + 1 + len(STYLES) - 1
THING_AT = 1 + _PLACE + _SCENE
ROUGH_AT = THING_AT + 1
USED = ROUGH_AT + 3 * DOTS * DOTS


def _places() -> Floats:
    """Return waves of three lengths along rows and columns, by which a cell is found."""
    at = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS
    waves = np.concatenate([[np.sin(np.pi * n * at), np.cos(np.pi * n * at)] for n in (1, 2, 4)]).T
    rows, columns = waves[:, None, :].repeat(CELLS, 1), waves[None, :, :].repeat(CELLS, 0)
    return np.concatenate([rows, columns], -1).astype(np.float32)


def _waves() -> Floats:
    """Return the cosines (dots, waves) by which a cell's dots are told: first their mean, at half its weight, then ever finer changes."""
    at, n = np.arange(DOTS) + 0.5, np.arange(DOTS)
    line = np.cos(np.pi * at[:, None] * n[None, :] / DOTS) * np.where(n == 0, np.sqrt(1 / DOTS), np.sqrt(2 / DOTS))
    both = np.einsum("yn,xm->yxnm", line, line).reshape(DOTS * DOTS, DOTS * DOTS)
    return np.asarray(both * np.where(np.arange(DOTS * DOTS) == 0, 0.75, 1.5), np.float32)


PLACES, WAVES = _places(), _waves()


def _rough(scene: Scene) -> Floats:
    """Draw the scene in 32 x 32 dots without chances; return each cell's dots as waves, colour by colour."""
    pixels = draw(scene, CELLS * DOTS * FINER, even=True).astype(np.float32) / 127.5 - 1
    dots = pixels.reshape(CELLS, DOTS, FINER, CELLS, DOTS, FINER, 3).mean((2, 5))
    cells = dots.transpose(0, 2, 4, 1, 3).reshape(CELLS, CELLS, 3, DOTS * DOTS)
    return (cells @ WAVES).reshape(CELLS, CELLS, -1)


def _scene_facts(scene: Scene) -> Floats:
    ground = PALETTE[scene.background] if scene.background else (127.5, 127.5, 127.5)
    plain = not scene.ground
    return np.asarray(
        [
            plain,
            *(np.asarray(ground) / 127.5 - 1 if plain else (0, 0, 0)),
            bool(scene.background),
            *(scene.ground == name for name in GROUNDS),
            *(not plain and scene.time == name for name in TIMES),
            *(scene.weather == name for name in WEATHERS[1:]),
            scene.mountains,
            *(scene.style == name for name in STYLES[1:]),
        ],
        np.float32,
    )


def complete(rows: Tensor) -> Tensor:
    """Fill up to WIDTH so that each cell's mean is 0 and its variance 1, as the encoder's last norm leaves them."""
    spare = WIDTH - rows.shape[-1]
    total = rows.sum(-1, keepdim=True)
    rest = WIDTH - rows.pow(2).sum(-1, keepdim=True) - total**2 / spare
    if rest.min() < 0:
        raise ValueError("a sketch says more than its width can hold; lower SCALE")
    sign = 1 - 2 * (torch.arange(spare) % 2)
    return torch.cat([rows, -total / spare + sign * (rest / spare).sqrt()], -1)


def _holds_a_thing(scene: Scene) -> Floats:
    at = (np.arange(CELLS, dtype=np.float32) + 0.5) / CELLS
    found = np.zeros((CELLS, CELLS), np.float32)
    for spot in lay_out(scene):
        far = np.maximum(np.abs(at[None, :] - spot.x), np.abs(at[:, None] - spot.y))
        found[far < max(REACH * spot.radius, far.min() + 1e-6)] = 1  # a small thing is told in one cell at least
    return found


def sketch(scene: Scene | None) -> Floats:
    """Return (64, USED); of no scene, the sketch of the empty caption."""
    facts = np.zeros((CELLS, CELLS, USED), np.float32)
    facts[..., 1 : 1 + _PLACE] = 0.7 * PLACES
    if scene is None:
        facts[..., 0] = 1
        return SCALE * facts.reshape(CELLS * CELLS, USED)
    facts[..., 1 + _PLACE : THING_AT] = 0.7 * _scene_facts(scene)
    facts[..., THING_AT] = _holds_a_thing(scene)
    facts = SCALE * facts
    facts[..., ROUGH_AT:] = _rough(scene)
    return facts.reshape(CELLS * CELLS, USED)


NOTHING = complete(torch.zeros(1, USED))
"""The encoder writes this constant where the caption's own words stand."""
