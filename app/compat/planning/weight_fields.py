"""Decide the fields for weights in turn: precision, quantisation, offload and decoding."""

from __future__ import annotations

from typing import Any

from app.compat.planning.offload_fields import decide_offload, decide_vae
from app.compat.planning.options import FieldDecision, Situation
from app.compat.planning.precision_fields import decide_precision
from app.compat.planning.quantisation_field import decide_quantised
from app.compat.planning.types import Dtype, Offload, Quantised


def decide_weights(situation: Situation, dtype: Dtype, device: str) -> tuple[dict[str, Any], dict[str, FieldDecision]]:
    """Return the plan's fields for weights, and the decision for each."""
    precision, stored = decide_precision(situation, dtype, device)
    small = decide_quantised(situation, precision)
    quantised: Quantised = small.option  # type: ignore[assignment]
    moved = decide_offload(situation, precision, quantised)
    offload: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decide_vae(situation, precision, quantised, offload)
    fields = {"precision": precision, "quantised": quantised, "offload": offload, "vae": vae}
    return fields, {"precision": stored, "quantised": small, "offload": moved, "vae": decoding}
