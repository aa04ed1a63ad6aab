"""Find which of torch's Metal kernels takes an attention call, by the conditions of torch's Attention.mm. Pure, no torch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from app.compat.machine.hardware import Hardware
from app.compat.planning.quirk import version
from app.compat.planning.types import ModelPart, Need, Path, Plan, Role

FEW_QUERIES: Final = 8
"""The vector kernel, which decodes, takes at most so many queries."""
VECTOR_DIMS: Final = (64, 96, 128)
WIDEST_VECTOR: Final = 256
"""The vector kernel takes heads this wide since there is a prefill kernel."""
PREFILL_DIMS: Final = (32, 64, 72, 80, 96, 128, 256)
_DIMS: Final[dict[Role, int]] = {"vae": 512, "text": 64}
"""Parts other than the one that a need describes have heads of these sizes; text encoders with 128 take the same kernel."""
PREFILL_SINCE: Final = "2.13"
PADDED_SCORES: Final = 1 << 20
"""From so many scores of one head on, heads are padded for the prefill kernel: with fewer, copies take what the kernel saves."""


def metal_paths(hardware: Hardware) -> tuple[Path, ...]:
    """List the kernels of this machine's torch; none if it is not a Mac. An unknown torch has only the oldest."""
    if hardware.kind != "mps":
        return ()
    return ("vector", "prefill", "graph") if version(hardware.torch) >= version(PREFILL_SINCE) else ("vector", "graph")


def padded_dim(head_dim: int) -> int:
    """Return the size to which the prefill kernel lets heads be padded with zeros, which changes no result; the heads' own if there is none."""
    return min((each for each in PREFILL_DIMS if each >= head_dim), default=head_dim)


def metal_path(paths: Collection[Path | None], queries: int, keys: int, head_dim: int, value_dim: int, pads: bool = False) -> Path:
    """Return the kernel for one call. Its mask is boolean or of the queries' dtype: the seam aligns it. `pads`: long calls' heads are
    padded if that brings them the prefill kernel."""
    if head_dim != value_dim:
        return "graph"
    if queries <= FEW_QUERIES:
        widest = "prefill" in paths and head_dim == WIDEST_VECTOR
        return "vector" if queries <= keys and (head_dim in VECTOR_DIMS or widest) else "graph"
    if pads and queries * keys >= PADDED_SCORES:
        head_dim = padded_dim(head_dim)
    return "prefill" if "prefill" in paths and head_dim in PREFILL_DIMS else "graph"


def need_path(paths: Collection[Path], need: Need, pads: bool) -> Path | None:
    """Return the kernel for a model's widest attention."""
    return metal_path(paths, need.queries, need.keys, need.head_dim, need.head_dim, pads) if paths else None


def parts_on(paths: Collection[Path], path: Path | None, need: Need, pads: bool) -> tuple[ModelPart, ...]:
    """Return the parts whose attention this kernel takes; all where that cannot be told apart. Few queries are any part's."""
    if path is None or path == "vector":
        return need.parts
    dims = ((part, _DIMS.get(part.role, need.head_dim)) for part in need.parts)
    calls = ((FEW_QUERIES + 1, FEW_QUERIES + 1), (need.queries, need.keys))  # padding takes the long ones of a part, not the short ones
    return tuple(part for part, dim in dims if path in {metal_path(paths, *call, dim, dim, pads) for call in calls}) or need.parts


def plan_for(plan: Plan, queries: int, keys: int, head_dim: int) -> Plan:
    """Return the plan for calls of this shape alone."""
    by_path = {each.path: each for each in (plan, *plan.others)}
    path = metal_path(tuple(by_path), queries, keys, head_dim, head_dim, plan.pad_heads)
    return replace(by_path[path], others=()) if plan.others else plan
