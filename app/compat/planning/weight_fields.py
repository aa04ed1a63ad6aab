"""Where a model's weights go and in what shape: precision, quantisation, offload and decoding, settled one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.planning.memory_formulas import resident_bytes
from app.compat.planning.offload_fields import decode, offload
from app.compat.planning.options import Situation, FieldDecision
from app.compat.planning.precision_fields import precision
from app.compat.planning.quantisation_field import quantised
from app.compat.planning.types import Dtype, Offload, Precision, Quantised, Vae


@dataclass(frozen=True, slots=True)
class Parts:
    precision: tuple[Precision, ...]
    quantised: Quantised
    offload: Offload
    vae: Vae
    resident_bytes: int
    """The most weights that lie on the device at once."""
    settled: dict[str, FieldDecision]


def parts(case: Situation, dtype: Dtype, device: str) -> Parts:
    how, precision_settled = precision(case, dtype, device)
    small = quantised(case, how)
    quantisation: Quantised = small.option  # type: ignore[assignment]
    moved = offload(case, how, quantisation)
    offloading: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decode(case, how, quantisation, offloading)
    resident = max(
        (resident_bytes(case.need, how, quantisation, offloading, each) for each in case.need.parts), default=0
    )
    settled = {"precision": precision_settled, "quantised": small, "offload": moved, "vae": decoding}
    return Parts(how, quantisation, offloading, vae, resident, settled)
