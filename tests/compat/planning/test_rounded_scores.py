"""How far off attention is where its scores are rounded to half precision, as Metal's graph of products rounds them, by the number of keys."""

from __future__ import annotations

import pytest
import torch

KEYS = (77, 1024, 3068, 3069, 14336)
"""3068 stands in the source of the row mps-half-softmax, and is no border."""


def measure(keys: int, dtype: torch.dtype, loud: float) -> tuple[float, float]:
    """Return how far off the graph (torch 2.10 and newer: scale and softmax in float32) and a fused kernel are, as shares."""
    drawn = torch.Generator().manual_seed(keys)
    query, key, value = (torch.randn(rows, 128, generator=drawn) for rows in (64, keys, keys))
    query, key, value = (query * loud).to(dtype), key.to(dtype), value.to(dtype)
    exact = torch.softmax(query.double() @ key.double().T * 128**-0.5, -1) @ value.double()
    scores = (query.float() @ key.float().T).to(dtype).float()
    graph = (torch.softmax(scores * 128**-0.5, -1) @ value.float()).to(dtype)
    off = [float((made.double() - exact).norm() / exact.norm()) for made in (graph, exact.to(dtype))]
    return off[0], off[1]


@pytest.mark.parametrize(
    ("dtype", "loud", "most"), [("bfloat16", 1, 5e-3), ("bfloat16", 4, 2e-2), ("float16", 1, 7e-4), ("float16", 4, 3e-3)]
)
def test_rounding_hangs_on_how_loud_scores_are_not_on_how_many(dtype: str, loud: float, most: float) -> None:
    found = [measure(keys, getattr(torch, dtype), loud) for keys in KEYS]
    for keys, (graph, fused) in zip(KEYS, found, strict=True):
        print(f"| {dtype}, {loud} | {keys} | {graph:.1e} | {fused:.1e} |")
    of_many = [each for each, _ in found[1:]]
    assert max(of_many) < 1.5 * min(of_many), "from a thousand keys on it stays as it is"
    assert 2 * found[0][1] < found[0][0] < max(of_many) * 1.1 < most
