"""Attention shapes of real models, cut to self-test size, with float64 results from numpy, independent of torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from app.compat.planning.types import Dtype

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
Mask = Literal["none", "padding", "bias", "blind"]
Layout = Literal["plain", "permuted", "fused", "expanded"]


@dataclass(frozen=True, slots=True)
class CaseShape:
    """One attention: batch x heads x tokens x width."""

    name: str
    batch: int
    heads: int
    queries: int
    keys: int
    dim: int
    kv_heads: int = 0
    """0 stands for as many as query heads."""
    value_dim: int = 0
    mask: Mask = "none"
    causal: bool = False
    layout: Layout = "plain"
    scale: float | None = None
    loud: float = 1
    """Queries and keys are larger by this factor, a power of two."""
    every: int = 1
    """Compare every row, or every n-th if all would take too long."""

    @property
    def grouped(self) -> bool:
        return self.kv_heads not in (0, self.heads)


@dataclass(frozen=True, slots=True)
class Made:
    """A shape's tensors on the device, and the correct result."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    shape: CaseShape
    right: Array

    def options(self) -> dict[str, Any]:
        return {"attn_mask": self.mask, "is_causal": self.shape.causal, "scale": self.shape.scale, "enable_gqa": self.shape.grouped}


DIA_STEP: Final = CaseShape("Dia, one step", 2, 16, 1, 200, 128, kv_heads=4)
DIA_LATE_STEP: Final = CaseShape("Dia, a late step", 2, 16, 1, 1100, 128, kv_heads=4)
DIA_STEP_PADDED: Final = CaseShape("Dia, one step, padded", 2, 16, 1, 200, 128, kv_heads=4, mask="padding")
DIA_PROMPT: Final = CaseShape("Dia, reading a prompt", 2, 8, 96, 96, 128, kv_heads=2, causal=True)
DIA_TEXT: Final = CaseShape("Dia, reading the text", 2, 4, 128, 128, 128, mask="padding")
CLIP: Final = CaseShape("CLIP", 2, 4, 77, 77, 64, causal=True)
T5: Final = CaseShape("T5", 1, 4, 128, 128, 64, mask="bias", scale=1.0, loud=0.5)
SD15: Final = CaseShape("SD 1.5", 2, 2, 1024, 1024, 40, layout="permuted")
SD15_TEXT: Final = CaseShape("SD 1.5 and its text", 2, 2, 1024, 77, 40, layout="permuted")
SD15_LOUD: Final = CaseShape("SD 1.5, loud", 2, 2, 256, 256, 40, layout="permuted", loud=16)
"""Products exceed float16's range before scaling."""
SD15_DEEP: Final = CaseShape("SD 1.5, deepest", 2, 4, 64, 64, 160, layout="permuted")
SD15_LARGE: Final = CaseShape("SD 1.5, deepest of a large picture", 1, 2, 1024, 1100, 160, layout="permuted")
SDXL: Final = CaseShape("SDXL", 2, 2, 1024, 1024, 64, layout="permuted")
FLUX: Final = CaseShape("Flux", 1, 2, 1280, 1280, 128, layout="permuted")
VAE: Final = CaseShape("a VAE", 1, 1, 1024, 1024, 512)
LONG: Final = CaseShape("many keys", 1, 1, 64, 4096, 40)
LONGEST: Final = CaseShape("very many keys", 1, 1, 16, 33000, 40)
FUSED: Final = CaseShape("views of one tensor", 2, 4, 128, 128, 64, layout="fused")
FUSED_STEP: Final = CaseShape("short views of one tensor", 2, 4, 4, 4, 64, layout="fused")
SHARED_MASK_STEP: Final = CaseShape("a few queries, one mask for all heads", 2, 4, 8, 8, 64, mask="padding")
PERMUTED_STEP: Final = CaseShape("a few permuted queries", 2, 4, 4, 200, 64, layout="permuted")
EXPANDED: Final = CaseShape("one key for all heads", 2, 4, 64, 64, 64, layout="expanded")
NARROW: Final = CaseShape("narrow values", 2, 4, 64, 64, 64, value_dim=32)
WIDE: Final = CaseShape("wide values", 2, 4, 64, 64, 64, value_dim=96)
BLIND: Final = CaseShape("a row that sees nothing", 2, 4, 64, 64, 64, mask="blind")
BLIND_STEP: Final = CaseShape("a few queries, some see nothing", 2, 4, 8, 64, 64, mask="blind")
BLIND_SD15: Final = CaseShape("a row that sees nothing, narrow heads", 2, 4, 64, 64, 40, mask="blind")
BLIND_HEADS: Final = CaseShape("many rows that see nothing, narrow heads", 1, 2, 1024, 1024, 40, mask="blind", every=8)
WIDE_MASK: Final = CaseShape("a large mask for all heads", 1, 2, 4096, 2048, 40, mask="padding", every=64)

