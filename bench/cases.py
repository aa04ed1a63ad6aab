"""What the bench compares: torch, Hearth's automatic choice, and each chunk size, with and without torch's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from app.compat.attention.dispatch import Observe, ignore
from app.compat.attention.measure import Contender, composed, reduced, torchs
from app.compat.planning.attention_calls import DIA, SIZES, Call
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import AUTO, Dtype, Plan
from app.engine.models.picture_families import FAMILIES, list_calls

CHUNKS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
TORCH, AGAIN, AUTOMATIC, OWN = "torch", "torch again", "automatic", "own"
OPERATIONS: Final = 20_000_000_000
"""One call takes no more operations than this, 0.2 to 0.4 s on two cores. Larger calls use fewer heads and queries, but all keys."""
FEW_OPERATIONS: Final = 5_000_000_000
"""So many on a machine that others use."""


@dataclass(frozen=True, slots=True)
class BenchCall:
    """One attention call that a model makes."""

    family: str
    size: int
    """It counts pixels of a picture; 0: the call is of speech."""
    call: Call

    @property
    def title(self) -> str:
        return " ".join(filter(None, (self.family, f"{self.size} px," if self.size else "", self.call.name)))

    def shape(self, dtype: Dtype) -> Shape:
        return self.call.shape(dtype)

    def measured(self, dtype: Dtype, at_once: int, most: int = OPERATIONS) -> Shape:
        """Return the shape to measure, reduced if the call is too large."""
        return reduced(self.shape(dtype), most, at_once)


def bench_calls(families: tuple[str, ...] = ("dia", *FAMILIES), sizes: tuple[int, ...] = SIZES) -> Iterator[BenchCall]:
    """Yield each distinct call once: models of one family share theirs, and prompts are the same at any size."""
    distinct: set[Call] = set()
    for family in families:
        for size in (0,) if family == "dia" else sizes:
            for call in DIA if family == "dia" else list_calls(family, size, size):
                bare = call._replace(name="")
                if bare not in distinct:
                    distinct.add(bare)
                    yield BenchCall(family, size, call)


def contenders(plan: Plan, shape: Shape, observe: Observe = ignore) -> dict[str, Contender]:
    """Map names to contenders: "torch", "torch again" (the difference is noise), "automatic", and chunk sizes such as
    "512"; those starting with "own" use no torch kernel."""
    bare = replace(plan, chunk_q=AUTO)
    alone = replace(bare, kernels=(), gqa="folded", ways=())
    sizes = [size for size in CHUNKS if size < shape.queries]
    return {
        TORCH: torchs(shape),
        AGAIN: torchs(shape),
        AUTOMATIC: composed(bare, shape, observe),
        OWN: composed(alone, shape),
        **{f"{size}": composed(replace(bare, chunk_q=size), shape) for size in sizes},
        **{f"{OWN} {size}": composed(replace(alone, chunk_q=size), shape) for size in sizes},
    }
