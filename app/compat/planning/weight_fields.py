"""Decide the fields for weights in turn: precision, quantisation, offload and decoding."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.planning.memory_formulas import resident_bytes
from app.compat.planning.offload_fields import decide_offload, decide_vae
from app.compat.planning.options import FieldDecision, Situation
from app.compat.planning.precision_fields import decide_precision
from app.compat.planning.quantisation_field import decide_quantised
from app.compat.planning.types import Dtype, Offload, Precision, Quantised, Vae


@dataclass(frozen=True, slots=True)
class WeightFields:
    precision: tuple[Precision, ...]
    quantised: Quantised
    offload: Offload
    vae: Vae
    resident_bytes: int
    """Most bytes of weights on the device at once."""
    decisions: dict[str, FieldDecision]


def decide_weights(situation: Situation, dtype: Dtype, device: str) -> WeightFields:
    how, precision_decision = decide_precision(situation, dtype, device)
    small = decide_quantised(situation, how)
    quantisation: Quantised = small.option  # type: ignore[assignment]
    moved = decide_offload(situation, how, quantisation)
    offloading: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decide_vae(situation, how, quantisation, offloading)
    resident = max(
        (resident_bytes(situation.need, how, quantisation, offloading, each) for each in situation.need.parts),
        default=0,
    )
    decisions = {"precision": precision_decision, "quantised": small, "offload": moved, "vae": decoding}
    return WeightFields(how, quantisation, offloading, vae, resident, decisions)