BLINDS: Final = (BLIND, BLIND_STEP, BLIND_SD15)
STEPS: Final = (DIA_STEP, DIA_LATE_STEP, DIA_STEP_PADDED)
PICTURES: Final = (SD15, SD15_TEXT, SD15_DEEP, SDXL, FLUX, VAE)
TEXTS: Final = (DIA_TEXT, DIA_PROMPT, CLIP, T5)


def make(shape: CaseShape, dtype: Dtype, device: str) -> Made:
    wanted: torch.dtype = getattr(torch, dtype)
    query, key, value, mask, right = numbers(shape)
    on = [torch.from_numpy(each).to(wanted).to(device) for each in (query, key, value)]
    visible = None if mask is None else torch.from_numpy(mask)
    if visible is not None:
        visible = (visible if visible.dtype == torch.bool else visible.to(wanted)).to(device)
    return Made(*_laid_out(shape, *on), visible, shape, right)


@lru_cache(maxsize=32)
def numbers(shape: CaseShape) -> tuple[Single, Single, Single, npt.NDArray[Any] | None, Array]:
    """Draw multiples of 1/64 below 4: exact in every dtype, so one reference serves all and only computing is
    measured."""
    random = np.random.default_rng(0)

    def draw(*size: int) -> Single:
        return np.clip(np.round(random.standard_normal(size, dtype=np.float32) * 64), -255, 255) / np.float32(64)

    kv_heads = 1 if shape.layout == "expanded" else shape.kv_heads or shape.heads
    query = draw(shape.batch, shape.heads, shape.queries, shape.dim) * np.float32(shape.loud)
    key = draw(shape.batch, kv_heads, shape.keys, shape.dim) * np.float32(shape.loud)
    value = draw(shape.batch, kv_heads, shape.keys, shape.value_dim or shape.dim)
    mask: npt.NDArray[Any] | None = None
    if shape.mask == "bias":
        mask = draw(1, shape.heads, shape.queries, shape.keys)
    elif shape.mask != "none":
        mask = np.ones((shape.batch, 1, shape.queries, shape.keys), dtype=bool)
        mask[-1, :, :, shape.keys * 2 // 3 :] = False
        mask[0, :, 5 if shape.mask == "blind" else shape.queries :] = False
    return query, key, value, mask, reference(shape, query, key, value, mask)


def _laid_out(shape: CaseShape, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lay out the numbers in memory as models do."""
    if shape.layout == "permuted":  # batch, tokens, heads, width
        return tuple(each.transpose(1, 2).contiguous().transpose(1, 2) for each in (query, key, value))  # type: ignore[return-value]
    if shape.layout == "fused":  # batch, tokens, heads of queries, something else, heads of keys, heads of values; width
        together = torch.cat([query, query[:, :1], key, value], dim=1).transpose(1, 2).contiguous().transpose(1, 2)
        heads = shape.heads
        return together[:, :heads], together[:, heads + 1 : 2 * heads + 1], together[:, 2 * heads + 1 :]
    if shape.layout == "expanded":
        return query, key.expand(-1, shape.heads, -1, -1), value.expand(-1, shape.heads, -1, -1)
    return query, key, value


def reference(shape: CaseShape, query: Single, key: Single, value: Single, mask: npt.NDArray[Any] | None) -> Array:
    """Compute the compared rows in float64 with numpy, exactly as in the formula."""
    q, k, v = (each.astype(np.float64) for each in (query, key, value))
    rows = np.arange(0, shape.queries, shape.every)
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, axis=1), v.repeat(group, axis=1)
    scores = q[:, :, rows] @ k.swapaxes(-1, -2) * (shape.dim**-0.5 if shape.scale is None else shape.scale)
    if shape.causal:
        scores[..., np.arange(shape.keys) > rows[:, None]] = -np.inf
    if mask is not None:
        visible = mask[:, :, rows]
        scores = np.where(visible, scores, -np.inf) if visible.dtype == bool else scores + visible
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(highest), highest, 0), out=scores)
    total = weights.sum(-1, keepdims=True)
    result: Array = (weights / np.where(total > 0, total, 1)) @ v
    return result


def error(result: Tensor, right: Array, every: int = 1) -> float:
    """Return the largest error, relative to the largest correct number; infinite for a wrong shape or NaN."""
    found = result[..., ::every, :] if every > 1 else result
    if tuple(found.shape) != right.shape:
        return math.inf
    wide = found if found.dtype == torch.float64 else found.float()
    worst = float(np.abs(wide.detach().cpu().numpy() - right).max() / np.abs(right).max())
    return worst if math.isfinite(worst) else math.inf
