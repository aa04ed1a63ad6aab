"""Answer what A1111's clients ask for besides painting: its lists, a picture's settings, a picture made larger."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import psutil
from PIL import Image, ImageOps
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.base.foreign_formats import decode, open_picture
from app.base.sentence import say
from app.base.trouble import BadRequest, Trouble
from app.engine.jobs.schedulers import NAMES
from app.engine.jobs.settings import STARTER_ENLARGER
from app.engine.models.enlargers import list_enlargers
from app.engine.models.lora_library import list_loras
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.foreign_settings import split_a1111
from app.engine.pictures.prompts.named_loras import is_embedding
from app.ui.access.uploads import PIXELS_MOST
from app.ui.api.following import work
from app.ui.api.shared import Handler, Row, decode_base64, not_a_picture, save_picture, wait_while_heard
from app.ui.state.asked import Asked, Harmless, Programs, Whole, Word, refuse_rest
from app.ui.state.desk import Desk
from app.ui.state.person import Person

LISTED_SCHEDULERS: Final = {"automatic": "Automatic", "karras": "Karras", "sgm_uniform": "SGM Uniform"}
PLAIN_UPSCALERS: Final = {"None": None, "Nearest": Image.Resampling.NEAREST, "Lanczos": Image.Resampling.LANCZOS}
LARGER_MOST: Final = 8.0
HARMLESS: Final[Harmless] = {"gfpgan_visibility": (0,), "codeformer_visibility": (0,), "extras_upscaler_2_visibility": (0,)}


class PictureSent(Asked):
    image: str = ""


class EnlargeAsked(Programs):
    image: str = ""
    resize_mode: Whole = 0
    upscaling_resize: float = 2.0
    upscaling_resize_w: Whole = 512
    upscaling_resize_h: Whole = 512
    upscaling_crop: bool = True
    upscaler_1: Word = "None"


class PictureNamed(Asked):
    data: str = ""


class AllEnlargeAsked(EnlargeAsked):
    imageList: list[PictureNamed] = Field(default_factory=list)


def constant(value: Any) -> Handler:
    """Return a handler that always answers the same."""

    async def answer(desk: Desk, asked: Request, person: Person) -> Response:
        return JSONResponse(value)

    return answer


def listing(collect: Callable[[Desk], Any]) -> Handler:
    async def answer(desk: Desk, asked: Request, person: Person) -> Response:
        return JSONResponse(await work(collect, desk))

    return answer


def list_upscalers(desk: Desk) -> list[dict[str, Any]]:
    names = (*PLAIN_UPSCALERS, STARTER_ENLARGER, *list_enlargers(desk.keeper.home))
    return [{"name": each, "model_name": None, "model_path": None, "model_url": None, "scale": 4} for each in names]


def list_lora_files(desk: Desk) -> list[dict[str, Any]]:
    """List the LoRAs by the names that a prompt has, each once: paths stay private."""
    found = {each.word: each.path.name for each in list_loras(desk.keeper.home) if not is_embedding(each)}
    return [{"name": word, "alias": word, "path": file, "metadata": {}} for word, file in found.items()]


def list_embeddings(desk: Desk) -> dict[str, Any]:
    none = {"step": None, "sd_checkpoint": None, "sd_checkpoint_name": None, "shape": 0, "vectors": 0}
    return {"loaded": {each.word: none for each in list_loras(desk.keeper.home) if is_embedding(each)}, "skipped": {}}


def measure_memory(desk: Desk) -> dict[str, Any]:
    ram = psutil.virtual_memory()
    return {"ram": {"free": ram.available, "used": ram.total - ram.available, "total": ram.total}, "cuda": {"error": "not told"}}


async def unload(desk: Desk, asked: Request, person: Person) -> Response:
    await work(desk.keeper.free)
    return JSONResponse({})


async def show_settings(desk: Desk, asked: Request, person: Person, given: PictureSent) -> Response:
    return JSONResponse(await work(read_settings, desk, given))


def read_settings(desk: Desk, given: PictureSent) -> dict[str, Any]:
    path = save_picture(desk, decode_base64(given.image), "picture.png")
    try:
        text = picture_settings.read_text(path)
    finally:
        path.unlink()
    prompt, negative, settings = split_a1111(text)
    return {"info": text, "items": {}, "parameters": {"Prompt": prompt, "Negative prompt": negative.strip(), **settings} if text else {}}


async def enlarge(desk: Desk, asked: Request, person: Person, given: EnlargeAsked) -> Response:
    refuse_rest(given, HARMLESS, knows_all=False)
    return JSONResponse({"html_info": "", "image": await make_larger(desk, asked, given, given.image)})


async def enlarge_all(desk: Desk, asked: Request, person: Person, given: AllEnlargeAsked) -> Response:
    refuse_rest(given, HARMLESS, knows_all=False)
    made = [await make_larger(desk, asked, given, each.data) for each in given.imageList]
    return JSONResponse({"html_info": "", "images": made})


async def make_larger(desk: Desk, asked: Request, given: EnlargeAsked, image: str) -> str:
    """Enlarge by a formula or a network, then to the very size that is asked for."""
    path, size, times = await work(save_small, desk, given, image)
    try:
        if given.upscaler_1 not in PLAIN_UPSCALERS:
            task = await work(desk.enlarging.start, path, times, given.upscaler_1)
            await wait_while_heard(desk, asked, task, lambda progress: False)
            await work(desk.enlarging.take, task, path)
        return await work(fit_to, path, size, given)
    except (OSError, ValueError) as fault:  # a damaged picture, or one so narrow that nothing of a side is left
        raise not_a_picture("picture.png") from fault
    finally:
        path.unlink(missing_ok=True)


def save_small(desk: Desk, given: EnlargeAsked, image: str) -> tuple[Path, tuple[int, int], int]:
    """Save the picture; say which size it is to have, and how many times that is as large."""
    if given.upscaler_1 not in (*PLAIN_UPSCALERS, STARTER_ENLARGER, *list_enlargers(desk.keeper.home)):
        words = say(
            "a1111.enlarge", "Hearth has no upscaler {name}. GET /sdapi/v1/upscalers lists those that it has.", name=given.upscaler_1
        )
        raise BadRequest(words, field="upscaler_1")
    path = save_picture(desk, decode_base64(image), "picture.png")
    with open_picture(path) as opened:
        own = opened.size
    size = given.upscaling_resize_w, given.upscaling_resize_h
    if given.resize_mode == 0:
        size = round(own[0] * given.upscaling_resize), round(own[1] * given.upscaling_resize)
    if not (0 < given.upscaling_resize <= LARGER_MOST and min(size) > 0 and size[0] * size[1] <= PIXELS_MOST):
        path.unlink()
        words = say(
            "a1111.larger", "The picture would have {width} x {height} pixels, which is not possible here.", width=size[0], height=size[1]
        )
        raise Trouble(words)
    return path, size, math.ceil(max(size[0] / own[0], size[1] / own[1], 1))


def fit_to(path: Path, size: tuple[int, int], given: EnlargeAsked) -> str:
    with open_picture(path) as opened:
        picture = decode(opened, "RGB")
    formula = PLAIN_UPSCALERS.get(given.upscaler_1, Image.Resampling.LANCZOS)
    if formula is not None or given.resize_mode != 0:
        way = Image.Resampling.LANCZOS if formula is None else formula
        crops = given.resize_mode != 0 and given.upscaling_crop
        picture = ImageOps.fit(picture, size, way) if crops else ImageOps.contain(picture, size, way)
    made = io.BytesIO()
    picture.save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


ROWS: Final[tuple[Row, ...]] = (
    ("/sdapi/v1/samplers", "GET", constant([{"name": each, "aliases": [each.lower()], "options": {}} for each in NAMES]), None),
    ("/sdapi/v1/schedulers", "GET", constant([
        {"name": name, "label": label, "aliases": None, "default_rho": -1, "need_inner_model": False} for name, label in LISTED_SCHEDULERS.items()
    ]), None),
    ("/sdapi/v1/upscalers", "GET", listing(list_upscalers), None),
    ("/sdapi/v1/loras", "GET", listing(list_lora_files), None),
    ("/sdapi/v1/embeddings", "GET", listing(list_embeddings), None),
    ("/sdapi/v1/memory", "GET", listing(measure_memory), None),
    *((f"/sdapi/v1/{each}", "GET", constant([]), None) for each in (
        "latent-upscale-modes", "sd-vae", "sd-modules", "hypernetworks", "face-restorers", "realesrgan-models", "prompt-styles", "script-info", "extensions",
    )),
    ("/sdapi/v1/scripts", "GET", constant({"txt2img": [], "img2img": []}), None),
    ("/sdapi/v1/cmd-flags", "GET", constant({}), None),
    *((f"/sdapi/v1/{each}", "POST", constant({}), None) for each in (
        "refresh-checkpoints", "refresh-vae", "refresh-loras", "refresh-embeddings", "reload-checkpoint",
    )),
    ("/sdapi/v1/unload-checkpoint", "POST", unload, None),
    ("/sdapi/v1/png-info", "POST", show_settings, PictureSent),
    ("/sdapi/v1/extra-single-image", "POST", enlarge, EnlargeAsked),
    ("/sdapi/v1/extra-batch-images", "POST", enlarge_all, AllEnlargeAsked),
)  # fmt: skip
