"""Map scheduler names that people know to diffusers' classes and settings. Imports no torch: the window lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.base.sentence import say
from app.base.trouble import Impossible

Space = Literal["sigma", "alpha"]


@dataclass(frozen=True, slots=True)
class Scheduler:
    class_name: str
    space: Space
    """Its samples are scaled so: x0 + sigma * noise, or alpha * x0 + sigma * noise."""
    settings: Mapping[str, Any] = field(default_factory=dict)


SCHEDULERS: Final[dict[str, Scheduler]] = {
    "Euler": Scheduler("EulerDiscreteScheduler", "sigma"),
    "Euler trailing": Scheduler("EulerDiscreteScheduler", "sigma", {"timestep_spacing": "trailing"}),
    "Euler Karras": Scheduler("EulerDiscreteScheduler", "sigma", {"use_karras_sigmas": True}),
    "Euler a": Scheduler("EulerAncestralDiscreteScheduler", "sigma"),
    "Euler a trailing": Scheduler("EulerAncestralDiscreteScheduler", "sigma", {"timestep_spacing": "trailing"}),
    "Heun": Scheduler("HeunDiscreteScheduler", "sigma"),
    "DPM++ 2M": Scheduler("DPMSolverMultistepScheduler", "alpha"),
    "DPM++ 2M Karras": Scheduler("DPMSolverMultistepScheduler", "alpha", {"use_karras_sigmas": True}),
    "DPM++ 2M SDE": Scheduler("DPMSolverMultistepScheduler", "alpha", {"algorithm_type": "sde-dpmsolver++"}),
    "DPM++ 2M SDE Karras": Scheduler(
        "DPMSolverMultistepScheduler", "alpha", {"algorithm_type": "sde-dpmsolver++", "use_karras_sigmas": True}
    ),
    "DPM++ 2S": Scheduler("DPMSolverSinglestepScheduler", "alpha", {"lower_order_final": True}),
    "UniPC": Scheduler("UniPCMultistepScheduler", "alpha"),
    "DEIS": Scheduler("DEISMultistepScheduler", "alpha"),
    "DDIM": Scheduler("DDIMScheduler", "alpha"),
    "PNDM": Scheduler("PNDMScheduler", "alpha", {"skip_prk_steps": True}),
    "LCM": Scheduler("LCMScheduler", "alpha"),
}
NAMES: Final = tuple(SCHEDULERS)


def find_scheduler(name: str) -> Scheduler:
    """Find a scheduler by name, ignoring case."""
    found = {each.lower(): scheduler for each, scheduler in SCHEDULERS.items()}.get(name.lower())
    if found is None:
        raise Impossible(say("scheduler.unknown", "Hearth has no scheduler named {name}. Choose one of: {names}.", name=name, names=NAMES))
    return found


def find_space(class_name: str) -> Space | Literal["flow"]:
    """Tell how a model's own scheduler scales its samples."""
    if class_name.startswith("FlowMatch"):
        return "flow"
    return next((each.space for each in SCHEDULERS.values() if each.class_name == class_name), "alpha")
