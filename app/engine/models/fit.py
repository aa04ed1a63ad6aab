"""Tell what each model means for this machine: installed, fits and why, size of the download."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.compat.planning.types import Quantised
from app.engine.jobs.request import REQUESTS, PictureRequest
from app.engine.models import on_disk
from app.engine.models.forecast import Forecast, make_forecast
from app.engine.models.model import Model, list_sources
from app.engine.models.planned import Setup

FITS: Final = {"fits": say("fit.fits", "fits"), "tight": say("fit.tight", "tight"), "no": say("fit.no", "too large")}
_BITS: Final = re.compile(r"-Q(\d)")


@dataclass(frozen=True, slots=True)
class Offer:
    model: Model
    here: bool
    here_bytes: int
    """So much is on disk, partial files included."""
    download_bytes: int
    """It is estimated for the weights that the plan uses."""
    quantised: Quantised
    forecast: Forecast | None
    """None: the machine is not known yet."""
    chosen: bool
    """True: the owner chose how weights are quantised."""


def make_offer(home: Home, model: Model, setup: Setup | None) -> Offer:
    """Describe the model for its next job; a running job may have another plan. `setup`: None while the machine is not known yet."""
    fit = forecast_recommended(setup, model) if setup is not None else None
    quantised = fit.plan.quantised if fit is not None and fit.plan is not None else "none"
    return Offer(
        model,
        on_disk.locate(home, model, quantised) is not None,
        on_disk.measure_bytes(home, model),
        estimate_download_bytes(model, quantised),
        quantised,
        fit,
        setup is not None and setup.choice.quantised is not None,
    )


def find_largest_picture(setup: Setup, models: Iterable[Model]) -> tuple[Model, int, int] | None:
    """Find the largest of the sizes offered that an installed model can paint here, whatever runs now."""
    painters = [each for each in models if each.settings.sizes and on_disk.locate(setup.home, each, "none") is not None]
    sizes = {(model.id, size): (model, *size) for model in painters for size in model.settings.sizes}
    for model, width, height in sorted(sizes.values(), key=lambda each: each[1] * each[2], reverse=True):
        if make_forecast(setup, PictureRequest(".", model.id, width=width, height=height), model).fit != "no":
            return model, width, height
    return None


def estimate_download_bytes(model: Model, quantised: Quantised) -> int:
    """Estimate the download; where a companion replaces the denoiser, the model's own (two bytes a parameter) is not
    counted."""
    total = sum(source.bytes for source in list_sources(model, quantised))
    if any(each.instead_of for each in model.companions if each.when in (None, quantised)):
        total -= sum(part.parameters * 2 for part in model.parts if part.role == "denoiser")
    return total


def explain_size(offer: Offer) -> Sentence | None:
    """Say why the download is smaller than at other times: its plan takes a file in fewer bits in the denoiser's place."""
    smaller = (each for each in offer.model.companions if each.instead_of and each.when == offer.quantised)
    named = next((found for each in smaller if (found := _BITS.search(each.source.files[0]))), None)
    if named is None or offer.here:
        return None
    if offer.chosen:
        return say(
            "fit.in-bits-chosen",
            "Its largest part in {bits} bits, as you chose: unquantised weights are a larger download.",
            bits=int(named[1]),
        )
    return say(
        "fit.in-bits",
        "Its largest part in {bits} bits, as planned for the memory that is free now: unquantised weights are a larger download.",
        bits=int(named[1]),
    )


def forecast_recommended(setup: Setup, model: Model) -> Forecast:
    """Forecast the recommended request: the makers' picture size, or any script. The memory of one that makes nothing hangs on no request."""
    request = REQUESTS[model.makes or "speech"]
    return make_forecast(setup, request(".", model.id), model)
