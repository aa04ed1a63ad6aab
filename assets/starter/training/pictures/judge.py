"""Read a picture: which things stand where, in what colour and size, before what. A small network of the project's own, taught by drawings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from assets.starter.training.pictures.draw import place_things
from assets.starter.training.pictures.scenes import Scene, Spot
from assets.starter.training.pictures.world import COLOURS, GROUNDS, NOUNS, STYLES, TIMES, WEATHERS

SIZE, GRID = 128, 32
KINDS = tuple(NOUNS)
WHOLE = {"ground": ("", *GROUNDS), "time": TIMES, "background": COLOURS, "weather": WEATHERS, "mountains": (False, True), "style": STYLES}
"""What is said of the whole picture, and the answers to each."""
UNSAID = -100
CELL = 1 + len(KINDS) + len(COLOURS) + 1


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1),
                                  nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class Judge(nn.Module):
    """A heat map of middles over 32 x 32 cells with kind, colour and size, and six answers about the whole."""

    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.SiLU(), nn.Conv2d(32, 64, 4, 2, 1), _Block(64), _Block(64))
        self.coarse = nn.Sequential(nn.Conv2d(64, 96, 4, 2, 1), _Block(96), nn.Conv2d(96, 128, 4, 2, 1), _Block(128), _Block(128))
        self.back, self.join = nn.Conv2d(128, 64, 1), _Block(64)
        self.cells = nn.Conv2d(64, CELL, 1)
        self.whole = nn.ModuleDict({name: nn.Linear(128, len(answers)) for name, answers in WHOLE.items()})

    def forward(self, pictures: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        fine = self.fine(pictures)
        coarse = self.coarse(fine)
        joined = self.join(fine + functional.interpolate(self.back(coarse), scale_factor=4.0, mode="bilinear"))
        pooled = coarse.mean((2, 3))
        return self.cells(joined), {name: head(pooled) for name, head in self.whole.items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """What the judge sees in a picture."""

    things: list[Spot]
    whole: dict[str, object]


def as_pixels(pictures: NDArray[np.uint8]) -> Tensor:
    """Return pictures of any multiple of 128 px as the judge's input."""
    found = torch.from_numpy(np.array(pictures)).permute(0, 3, 1, 2).float() / 127.5 - 1
    return functional.avg_pool2d(found, found.shape[-1] // SIZE)


def _answers(scene: Scene) -> dict[str, int]:
    """Return the right answers about the whole; what is left open is not asked."""
    told: dict[str, object] = {name: getattr(scene, name) for name in WHOLE}
    asked = {name: answers.index(told[name]) if told[name] in answers else UNSAID for name, answers in WHOLE.items()}  # type: ignore[attr-defined]
    if scene.ground:
        asked["background"] = UNSAID
    else:
        asked["time"] = UNSAID
    return asked


def _target(scenes: list[Scene]) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return heat maps, per cell (kind, colour, size in logs) or UNSAID, and the answers about the whole."""
    heat = np.zeros((len(scenes), GRID, GRID), np.float32)
    told = np.full((len(scenes), 3, GRID, GRID), UNSAID, np.float32)
    y, x = (np.mgrid[0:GRID, 0:GRID].astype(np.float32) + 0.5) / GRID
    for i, each in enumerate(scenes):
        for spot in place_things(each):
            far = ((x - spot.x) ** 2 + (y - spot.y) ** 2) / 0.026**2
            heat[i] = np.maximum(heat[i], np.exp(-far / 2))
            near = far < 3
            for place, value in enumerate((KINDS.index(spot.kind), COLOURS.index(spot.colour), np.log(spot.radius / 0.14))):
                told[i, place][near] = value
    whole = [_answers(each) for each in scenes]
    return torch.from_numpy(heat), torch.from_numpy(told), {name: torch.tensor([each[name] for each in whole]) for name in WHOLE}


def _loss(found: tuple[Tensor, dict[str, Tensor]], scenes: list[Scene]) -> Tensor:
    cells, whole = found
    heat, told, answers = _target(scenes)
    logits = cells[:, 0]
    sure = torch.where(heat > 0.9, 1.0, (1 - heat) ** 4)
    loss = 60 * (functional.binary_cross_entropy_with_logits(logits, heat, reduction="none") * sure * (1 + 20 * (heat > 0.5))).mean()
    kinds, colours = cells[:, 1 : 1 + len(KINDS)], cells[:, 1 + len(KINDS) : -1]
    here = told[:, 0] != UNSAID
    if here.any():
        loss = loss + functional.cross_entropy(kinds, told[:, 0].long()) + functional.cross_entropy(colours, told[:, 1].long())
        loss = loss + 3 * (cells[:, -1] - told[:, 2])[here].pow(2).mean()
    for name, logit in whole.items():
        if (answers[name] != UNSAID).any():
            loss = loss + 0.5 * functional.cross_entropy(logit, answers[name])
    return loss


@torch.no_grad()
def see(judge: Judge, pictures: NDArray[np.uint8]) -> list[Seen]:
    """Read pictures: middles are peaks of the heat map."""
    cells, whole = judge(as_pixels(pictures))
    heat = cells[:, 0].sigmoid()
    peaks = (heat == functional.max_pool2d(heat[:, None], 3, 1, 1)[:, 0]) & (heat > 0.35)
    found = []
    for i in range(len(pictures)):
        things = []
        for row, column in peaks[i].nonzero().tolist():
            cell = cells[i, :, row, column]
            kind, colour = KINDS[int(cell[1 : 1 + len(KINDS)].argmax())], COLOURS[int(cell[1 + len(KINDS) : -1].argmax())]
            things.append(Spot(kind, colour, (column + 0.5) / GRID, (row + 0.5) / GRID, 0.14 * float(cell[-1].exp())))
        found.append(Seen(things, {name: answers[int(whole[name][i].argmax())] for name, answers in WHOLE.items()}))  # type: ignore[index]
    return found


def train_judge(
    pictures: NDArray[np.uint8], scenes: list[Scene], work: Path, steps: int, batch: int = 24, rate: float = 1.5e-3
) -> Iterator[str]:
    """Train on drawings, somewhat blurred and noisy as paintings may be; resume from work/judge.pt."""
    torch.manual_seed(4)
    judge, kept, first = Judge(), work / "judge.pt", 0
    optimizer = torch.optim.AdamW(judge.parameters(), rate, weight_decay=0.01, fused=True)
    if kept.exists():
        state = torch.load(kept, weights_only=True)
        first = int(state["step"])
        judge.load_state_dict(state["judge"])
        optimizer.load_state_dict(state["optimizer"])
    judge.to(memory_format=torch.channels_last)
    rng, began_s, losses = np.random.default_rng([9, first]), time.monotonic(), []
    for step in range(first, steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 100) * min(1.0, (steps - step) / (0.6 * steps))
        chosen = np.sort(rng.choice(len(pictures), batch, replace=False))
        given = as_pixels(pictures[chosen])
        if rng.random() < 0.5:
            given = functional.avg_pool2d(functional.pad(given, (1, 1, 1, 1), mode="replicate"), 3, 1)
        given = (given + torch.randn_like(given) * 0.06 * rng.random()).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):
            cells, whole = judge(given)
        loss = _loss((cells.float(), {name: logit.float() for name, logit in whole.items()}), [scenes[int(i)] for i in chosen])
        loss.backward()
        nn.utils.clip_grad_norm_(judge.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 100 == 99 or step == steps - 1:
            torch.save({"step": step + 1, "judge": judge.state_dict(), "optimizer": optimizer.state_dict()}, kept)
            yield f"judge {step + 1}/{steps} loss {np.mean(losses[-100:]):.3f} {time.monotonic() - began_s:.0f} s"
