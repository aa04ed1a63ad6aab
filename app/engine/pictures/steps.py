"""How long pictures take: their steps, what one weighs, how many of a batch one call paints, what earlier pictures tell. Imports no torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from app.base.trouble import Trouble
from app.compat.planning.memory_formulas import SCRATCH_BYTES, TIGHT
from app.compat.planning.types import AUTO, Chunk, Plan
from app.engine.jobs import quicker
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import PictureRequest
from app.engine.models.enlargers import count_products
from app.engine.models.forecast import list_measured, take_median
from app.engine.models.model import SMALL_PARAMETERS, Model, is_guided
from app.engine.models.painted_tiles import cut, find_larger
from app.engine.models.picture_families import FAMILIES

AT_ONCE: Final = 4
"""Eight were no quicker than four."""
CARD_PIXELS: Final = 512 * 512
"""A small picture on a card or Metal has no more pixels: up to this size starting a kernel takes as long as much of its work."""
PROCESSOR_PIXELS: Final = 256 * 256
"""A small model's picture on the processor has no more pixels, where four at once take 0.55 to 0.74 of the time (docs/speed-pictures.md)."""
ALL_SHARE: Final = 0.72
"""As many at once, decoded, take this share of the time of one by one on the processor (docs/speed-pictures.md)."""
_PIXELS_A_WEIGHT: Final = 512
"""A step multiplies with each weight of the denoiser about once for so many pixels: 256 in transformers, some 600 in the UNets of SD."""
_WEIGHED: Final = (
    "width",
    "height",
    "guidance",
    "scheduler",
    "steps",
    "image",
    "strength",
    "quicker",
    "batch",
    "guide",
    "control",
    "guide_from",
    "guide_to",
)


def estimate_seconds(request: PictureRequest, model: Model, past: Iterable[Creation], plan: Plan | None = None) -> float | None:
    """Estimate from this machine's earlier speed with this model; None if it was never measured. Steps at another size are scaled by their
    pixels. Without a plan none are painted together."""
    times = []
    for creation in list_measured(past, model):
        try:
            before = _read_weighed(creation)
            ratio = weigh_step(request, model) / weigh_step(before, model)
            ratio *= _weigh_batch(request, model, *((plan.device, plan.chunk_q) if plan else ("", AUTO)))
            ratio /= _weigh_batch(before, model, creation.plan.get("device", ""), creation.plan.get("chunk_q", AUTO))
        except Trouble:  # settings of a newer Hearth
            continue
        times.append(count_work(request, model) * request.batch * ratio / creation.rate)
    return take_median(times)


def _weigh_batch(request: PictureRequest, model: Model, device: str, chunk_q: Chunk) -> float:
    """Weigh a picture of a batch by one that is painted alone, with memory for as many at once as gain something."""
    width, height = request.width or model.settings.width, request.height or model.settings.height
    return _share_calls(dataclasses.replace(request, width=width, height=height), model, device, chunk_q, math.inf)


def _read_weighed(creation: Creation) -> PictureRequest:
    """Return what weighs a step of an earlier picture; rows of an older Hearth may lack some of it."""
    return PictureRequest(creation.text or "?", **{name: creation.settings[name] for name in _WEIGHED if name in creation.settings})


def count_steps(request: PictureRequest, model: Model) -> int:
    """Count the steps; from a start picture only the last part of them runs."""
    steps = request.steps or model.recommended(request.scheduler).steps
    return max(1, int(steps * request.strength)) if request.image else steps


def count_over(request: PictureRequest, model: Model) -> int:
    """Count the steps that paint over what was enlarged."""
    if request.larger == 1 or not FAMILIES[model.family].paints_over:
        return 0
    return max(1, int((request.steps or model.recommended(request.scheduler).steps) * request.hires_strength))


def weigh_over(request: PictureRequest, model: Model) -> float:
    """Weigh such a step, by one of the small picture: by its pixels, those that tiles share counted twice."""
    settings = model.settings
    sides = (request.width or settings.width, request.height or settings.height)
    large = find_larger(sides, request.larger, settings.multiple)
    if FAMILIES[model.family].paints_in_tiles:
        across, down = (sum(end - begin for begin, end in cut(side, settings.width)) for side in large)
        large = across, down
    return math.prod(large) / max(1, math.prod(sides))


