"""Plans built by hand, so that attention can be tested without anybody deciding first; and every plan that can be forced."""

from __future__ import annotations

from itertools import product
from typing import Any

from app.compat.machine.pretended import MACHINES
from app.compat.planning.decide import decide
from app.compat.planning.types import AUTO, Plan, Vae


def plan(**fields: Any) -> Plan:
    """A processor's plan, nothing forbidden and nothing asked, but for the fields given."""
    whole: dict[str, Any] = {
        "device": "cpu", "dtype": "float32", "score_dtype": None, "gqa": "folded", "chunk_q": AUTO, "chunk_most": None, "chunk_k": None,
        "budget_bytes": 1 << 30, "contiguous": False, "explicit_mask": False, "expand_mask": False, "pad_value": False,
        "pad_heads": False, "zero_masked_rows": False, "kernels": ("flash", "math"), "ways": (), "precision": (), "offload": "none", "vae": Vae(),
        "quantised": "none", "product": "torch",
        "row": "calls", "attention": "sdpa", "convolution": "torch", "channels_last": False, "environment": (), "because": (), "native_right": True,
    }  # fmt: skip
    return Plan(**(whole | fields))


ALL_REMEDIES: dict[str, Any] = {
    "contiguous": True, "explicit_mask": True, "expand_mask": True, "pad_value": True, "zero_masked_rows": True,
    "score_dtype": "float32",
}  # fmt: skip
_FORCED: dict[str, dict[str, Any]] = {
    "processor": {},
    "own arithmetic": {"kernels": ()},
    "flash alone": {"kernels": ("flash",)},
    "math alone": {"kernels": ("math",)},
    "a card's flash alone": {"device": "cuda", "kernels": ("flash",)},
    "a card's cudnn alone": {"device": "cuda", "kernels": ("cudnn",)},
    "a card's math alone": {"device": "cuda", "kernels": ("math",)},
    **{f"{name} alone": {name: value} for name, value in ALL_REMEDIES.items()},
    "every remedy": ALL_REMEDIES,
    "every remedy, own arithmetic": ALL_REMEDIES | {"kernels": ()},
    "every remedy on a Mac": ALL_REMEDIES | {"device": "mps", "kernels": ("math",)},
    "every remedy on a Mac, own arithmetic": ALL_REMEDIES | {"device": "mps", "kernels": ()},
    "native": {"gqa": "native"},
    "expanded": {"gqa": "expanded"},
    "expanded on a card": {"device": "cuda", "gqa": "expanded", "kernels": ("efficient", "math")},
    **{f"chunks of {rows}": {"chunk_q": rows} for rows in (1, 7, 64)},
    **{f"own arithmetic in chunks of {rows}": {"kernels": (), "chunk_q": rows} for rows in (1, 7, 64)},
    **{f"keys by {cols}": {"chunk_k": cols} for cols in (1, 4)},
    "keys by 4 in chunks of 2, scores in float32": {"chunk_k": 4, "chunk_q": 2, "score_dtype": "float32"},
    "keys by 4 on a Mac, own arithmetic": {"device": "mps", "kernels": (), "chunk_k": 4},
    "native, flash alone, in chunks of 2": {"gqa": "native", "kernels": ("flash",), "chunk_q": 2},
    "expanded, math alone, in chunks of 2": {"gqa": "expanded", "kernels": ("math",), "chunk_q": 2},
    "own arithmetic in 2 KiB": {"kernels": (), "budget_bytes": 2048},
    "math alone in 2 KiB": {"kernels": ("math",), "budget_bytes": 2048},
}
EVERY: dict[str, Plan] = {name: decide(machine) for name, machine in MACHINES.items()} | {
    name: plan(**fields) for name, fields in _FORCED.items()
}
"""Hearth decides these for each pretended machine, or a person, a verdict or a quirk can force them."""


def every_combination() -> dict[str, Plan]:
    """All remedies with all others: hundreds."""
    fields: dict[str, tuple[Any, ...]] = {
        "device": ("cpu", "cuda", "mps"), "kernels": ((), ("flash",), ("math",), ("flash", "math")),
        "gqa": ("folded", "native", "expanded"), "chunk_q": (AUTO, 2), "chunk_k": (None, 4), "contiguous": (False, True),
        "score_dtype": (None, "float32"), "expand_mask": (False, True), "zero_masked_rows": (False, True),
    }  # fmt: skip
    return {", ".join(map(str, values)): plan(**dict(zip(fields, values, strict=True))) for values in product(*fields.values())}
