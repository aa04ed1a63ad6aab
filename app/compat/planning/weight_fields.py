"""Decide the fields for weights in turn: precision, quantisation, offload and decoding."""

from __future__ import annotations

from typing import Any

from app.compat.planning.offload_fields import decide_offload, decide_vae, keep_layers
from app.compat.planning.options import FieldDecision, Situation
from app.compat.planning.precision_fields import decide_precision
from app.compat.planning.quantisation_field import decide_quantised
from app.compat.planning.types import Dtype, Offload, Quantised


def decide_weights(situation: Situation, dtype: Dtype, device: str, unfolds: bool) -> tuple[dict[str, Any], dict[str, FieldDecision]]:
    """Return the plan's fields for weights, and the decision for each. `unfolds`: see Vae."""
    precision, stored = decide_precision(situation, dtype, device)
    small = decide_quantised(situation, precision)
    quantised: Quantised = small.option  # type: ignore[assignment]
    precision, moved = keep_layers(situation, precision, quantised, decide_offload(situation, precision, quantised, unfolds))
    offload: Offload = moved.option  # type: ignore[assignment]
    vae, decoding = decide_vae(situation, precision, quantised, offload, unfolds)
    fields = {"precision": precision, "quantised": quantised, "offload": offload, "vae": vae}
    return fields, {"precision": stored, "quantised": small, "offload": moved, "vae": decoding}
