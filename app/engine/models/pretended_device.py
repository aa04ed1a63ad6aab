"""For a pretended machine, rewrite the plan so that this CPU can run it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import get_args

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.compat.machine.hardware import Hardware
from app.compat.planning.types import Plan, Quantised
from app.engine.models import on_disk
from app.engine.models.model import Model


def use_real_device(plan: Plan) -> Plan:
    """Return a plan that this processor can run in place of a pretended machine's; a real machine's plan is returned
    unchanged."""
    if plan.runs_on == plan.device:
        return plan
    precision = tuple(replace(part, device=plan.runs_on) for part in plan.precision)
    return replace(
        plan,
        device=plan.runs_on,
        product="torch",
        row="calls",
        precision=precision,
        others=tuple(use_real_device(each) for each in plan.others),
    )


def list_impossible(hardware: Hardware, model: Model, home: Home) -> tuple[tuple[Quantised, Sentence], ...]:
    """List quantisations that a pretended machine supports for this model but this processor does not."""
    if not hardware.pretended:
        return ()
    why = say(
        "pretend.no-weights",
        "{machine} is only simulated here; this computer's processor does the work and cannot make these weights.",
        machine=hardware.name,
    )
    kinds: tuple[Quantised, ...] = get_args(Quantised)
    return tuple((kind, why) for kind in kinds if kind != "none" and not _can_make(kind, model, home))


def _can_make(kind: Quantised, model: Model, home: Home) -> bool:
    """Tell whether the processor can quantise this: torchao any model, bitsandbytes only transformers'."""
    match kind:
        case "int8" | "int4":
            return model.kind == "speech"
        case "torchao-int8":
            return importlib.util.find_spec("torchao") is not None
        case "bnb-int8" | "bnb-nf4":
            return model.kind == "speech" and importlib.util.find_spec("bitsandbytes") is not None
        case "gguf":
            # These can be read anywhere; but if the full weights were downloaded, those run.
            return on_disk.locate(home, model, "gguf") is not None or on_disk.locate(home, model) is None
        case _:
            return False
