"""Go on from a released voice: its codebooks, found again from its codec and the sentences, so that Dia learns more of the same codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from . import codec, corpus, lookup

ROUNDS = 25
LEAST_SCALE, MOST_SCALE = 0.5, 4.0
STAGES = codec.STAGE_WEIGHTS


def centres(folder: Path) -> list[Tensor]:
    """Return each stage's codes in the codec's own scale: what `lookup.lay` put into the first places of its vectors."""
    held = load_file(folder / "codec" / "model.safetensors")
    rows = (held[f"quantizer.quantizers.{stage}.codebook.weight"].float()[:, : codec.FEATURES] for stage in range(codec.CHANNELS))
    return [
        torch.where(weights > 0, own / weights.where(weights > 0, torch.ones(())), 0.0) for own, weights in zip(rows, STAGES, strict=True)
    ]


def in_features(scaled: list[Tensor], middle: Tensor, scale: float) -> Tensor:
    """Undo `lookup.scaled` for codes: only the first two stages were moved to the middle."""
    moved = zip(scaled, STAGES, (middle, middle, 0 * middle, 0 * middle), strict=True)
    return torch.stack([own * scale + beside * (weights > 0) for own, weights, beside in moved])


def fitting_scale(scaled: list[Tensor], middle: Tensor) -> float:
    """Return the scale that is the spread of the first two stages' codes, as `lookup.middle_and_scale` says, by halving."""
    low, high = LEAST_SCALE, MOST_SCALE
    for _ in range(50):
        tried = (low + high) / 2
        low, high = (tried, high) if float(in_features(scaled, middle, tried)[:2].std()) > tried else (low, tried)
    return low


def books(scaled: list[Tensor], points: Tensor, middle: Tensor, scale: float) -> Tensor:
    """Return the codebooks that are `scaled` in the codec. Each feature's middle is where the codes lie upon the points that they stand for;
    the first feature, which two stages share, follows from the codes alone."""
    both = STAGES[0].gt(0) & STAGES[1].gt(0)
    for _ in range(ROUNDS):
        rest, found = points, middle.clone()
        for own, weights, book in zip(scaled[:2], STAGES[:2], in_features(scaled, middle, scale)[:2], strict=True):
            owner, seen = codec.nearest(rest * weights, book * weights), (weights > 0) & ~both
            found[seen] = (rest - scale * own[owner]).mean(0)[seen]
            rest = rest - book[owner]
        found[both] = -scale * (scaled[0].mean(0) + scaled[1].mean(0))[both]
        middle, scale = found, fitting_scale(scaled, found)
    return in_features(scaled, middle, scale)


def write_sounds(folder: Path, fresh: Path, path: Path) -> None:
    """Write the codec's data as `corpus.write_sounds` did into `fresh`, in the codes of the voice in `folder`."""
    with np.load(fresh) as held:
        sound, first = np.split(held["sound"], np.cumsum(held["lengths"])[:-1]), torch.from_numpy(held["books"])
    points = [codec.features(torch.from_numpy(part).float() / 32768) for part in sound]
    known = books(centres(folder), torch.cat(points), *_begun(first))
    corpus.save_codec(path, known, sound, [codec.quantise(part, known).numpy() for part in points])


def _begun(fresh: Tensor) -> tuple[Tensor, float]:
    middle, scale = lookup.middle_and_scale(fresh)
    return middle, float(scale)
