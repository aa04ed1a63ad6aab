"""What each model would mean for this machine: whether it is here, whether it fits and why, how much is to be fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Verdicts
from app.compat.planning.types import Choice, Quantised
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models import on_disk
from app.engine.models.forecast import Forecast, make_forecast
from app.engine.models.model import Model, list_sources
from app.paths import Home
from app.sentence import say

FITS: Final = {
    "fits": say("fit.fits", "fits"),
    "tight": say("fit.tight", "tight"),
    "no": say("fit.no", "too large"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    model: Model
    here: bool
    here_bytes: int
    """On the disk, halves included."""
    download_bytes: int
    """About, for the weights that the plan takes."""
    quantised: Quantised
    forecast: Forecast | None
    """None while the machine is not known yet."""


def make_offer(home: Home, model: Model, hardware: Hardware | None, choice: Choice, verdicts: Verdicts) -> Offer:
    """For the next job with it; a job that runs may have been planned otherwise."""
    fit = None if hardware is None else forecast_recommended(home, model, hardware, choice, verdicts)
    quantised = fit.plan.quantised if fit is not None and fit.plan is not None else "none"
    return Offer(
        model,
        on_disk.locate(home, model, quantised) is not None,
        on_disk.measure_bytes(home, model),
        estimate_download_bytes(model, quantised),
        quantised,
        fit,
    )


def estimate_download_bytes(model: Model, quantised: Quantised) -> int:
    """About; where a companion stands in for the denoiser, the model's own (two bytes a number) is not fetched."""
    total = sum(source.bytes for source in list_sources(model, quantised))
    if any(each.instead_of for each in model.companions if each.when in (None, quantised)):
        total -= sum(part.parameters * 2 for part in model.parts if part.role == "denoiser")
    return total


def forecast_recommended(home: Home, model: Model, hardware: Hardware, choice: Choice, verdicts: Verdicts) -> Forecast:
    """For what its makers recommend: their size of picture, or any script."""
    request = SpeechRequest("[S1] .", model.id) if model.kind == "speech" else PictureRequest(".", model.id)
    return make_forecast(home, request, model, hardware, choice, verdicts)
