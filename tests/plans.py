"""Plans built by hand, so that attention can be tested without anybody deciding first."""

from __future__ import annotations

from typing import Any

from app.compat.plan import Plan, Vae


def plan(**fields: Any) -> Plan:
    """A processor's plan, nothing forbidden and nothing asked, but for the fields given."""
    whole: dict[str, Any] = {
        "device": "cpu", "dtype": "float32", "score_dtype": None, "gqa": "folded", "chunk_q": None, "chunk_k": None,
        "budget_bytes": 1 << 30, "contiguous": False, "explicit_mask": False, "expand_mask": False, "pad_value": False,
        "zero_masked_rows": False, "kernels": ("flash", "math"), "ways": (), "precision": (), "offload": "none", "vae": Vae(),
        "quantised": "none", "attention": "sdpa", "environment": (), "because": (),
    }  # fmt: skip
    return Plan(**(whole | fields))
