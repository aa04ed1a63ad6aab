"""Answer A1111's API (/sdapi/v1), as far as its common clients use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, field_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.engine.jobs.settings import PICTURES, SEED_LIMIT
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best, locate
from app.ui.api.following import work
from app.ui.api.openai import build_routes, find_model, no_such_model
from app.ui.api.shared import decode_base64, encode_base64, run_job, save_mask, save_picture
from app.ui.state.asked import Asked, Whole, Word
from app.ui.state.desk import Desk
from app.ui.state.person import Person

KIND: Final = "picture"
SCALES: Final[tuple[int, ...]] = tuple(PICTURES["upscale"].choices)
DENOISING: Final = 0.75
"""A1111's own default."""


class OverridesAsked(Asked):
    sd_model_checkpoint: str | None = None


class PaintAsked(Asked):
    """What A1111's clients send and Hearth uses; the rest is given back with the answer. Missing values, "" and -1 are left to the model."""

    model_config = ConfigDict(extra="allow")

    prompt: str | None = None
    negative_prompt: str | None = None
    width: Whole | None = None
    height: Whole | None = None
    steps: Whole | None = None
    seed: Whole | None = None
    batch_size: Whole | None = None
    n_iter: Whole | None = None
    cfg_scale: float | None = None
    denoising_strength: float | None = None
    enable_hr: bool | None = None
    hr_scale: float | None = None
    sampler_name: Word | None = None
    sampler_index: Word | None = None
    scheduler: Word | None = None
    override_settings: OverridesAsked | None = None
    send_images: bool | None = None
    init_images: list[str] | None = None
    mask: str | None = None

    @field_validator("width", "height", "steps", "seed", "batch_size", "n_iter", mode="before")
    @classmethod
    def left_out(cls, value: Any) -> Any:
        return None if value in ("", -1) else value


class ProgressAsked(Asked):
    skip_current_image: Word = "false"


def routes(desk: Desk) -> list[Route]:
    return build_routes(desk, [
        ("/sdapi/v1/txt2img", "POST", answer_txt2img, PaintAsked), ("/sdapi/v1/img2img", "POST", answer_img2img, PaintAsked),
        ("/sdapi/v1/progress", "GET", show_progress, ProgressAsked), ("/sdapi/v1/interrupt", "POST", interrupt, None),
        ("/sdapi/v1/samplers", "GET", list_samplers, None), ("/sdapi/v1/sd-models", "GET", list_models, None),
        ("/sdapi/v1/options", "GET", show_options, None), ("/sdapi/v1/options", "POST", change_options, OverridesAsked),
    ])  # fmt: skip


async def answer_txt2img(desk: Desk, asked: Request, person: Person, given: PaintAsked) -> Response:
    return await paint(desk, asked, person, given, None, None)


async def answer_img2img(desk: Desk, asked: Request, person: Person, given: PaintAsked) -> Response:
    starts = given.init_images or []
    if len(starts) != 1:
        raise Trouble(say("a1111.one-image", "Send exactly one picture in init_images; this request has {count}.", count=len(starts)))
    image = await work(save_picture, desk, await work(decode_base64, starts[0]), "start.png")
    mask = None
    if given.mask:
        mask = str(await work(save_mask, desk, await work(decode_base64, given.mask), False))
    return await paint(desk, asked, person, given, str(image), mask)


async def paint(desk: Desk, asked: Request, person: Person, given: PaintAsked, image: str | None, mask: str | None) -> Response:
    request = await work(picture_request, desk, given, image, mask)
    job, files = await run_job(desk, asked, request, person)
    seeds = [part.seed for part in desk.keeper.get_progress(job).parts]
    info = {"prompt": request.prompt, "negative_prompt": request.negative, "seed": seeds[0] if seeds else -1, "all_seeds": seeds}
    sent = () if given.send_images is False else files
    images = [await work(encode_base64, file) for file in sent]
    parameters = given.model_dump(exclude={"init_images", "mask"}, exclude_unset=True)
    return JSONResponse({"images": images, "parameters": parameters, "info": json.dumps(info)})


