"""Who runs against whom in the bench: the shapes of real models, and the ways their attention can be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.compat.hardware import Hardware
from app.compat.plan import Choice, Dtype, Need, decide
from app.sentence import Sentence, say

if TYPE_CHECKING:
    from torch import Tensor

QUERIES_AT_A_TIME = 512
KEYS_AT_A_TIME = 1024


@dataclass(frozen=True, slots=True)
class Case:
    """One call of attention that a model makes."""

    name: str
    title: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    width: int

    @property
    def scores(self) -> int:
        return self.batch * self.heads * self.queries * self.keys


CASES = (
    Case("dia-decode", "Dia, one step at 3072 keys", 2, 16, 4, 1, 3072, 128),
    Case("dia-prefill", "Dia, a prompt of 512", 2, 16, 4, 512, 512, 128),
    Case("sd15-512", "SD 1.5 at 512 pixels", 1, 8, 8, 4096, 4096, 40),
    Case("sd15-768", "SD 1.5 at 768 pixels", 1, 8, 8, 9216, 9216, 40),
    Case("sd15-1024", "SD 1.5 at 1024 pixels", 1, 8, 8, 16384, 16384, 40),
    Case("sdxl-1024", "SDXL at 1024 pixels", 1, 10, 10, 4096, 4096, 64),
    Case("flux-1024", "Flux at 1024 pixels", 1, 24, 24, 4608, 4608, 128),
)
Way = Callable[["Tensor", "Tensor", "Tensor"], "Tensor"]


def ways(
    hardware: Hardware, case: Case, dtype: Dtype, saw: Callable[[str], None] = lambda path: None
) -> dict[str, Way]:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from app.compat.attention import compose

    need = Need(
        batch=case.batch, heads=case.heads, kv_heads=case.kv_heads, head_dim=case.width, queries=case.queries, keys=case.keys,
        masked=False, causal=False,
    )  # fmt: skip
    plan = decide(hardware, need, Choice(dtype=dtype))
    groups, grouped = case.heads // case.kv_heads, case.heads > case.kv_heads

    def repeated(key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)

    def as_is(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, enable_gqa=grouped)

    def repeat(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        key, value = repeated(key, value)
        return torch.softmax(query @ key.transpose(-1, -2) * case.width**-0.5, -1) @ value

    def chunks(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        key, value = repeated(key, value) if grouped else (key, value)
        parts = torch.split(query, QUERIES_AT_A_TIME, 2)
        return torch.cat([F.scaled_dot_product_attention(part, key, value) for part in parts], 2)

    def math(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return as_is(query, key, value)

    keys_too = replace(plan, chunk_k=KEYS_AT_A_TIME)
    found: dict[str, Way] = {
        "torch": as_is,
        "repeat": repeat,
        "chunks": chunks,
        "math": math,
        "hearth": compose(plan, saw=saw),
    }
    return found | ({"hearth-keys": compose(keys_too)} if case.keys > KEYS_AT_A_TIME and case.queries > 1 else {})


def title(way: str) -> Sentence:
    return {
        "torch": say("bench.torch", "torch as it is"),
        "repeat": say("bench.repeat", "repeated keys, matmul"),
        "chunks": say("bench.chunks", "query chunks of {rows}", rows=QUERIES_AT_A_TIME),
        "math": say("bench.math", "torch's math kernel"),
        "hearth": say("bench.hearth", "Hearth"),
        "hearth-keys": say("bench.hearth.keys", "Hearth, {cols} keys at a time", cols=KEYS_AT_A_TIME),
    }[way]


def made(case: Case, dtype: Dtype, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Made in their dtype at once, so that no copy is remembered as a peak."""
    import torch

    torch.manual_seed(0)
    like: dict[str, Any] = {"dtype": getattr(torch, dtype), "device": device}
    query = torch.empty(case.batch, case.heads, case.queries, case.width, **like).normal_()
    key, value = (torch.empty(case.batch, case.kv_heads, case.keys, case.width, **like).normal_() for _ in range(2))
    return query, key, value