def weigh_products(products: float, request: PictureRequest, model: Model) -> float:
    """Weigh what an enlarger multiplies, by a step."""
    weights = sum(part.parameters for part in model.parts if part.role == "denoiser")
    step = (request.width or model.settings.width) * (request.height or model.settings.height) / _PIXELS_A_WEIGHT * max(1, weights)
    return products / step / (2 if _guides(request, model) else 1)


def count_work(request: PictureRequest, model: Model) -> float:
    """Count the steps of a picture, in steps of the small one."""
    return count_steps(request, model) + count_over(request, model) * weigh_over(request, model) + _weigh_enlarger(request, model)


def _weigh_enlarger(request: PictureRequest, model: Model) -> float:
    """Weigh an enlarger of the owner's, by a step; one that is not there is told elsewhere."""
    size = request.width or model.settings.width, request.height or model.settings.height
    with suppress(Trouble, OSError):
        if request.upscale > 1 and Path(request.enlarger).is_absolute():
            return weigh_products(count_products(request.enlarger, size, request.upscale), request, model)
    return 0.0


def weigh_step(request: PictureRequest, model: Model) -> float:
    """Weigh an average step of a request by its pixels; guidance doubles it, "quicker" spares some."""
    settings = model.recommended(request.scheduler)
    pixels = (request.width or settings.width or 1) * (request.height or settings.height or 1)
    guide = 1 + FAMILIES[model.family].guide_share * (request.guide_to - request.guide_from) if request.guide else 1
    return pixels * (2 if _guides(request, model) else 1) * guide * estimate_share(request, model)


def estimate_share(request: PictureRequest, model: Model) -> float:
    """Estimate what "quicker" leaves of the steps' time."""
    return weigh_quicker(request.quicker, model, _guides(request, model), count_steps(request, model))


def weigh_quicker(setting: str, model: Model, guided: bool, total: int) -> float:
    """Return what a "quicker" setting leaves of the work of so many steps; 1: the model has nothing to reuse."""
    family = FAMILIES[model.family]
    return quicker.estimate_share(setting, guided and family.spares_guidance, family.outer_share, total)


def compare_few_steps(request: PictureRequest, model: Model) -> float:
    """Return what a few-steps LoRA leaves of the steps' time that its model takes without one; 1 where the request has none."""
    if model.plain is None or model.recommended(request.scheduler) is model.plain:
        return 1.0
    few = dataclasses.replace(request, quicker="off")
    without = dataclasses.replace(few, scheduler=model.plain.scheduler, steps=None, guidance=None)
    taken, spared = (count_steps(each, model) * weigh_step(each, model) for each in (few, without))
    return taken / spared


def _guides(request: PictureRequest, model: Model) -> bool:
    recommended = model.recommended(request.scheduler).guidance
    return is_guided(model, recommended if request.guidance is None else request.guidance)


def count_at_once(request: PictureRequest, model: Model, device: str, chunk_q: Chunk, free_bytes: float) -> int:
    """Return how many pictures one call may paint. A chunk set by hand bounds the memory of one picture; what `quicker` remembers
    a start picture, a guide and a reference are of one."""
    if request.batch == 1 or request.image or request.guide or request.reference or request.quicker != "off" or chunk_q != AUTO:
        return 1
    small = sum(part.parameters for part in model.parts) < SMALL_PARAMETERS
    most = CARD_PIXELS if device != "cpu" else PROCESSOR_PIXELS if small else 0
    if (request.width or 0) * (request.height or 0) > most:
        return 1
    return int(max(1, min(AT_ONCE, TIGHT * free_bytes // SCRATCH_BYTES["picture"])))


def _share_calls(request: PictureRequest, model: Model, device: str, chunk_q: Chunk, free_bytes: float) -> float:
    """Estimate what painting several at once leaves of the time of one by one. 1 on a card, where that was not measured."""
    if device != "cpu":
        return 1.0
    most = count_at_once(request, model, device, chunk_q, free_bytes)
    calls, rest = divmod(request.batch, most)
    return (calls * _weigh_call(most) + _weigh_call(rest)) / request.batch


def _weigh_call(count: int) -> float:
    """Weigh a call by the time of one picture: what each adds, and what only the first costs."""
    first_only = (AT_ONCE - ALL_SHARE * AT_ONCE) / (AT_ONCE - 1)
    return count - first_only * (count - 1) if count else 0.0
