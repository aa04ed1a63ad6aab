"""AWQ weights made plain again, for machines on which AWQ's own kernels do not run. Arithmetic on tensors; reads no files.

Four-bit numbers lie eight to an int32, interleaved; each group of inputs has its scale and zero: weight = (number - zero) * scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from app.sentence import Trouble, say

BITS: Final = 4
_PER_INT: Final = 8
_NIBBLE_ORDER: Final = (0, 4, 1, 5, 2, 6, 3, 7)
"""Which nibble holds output 0, 1, 2... of eight."""


def unpack_state(state: Mapping[str, Tensor], config: Mapping[str, object], dtype: torch.dtype) -> dict[str, Tensor]:
    """A checkpoint without packed weights: what was packed becomes `dtype`, the rest stays as it is."""
    form, bits = str(config.get("version", config.get("format", "gemm"))).lower(), config.get("bits", BITS)
    if form != "gemm" or bits != BITS:
        raise Trouble(
            say(
                "awq.form", "This model's AWQ weights have the form {form} with {bits} bits, and only gemm with 4 can be unpacked. Choose the model's plain weights.",
                form=form, bits=str(bits),
            )
        )  # fmt: skip
    packed = [name.removesuffix(".qweight") for name in state if name.endswith(".qweight")]
    made = {
        f"{name}.weight": _dequantise(state[f"{name}.qweight"], state[f"{name}.qzeros"], state[f"{name}.scales"], dtype)
        for name in packed
    }
    used = {f"{name}.{part}" for name in packed for part in ("qweight", "qzeros", "scales")}
    return {**{name: tensor for name, tensor in state.items() if name not in used}, **made}


def _dequantise(numbers: Tensor, zeros: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """qweight (inputs, outputs / 8), qzeros (groups, outputs / 8), scales (groups, outputs) -> (outputs, inputs)."""
    unpacked = unpack(numbers)
    group = unpacked.shape[0] // scales.shape[0]
    # One dtype throughout: float32 keeps the products exact whatever the target is.
    zero = unpack(zeros).repeat_interleave(group, dim=0)
    scale = scales.float().repeat_interleave(group, dim=0)
    return ((unpacked - zero) * scale).T.contiguous().to(dtype)


def unpack(packed: Tensor) -> Tensor:
    shifts = torch.tensor(_NIBBLE_ORDER, dtype=torch.int32, device=packed.device) * BITS
    return ((packed.unsqueeze(-1) >> shifts) & (2**BITS - 1)).flatten(-2)