async def show_progress(desk: Desk, asked: Request, person: Person, given: ProgressAsked) -> Response:
    now = await run_in_threadpool(desk.jobs.find_progress, KIND, person)
    step = now.step if now is not None and now.end is None else None
    waits = bool(job := desk.jobs.find_current(KIND, person)) and desk.jobs.is_waiting(job)
    picture = None
    if step and now and now.preview and given.skip_current_image.lower() != "true":
        picture = await run_in_threadpool(read_preview, desk, person)
    state = {
        "skipped": False, "interrupted": False, "stopping_generation": False, "job": job if step or waits else "", "job_count": int(bool(step or waits)),
        "job_no": step.part if step else 0, "sampling_step": step.done if step else 0, "sampling_steps": step.total if step else 0,
    }  # fmt: skip
    share = step.done / step.total if step and step.total else 0.0
    eta = (step.eta_s or 0.0) if step else 0.0
    return JSONResponse({"progress": share, "eta_relative": eta, "state": state, "current_image": picture, "textinfo": None})


async def interrupt(desk: Desk, asked: Request, person: Person) -> Response:
    await run_in_threadpool(desk.jobs.stop, KIND, person)
    return JSONResponse({})


async def list_samplers(desk: Desk, asked: Request, person: Person) -> Response:
    return JSONResponse([{"name": each, "aliases": [each.lower()], "options": {}} for each in NAMES])


async def list_models(desk: Desk, asked: Request, person: Person) -> Response:
    return JSONResponse([model_entry(each) for each in await run_in_threadpool(installed_models, desk)])


async def show_options(desk: Desk, asked: Request, person: Person) -> Response:
    return JSONResponse({"sd_model_checkpoint": public_name(current_model(desk)), "samples_format": "png"})


async def change_options(desk: Desk, asked: Request, person: Person, given: OverridesAsked) -> Response:
    wanted = given.sd_model_checkpoint
    if wanted is not None:
        chosen = next((each.id for each in installed_models(desk) if public_name(each.id) == wanted), "")
        if not chosen:
            raise no_such_model(wanted)
        desk.settings.change("paint", {}, lambda kept: {**kept, "model": chosen})
    return JSONResponse({})


def picture_request(desk: Desk, given: PaintAsked, image: str | None, mask: str | None) -> PictureRequest:
    batch = (given.batch_size or 1) * (given.n_iter or 1)
    checkpoint = given.override_settings.sd_model_checkpoint if given.override_settings else None
    sampler = " ".join(filter(None, (given.sampler_name or given.sampler_index, scheduler_of(given))))
    seed = None if given.seed is None else given.seed % SEED_LIMIT
    return PictureRequest(
        given.prompt or "", find_model(desk, checkpoint, KIND) or current_model(desk), given.negative_prompt or "", given.width, given.height, given.steps,
        given.cfg_scale, next((each for each in NAMES if each.lower() == sampler.lower()), None), seed, batch, image, mask,
        given.denoising_strength or DENOISING, upscale=largest_scale(given.hr_scale or 2.0) if given.enable_hr else 1, hires=bool(given.enable_hr),
    )  # fmt: skip


def largest_scale(asked: float) -> int:
    """Return the least scale that there is and that is no smaller than asked, or the largest."""
    return next((each for each in SCALES if each >= asked), max(SCALES))


def scheduler_of(given: PaintAsked) -> str:
    """Return "Karras" if the request names it separately from the sampler, as newer clients do."""
    wanted = given.scheduler or ""
    return "Karras" if wanted.lower() == "karras" and "karras" not in (given.sampler_name or "").lower() else ""


def installed_models(desk: Desk) -> list[Model]:
    return [each for each in desk.models.list_all() if each.kind == KIND and locate(desk.keeper.home, each)]


def current_model(desk: Desk) -> str:
    return str(desk.settings.get("paint", {}).get("model") or find_best(desk.keeper.home, KIND).id)


def model_entry(model: Model) -> dict[str, Any]:
    """Describe a model by its file's name alone: its path stays private."""
    short = public_name(model.id)
    return {"title": short, "model_name": short, "hash": None, "sha256": None, "filename": short, "config": None}


def read_preview(desk: Desk, person: Person) -> str | None:
    progress = desk.jobs.find_progress(KIND, person)
    if progress is None or progress.preview is None:
        return None
    path = Path(progress.preview.path)
    return encode_base64(path) if path.is_file() else None
