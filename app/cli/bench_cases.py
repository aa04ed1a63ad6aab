"""Who runs against whom in the bench: torch as it is, Hearth by itself, and every chunk size by hand, with and without torch's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.compat.attention.dispatch import Observe, ignore
from app.compat.attention.measure import Contender, composed, reduced, torchs
from app.compat.planning.attention_calls import DIA, PICTURES, SIZES, Call, picture
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import AUTO, Dtype, Plan

CHUNKS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
TORCH, AGAIN, AUTOMATIC, OWN = "torch", "torch again", "automatic", "own"
OPERATIONS: Final = 20_000_000_000
"""Of one call, 0.2 to 0.4 s on two cores. Larger ones are measured on fewer heads and queries over all of their keys."""


@dataclass(frozen=True, slots=True)
class BenchCall:
    """One call of attention that a model makes."""

    family: str
    size: int
    """Of the picture, in pixels; 0: speech."""
    call: Call

    @property
    def title(self) -> str:
        return " ".join(filter(None, (self.family, f"{self.size} px," if self.size else "", self.call.name)))

    def shape(self, dtype: Dtype) -> Shape:
        return self.call.shape(dtype)

    def measured(self, dtype: Dtype, at_once: int) -> Shape:
        """What is really run of it."""
        return reduced(self.shape(dtype), OPERATIONS, at_once)


def bench_calls(families: tuple[str, ...] = ("dia", *PICTURES), sizes: tuple[int, ...] = SIZES) -> Iterator[BenchCall]:
    """Each call once: models of one family, and prompts at any size, make the same ones."""
    seen: set[Call] = set()
    for family in families:
        for size in (0,) if family == "dia" else sizes:
            for call in DIA if family == "dia" else picture(family, size, size):
                bare = call._replace(name="")
                if bare not in seen:
                    seen.add(bare)
                    yield BenchCall(family, size, call)


def contenders(plan: Plan, shape: Shape, observe: Observe = ignore) -> dict[str, Contender]:
    """By name: "torch", the same again (what it differs by is noise), "automatic", "512" and so on by hand; with "own" before them where no kernel of torch's is allowed."""
    bare = replace(plan, chunk_q=AUTO)
    alone = replace(bare, kernels=(), gqa="folded", ways=())
    sizes = [size for size in CHUNKS if size < shape.queries]
    return {
        TORCH: torchs(shape), AGAIN: torchs(shape), AUTOMATIC: composed(bare, shape, observe), OWN: composed(alone, shape),
        **{f"{size}": composed(replace(bare, chunk_q=size), shape) for size in sizes},
        **{f"{OWN} {size}": composed(replace(alone, chunk_q=size), shape) for size in sizes},
    }  # fmt: skip
