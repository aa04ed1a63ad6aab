"""Unpack AWQ weights for machines that cannot run AWQ's kernels. Tensors only; reads no files.

Eight 4-bit numbers are packed into an int32, interleaved; each group of inputs has a scale and a zero point:
weight = (number - zero) * scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from app.base.sentence import say
from app.base.trouble import Trouble

BITS: Final = 4
_NIBBLE_ORDER: Final = (0, 4, 1, 5, 2, 6, 3, 7)
"""This nibble holds output 0, 1, 2... of eight."""


def unpack_state(state: Mapping[str, Tensor], config: Mapping[str, object], dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the checkpoint with its packed weights unpacked to `dtype`; other tensors are unchanged."""
    layout, bits = str(config.get("version", config.get("format", "gemm"))).lower(), config.get("bits", BITS)
    if layout != "gemm" or bits != BITS:
        raise Trouble(
            say(
                "awq.form",
                "Hearth cannot use this model's AWQ weights ({form}, {bits}-bit), only 4-bit gemm. Choose the model without AWQ.",
                form=layout,
                bits=str(bits),
            )
        )
    packed = [name.removesuffix(".qweight") for name in state if name.endswith(".qweight")]
    unpacked = {
        f"{name}.weight": _dequantise(state[f"{name}.qweight"], state[f"{name}.qzeros"], state[f"{name}.scales"], dtype) for name in packed
    }
    used = {f"{name}.{part}" for name in packed for part in ("qweight", "qzeros", "scales")}
    return {**{name: tensor for name, tensor in state.items() if name not in used}, **unpacked}


def _dequantise(numbers: Tensor, zeros: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert qweight (inputs, outputs / 8), qzeros (groups, outputs / 8), scales (groups, outputs) to (outputs, inputs)."""
    values = unpack_nibbles(numbers)
    group = values.shape[0] // scales.shape[0]
    # float32 keeps the products exact for every target dtype.
    zero = unpack_nibbles(zeros).repeat_interleave(group, dim=0)
    scale = scales.float().repeat_interleave(group, dim=0)
    return ((values - zero) * scale).T.contiguous().to(dtype)


def unpack_nibbles(packed: Tensor) -> Tensor:
    shifts = torch.tensor(_NIBBLE_ORDER, dtype=torch.int32, device=packed.device) * BITS
    return ((packed.unsqueeze(-1) >> shifts) & (2**BITS - 1)).flatten(-2)
