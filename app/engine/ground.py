"""Where the work of a plan really happens: on a pretended machine the processor does it, with all of the plan's other choices that it can."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

from app.compat.hardware import Hardware
from app.compat.plan import Plan
from app.engine import stock
from app.engine.model import Model
from app.paths import Home
from app.sentence import Sentence, say


def grounded(plan: Plan, model: Model, home: Home) -> Plan:
    """The plan itself on a real machine."""
    if plan.runs_on == plan.device:
        return plan
    precision = tuple(replace(part, device=plan.runs_on) for part in plan.precision)
    quantised = plan.quantised if _can_be_small(plan, model, home) else "none"
    return replace(plan, device=plan.runs_on, precision=precision, quantised=quantised)


def left_whole(plan: Plan, hardware: Hardware) -> Sentence:
    return say(
        "ground.whole",
        "{machine} is pretended: this processor does its work and cannot make {kind} weights, so the model runs with whole ones.",
        machine=hardware.name, kind=plan.quantised,
    )  # fmt: skip


def _can_be_small(plan: Plan, model: Model, home: Home) -> bool:
    """On the processor: torchao any model, bitsandbytes only transformers'."""
    match plan.quantised:
        case "torchao-int8":
            return importlib.util.find_spec("torchao") is not None
        case "bnb-int8" | "bnb-nf4":
            return model.kind == "speech" and importlib.util.find_spec("bitsandbytes") is not None
        case "gguf":
            return stock.located(home, model, "gguf") is not None
        case _:
            return False
