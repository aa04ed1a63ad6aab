"""For a pretended machine, rewrite the plan so that this CPU can run it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import get_args

from app.compat.machine.hardware import Hardware
from app.compat.planning.types import Plan, Quantised
from app.engine.models import on_disk
from app.engine.models.model import Model
from app.paths import Home
from app.sentence import Sentence, say


def use_real_device(plan: Plan) -> Plan:
    """For a pretended machine, the plan so that this processor can run it; on a real machine the plan itself."""
    if plan.runs_on == plan.device:
        return plan
    precision = tuple(replace(part, device=plan.runs_on) for part in plan.precision)
    return replace(plan, device=plan.runs_on, precision=precision)


def list_impossible(hardware: Hardware, model: Model, home: Home) -> tuple[tuple[Quantised, Sentence], ...]:
    """Ways to make this model's weights smaller that a pretended machine may have and this processor has not."""
    if not hardware.pretended:
        return ()
    why = say(
        "ground.whole",
        "{machine} is pretended: this processor does its work and cannot make such weights.",
        machine=hardware.name,
    )
    kinds: tuple[Quantised, ...] = get_args(Quantised)
    return tuple((kind, why) for kind in kinds if kind != "none" and not _can_make(kind, model, home))


def _can_make(kind: Quantised, model: Model, home: Home) -> bool:
    """On the processor: torchao any model, bitsandbytes only transformers'."""
    match kind:
        case "torchao-int8":
            return importlib.util.find_spec("torchao") is not None
        case "bnb-int8" | "bnb-nf4":
            return model.kind == "speech" and importlib.util.find_spec("bitsandbytes") is not None
        case "gguf":
            # Read anywhere; but where the whole weights are what was fetched, those run.
            return on_disk.locate(home, model, "gguf") is not None or on_disk.locate(home, model) is None
        case _:
            return False
