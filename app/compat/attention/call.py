"""AttentionCall: the arguments of one attention call as one immutable value. Knows nothing of plans."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class AttentionCall(NamedTuple):
    """A tuple rather than a dataclass: one is made at every call, and a frozen dataclass takes five times as long."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    scale: float | None = None

    @property
    def groups(self) -> int:
        """Number of query heads that share one key/value head."""
        return self.query.shape[1] // self.key.shape[1]

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads in the whole batch."""
        return self.query.shape[0] * self.key.shape[1]

    @property
    def factor(self) -> float:
        """Factor that scales the scores."""
        return float(self.query.shape[3] ** -0.5) if self.scale is None else self.scale
