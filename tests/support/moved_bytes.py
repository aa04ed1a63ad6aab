"""Count the bytes that weights cost: read and written by casts and copies, read by products. Caches and small tensors are left out."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten: Final = torch.ops.aten
_COPIES: Final = (aten._to_copy, aten.copy_, aten.clone)
_PRODUCTS: Final = (aten.mm, aten.addmm, aten.bmm)
_LEAST: Final = 1 << 16
"""The smallest tensor that counts as a weight has so many numbers."""


class MovedBytes(TorchDispatchMode):
    """Bytes moved for weights while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.cast_bytes = self.product_bytes = 0

    @property
    def total_bytes(self) -> int:
        return self.cast_bytes + self.product_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        with self:  # in inference mode linear, matmul and to arrive here before they are taken apart
            parts = func.decompose(*args, **given)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **given)
        if func.overloadpacket in _COPIES:
            source = args[1] if func.overloadpacket is aten.copy_ else args[0]
            self.cast_bytes += sum(each.nbytes for each in (source, result) if each.numel() >= _LEAST)
        elif func.overloadpacket in _PRODUCTS:
            self.product_bytes += sum(
                each.nbytes for each in tree_leaves(args) if isinstance(each, torch.Tensor) and each.numel() >= _LEAST
            )
        return result
