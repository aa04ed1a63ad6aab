"""Answer A1111's API (/sdapi/v1), as far as its common clients use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.engine.files.outward import public_name
from app.engine.jobs.request import SEED_LIMIT, PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best, locate
from app.sentence import Trouble, say
from app.ui.api.openai import build_routes, find_model, no_such_model
from app.ui.api.shared import decode_base64, encode_base64, read_json, run_job, save_mask, save_picture
from app.ui.state.desk import Desk
from app.ui.state.person import Person

KIND: Final = "picture"
BATCH_MOST: Final = 16
DENOISING: Final = 0.75
"""A1111's own default."""


def routes(desk: Desk) -> list[Route]:
    return build_routes(desk, [
        ("/sdapi/v1/txt2img", "POST", answer_txt2img), ("/sdapi/v1/img2img", "POST", answer_img2img), ("/sdapi/v1/progress", "GET", show_progress),
        ("/sdapi/v1/interrupt", "POST", interrupt), ("/sdapi/v1/samplers", "GET", list_samplers), ("/sdapi/v1/sd-models", "GET", list_models),
        ("/sdapi/v1/options", "GET", show_options), ("/sdapi/v1/options", "POST", change_options),
    ])  # fmt: skip


async def answer_txt2img(desk: Desk, asked: Request, person: Person) -> Response:
    return await paint(desk, person, await read_json(asked), None, None)


async def answer_img2img(desk: Desk, asked: Request, person: Person) -> Response:
    given = await read_json(asked)
    starts = given.get("init_images") or []
    if len(starts) != 1:
        raise Trouble(say("a1111.one-image", "Send exactly one picture in init_images; this request has {count}.", count=len(starts)))
    image = await run_in_threadpool(save_picture, desk, decode_base64(starts[0]), "start.png")
    mask = None
    if given.get("mask"):
        mask = str(await run_in_threadpool(save_mask, desk, decode_base64(given["mask"]), False))
    return await paint(desk, person, given, str(image), mask)


async def paint(desk: Desk, person: Person, given: dict[str, Any], image: str | None, mask: str | None) -> Response:
    request = picture_request(desk, given, image, mask)
    job, files = await run_job(desk, request, person)
    seeds = [part.seed for part in desk.keeper.get_progress(job).parts]
    info = {"prompt": request.prompt, "negative_prompt": request.negative, "seed": seeds[0] if seeds else -1, "all_seeds": seeds}
    sent = files if given.get("send_images", True) else ()
    images = [await run_in_threadpool(encode_base64, file) for file in sent]
    parameters = {key: value for key, value in given.items() if key not in ("init_images", "mask")}
    return JSONResponse({"images": images, "parameters": parameters, "info": json.dumps(info)})


async def show_progress(desk: Desk, asked: Request, person: Person) -> Response:
    now = await run_in_threadpool(desk.jobs.find_progress, KIND, person)
    step = now.step if now is not None and now.end is None else None
    waits = bool(job := desk.jobs.find_current(KIND, person)) and desk.jobs.is_waiting(job)
    picture = None
    if step and now and now.preview and asked.query_params.get("skip_current_image", "false").lower() != "true":
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


async def change_options(desk: Desk, asked: Request, person: Person) -> Response:
    wanted = (await read_json(asked)).get("sd_model_checkpoint")
    if wanted is not None:
        chosen = find_model(desk, wanted, KIND)
        if not chosen:
            raise no_such_model(str(wanted))
        desk.settings.change("paint", {}, lambda kept: {**kept, "model": chosen})
    return JSONResponse({})


def picture_request(desk: Desk, given: dict[str, Any], image: str | None, mask: str | None) -> PictureRequest:
    """Read a request; missing values and -1 are left to the model's recommended settings."""

    def integer(key: str) -> int | None:
        return int(given[key]) if given.get(key) not in (None, "", -1) else None

    batch = (integer("batch_size") or 1) * (integer("n_iter") or 1)
    if batch > BATCH_MOST:
        raise Trouble(
            say(
                "a1111.batch",
                "This asks for {asked} pictures, but one job may have at most {most}. Ask for fewer.",
                asked=batch,
                most=BATCH_MOST,
            )
        )
    checkpoint = (given.get("override_settings") or {}).get("sd_model_checkpoint")
    sampler = " ".join(filter(None, (given.get("sampler_name") or given.get("sampler_index"), scheduler_of(given))))
    seed = integer("seed")
    strength = float(given.get("denoising_strength") or DENOISING)
    return PictureRequest(
        str(given.get("prompt") or ""), find_model(desk, checkpoint, KIND) or current_model(desk), str(given.get("negative_prompt") or ""),
        integer("width"), integer("height"), integer("steps"), None if given.get("cfg_scale") is None else float(given["cfg_scale"]),
        next((each for each in NAMES if each.lower() == sampler.lower()), None), None if seed is None else seed % SEED_LIMIT, batch, image, mask, strength,
    )  # fmt: skip


def scheduler_of(given: dict[str, Any]) -> str:
    """Return "Karras" if the request names it separately from the sampler, as newer clients do."""
    wanted = str(given.get("scheduler") or "")
    return "Karras" if wanted.lower() == "karras" and "karras" not in str(given.get("sampler_name")).lower() else ""


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
