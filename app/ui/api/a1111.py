"""The way in for programs that speak A1111's language (/sdapi/v1), as far as its common clients use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.engine.files.outward import name
from app.engine.jobs.request import SEED_LIMIT, PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.engine.models.model import Model
from app.engine.models.on_disk import best, located
from app.sentence import Trouble, say
from app.ui.api.openai import Handler, model_for, told
from app.ui.api.shared import carried_out, decoded, encoded, mask_from, picture_from, programmer, values_of
from app.ui.state.desk import Desk
from app.ui.state.person import Person

KIND: Final = "picture"
BATCH_MOST: Final = 16
DENOISING: Final = 0.75
"""What A1111 does where nothing is said."""


def routes(desk: Desk) -> list[Route]:
    async def from_text(asked: Request) -> Response:
        return await painted(asked, None, None)

    async def from_image(asked: Request) -> Response:
        programmer(asked)
        given = await values_of(asked)
        starts = given.get("init_images") or []
        if len(starts) != 1:
            raise Trouble(
                say("sdapi.one-image", "init_images has to hold one picture; it holds {count}.", count=len(starts))
            )
        image = await run_in_threadpool(lambda: picture_from(desk, decoded(starts[0]), "start.png"))
        mask = given.get("mask")
        drawn = await run_in_threadpool(lambda: mask_from(desk, decoded(mask), False)) if mask else None
        return await painted(asked, str(image), None if drawn is None else str(drawn))

    async def painted(asked: Request, image: str | None, mask: str | None) -> Response:
        person, given = programmer(asked), await values_of(asked)
        request = picture_request(desk, given, image, mask)
        job, files = await carried_out(desk, request, person)
        seeds = [part.seed for part in desk.keeper.progress(job).parts]
        info = {
            "prompt": request.prompt,
            "negative_prompt": request.negative,
            "seed": seeds[0] if seeds else -1,
            "all_seeds": seeds,
        }
        images = [await run_in_threadpool(encoded, file) for file in files] if given.get("send_images", True) else []
        left_out = ("init_images", "mask")
        parameters = {key: value for key, value in given.items() if key not in left_out}
        return JSONResponse({"images": images, "parameters": parameters, "info": json.dumps(info)})

    async def progress(asked: Request) -> Response:
        person = programmer(asked)
        now = await run_in_threadpool(desk.jobs.find_progress, KIND, person)
        step = now.step if now is not None and now.end is None else None
        waits = bool(job := desk.jobs.find_current(KIND, person)) and desk.jobs.is_waiting(job)
        picture = None
        if step and now and now.preview and asked.query_params.get("skip_current_image", "false").lower() != "true":
            picture = await run_in_threadpool(preview, desk, person)
        state = {
            "skipped": False, "interrupted": False, "stopping_generation": False, "job": job if step or waits else "", "job_count": int(bool(step or waits)),
            "job_no": step.part if step else 0, "sampling_step": step.done if step else 0, "sampling_steps": step.total if step else 0,
        }  # fmt: skip
        share = step.done / step.total if step and step.total else 0.0
        eta = (step.eta_s or 0.0) if step else 0.0
        return JSONResponse(
            {"progress": share, "eta_relative": eta, "state": state, "current_image": picture, "textinfo": None}
        )

    async def interrupt(asked: Request) -> Response:
        await run_in_threadpool(desk.jobs.stop, KIND, programmer(asked))
        return JSONResponse({})

    async def samplers(asked: Request) -> Response:
        programmer(asked)
        return JSONResponse([{"name": each, "aliases": [each.lower()], "options": {}} for each in NAMES])

    async def models(asked: Request) -> Response:
        programmer(asked)
        return JSONResponse([listed(each) for each in await run_in_threadpool(there, desk)])

    async def options(asked: Request) -> Response:
        programmer(asked)
        if asked.method == "POST":
            wanted = (await values_of(asked)).get("sd_model_checkpoint")
            if wanted is not None:
                chosen = model_for(desk, wanted, KIND)
                if not chosen:
                    raise Trouble(say("api.no-model", "There is no model called {model} here.", model=str(wanted)))
                desk.settings.change("paint", {}, lambda kept: {**kept, "model": chosen})
            return JSONResponse({})
        return JSONResponse({"sd_model_checkpoint": name(now_used(desk)), "samples_format": "png"})

    table: list[tuple[str, str, Handler]] = [
        ("txt2img", "POST", from_text), ("img2img", "POST", from_image), ("progress", "GET", progress), ("interrupt", "POST", interrupt),
        ("samplers", "GET", samplers), ("sd-models", "GET", models), ("options", "GET", options), ("options", "POST", options),
    ]  # fmt: skip
    return [Route(f"/sdapi/v1/{path}", told(handler), methods=[method]) for path, method, handler in table]


def picture_request(desk: Desk, given: dict[str, Any], image: str | None, mask: str | None) -> PictureRequest:
    """What is not given is as the model's makers recommend; -1 is how these clients say none."""

    def whole(key: str) -> int | None:
        return int(given[key]) if given.get(key) not in (None, "", -1) else None

    batch = (whole("batch_size") or 1) * (whole("n_iter") or 1)
    if batch > BATCH_MOST:
        raise Trouble(
            say(
                "sdapi.batch", "{asked} pictures are more than one job may have ({most}).", asked=batch, most=BATCH_MOST
            )
        )
    checkpoint = (given.get("override_settings") or {}).get("sd_model_checkpoint")
    sampler = " ".join(filter(None, (given.get("sampler_name") or given.get("sampler_index"), scheduler_of(given))))
    seed = whole("seed")
    strength = float(given.get("denoising_strength") or DENOISING)
    return PictureRequest(
        str(given.get("prompt") or ""), model_for(desk, checkpoint, KIND) or now_used(desk), str(given.get("negative_prompt") or ""),
        whole("width"), whole("height"), whole("steps"), None if given.get("cfg_scale") is None else float(given["cfg_scale"]),
        next((each for each in NAMES if each.lower() == sampler.lower()), None), None if seed is None else seed % SEED_LIMIT, batch, image, mask, strength,
    )  # fmt: skip


def scheduler_of(given: dict[str, Any]) -> str:
    """Newer clients say "Karras" apart from the sampler's name."""
    wanted = str(given.get("scheduler") or "")
    return "Karras" if wanted.lower() == "karras" and "karras" not in str(given.get("sampler_name")).lower() else ""


def there(desk: Desk) -> list[Model]:
    return [each for each in desk.models.list_all() if each.kind == KIND and located(desk.keeper.home, each)]


def now_used(desk: Desk) -> str:
    return str(desk.settings.get("paint", {}).get("model") or best(desk.keeper.home, KIND).id)


def listed(model: Model) -> dict[str, Any]:
    """A file's name as these clients want it; where it lies stays here."""
    short = name(model.id)
    return {"title": short, "model_name": short, "hash": None, "sha256": None, "filename": short, "config": None}


def preview(desk: Desk, person: Person) -> str | None:
    progress = desk.jobs.find_progress(KIND, person)
    if progress is None or progress.preview is None:
        return None
    path = Path(progress.preview.path)
    return encoded(path) if path.is_file() else None
