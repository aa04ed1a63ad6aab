"""Answer A1111's API (/sdapi/v1) for what paints and what is set; its lists stand beside."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from PIL import Image, ImageOps
from pydantic import field_validator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import __version__
from app.base.foreign_formats import decode, open_picture
from app.base.sentence import say
from app.base.trouble import BadRequest, NotThere, Trouble
from app.engine.jobs.outward import public_name
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.engine.jobs.settings import HIRES_STRENGTH, SEED_LIMIT, STARTER_ENLARGER
from app.engine.models.enlargers import ENDING, list_enlargers
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best, locate
from app.engine.models.painted_tiles import find_larger
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.arrived import SIDE_MOST
from app.engine.pictures.files.encoded import Wanted, encode_picture
from app.engine.pictures.files.foreign_settings import AUTOMATIC, name_sampler
from app.ui.api import a1111_lists
from app.ui.api.a1111_lists import PLAIN_UPSCALERS
from app.ui.api.answered_pictures import choose_scale, fit_size
from app.ui.api.following import work
from app.ui.api.shared import (
    build_routes,
    decode_base64,
    encode_base64,
    no_such_model,
    not_a_picture,
    read_notes,
    run_job,
    save_mask,
    save_picture,
)
from app.ui.page.translate import join, language
from app.ui.state.asked import Asked, Harmless, Programs, Whole, Word, refuse_rest
from app.ui.state.desk import Desk
from app.ui.state.person import Person

KIND: Final = "picture"
DENOISING: Final = 0.75
BLUR: Final = 4
"""A1111 itself uses this and DENOISING by default."""
LIST: Final = "/sdapi/v1/sd-models"
OPTIONS: Final[dict[str, Any]] = {"samples_format": "png", "sd_vae": "Automatic", "CLIP_stop_at_last_layers": 1, "sd_checkpoint_hash": None}
"""These stay the same whatever is set."""
HARMLESS_OPTIONS: Final[Harmless] = {
    "samples_format": ("png",), "sd_vae": ("", "Automatic", "None"), "CLIP_stop_at_last_layers": (1,), "forge_additional_modules": ([],),
    "sd_checkpoint_hash": None, "samples_save": None, "grid_save": None, "return_grid": (False,), "save_images_add_number": None,
    "show_progress_every_n_steps": None, "live_previews_enable": None, "eta_noise_seed_delta": (0,), "filter_nsfw": (False,),
}  # fmt: skip
HARMLESS: Final[Harmless] = {
    "mask_blur_x": (4,), "mask_blur_y": (4,), "mask_round": (True,),
    "styles": ([],), "subseed": (-1,), "subseed_strength": (0,), "seed_resize_from_h": (-1, 0), "seed_resize_from_w": (-1, 0),
    "restore_faces": (False,), "tiling": (False,), "eta": (0, 1), "s_churn": (0,), "s_tmin": (0,), "s_tmax": (0,), "s_noise": (1,),
    "s_min_uncond": (0,), "script_name": ("", "None"), "refiner_checkpoint": ("", "None"), "refiner_switch_at": None, "comments": None,
    "firstphase_width": (0,), "firstphase_height": (0,), "hr_second_pass_steps": (0,), "hr_resize_x": (0,), "hr_resize_y": (0,),
    "hr_checkpoint_name": ("", "Use same checkpoint"), "hr_sampler_name": ("", "Use same sampler"), "hr_scheduler": ("", "Use same scheduler"),
    "hr_prompt": ("",), "hr_negative_prompt": ("",), "hr_additional_modules": ([], ["Use same choices"]), "inpainting_fill": (0, 1),
    "initial_noise_multiplier": (1,), "include_init_images": (False,), "latent_mask": ("",), "clip_skip": (0, 1), "disable_extra_networks": (False,),
    "override_settings_restore_afterwards": (True,),
}  # fmt: skip
"""A1111 has these fields and Hearth does not: the values ask for nothing. What A1111 does not have either is passed over, as it does."""
STRETCHED, CROPPED = 0, 1
"""Hearth has these two of A1111's ways to fit a start picture."""


class OverridesAsked(Programs):
    sd_model_checkpoint: str | None = None


class PaintAsked(Programs):
    """What A1111's clients send and Hearth does. Missing values, "" and -1 are left to the model."""

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
    hr_upscaler: Word | None = None
    sampler_name: Word | None = None
    sampler_index: Word | None = None
    scheduler: Word | None = None
    override_settings: OverridesAsked | None = None
    alwayson_scripts: dict[str, Any] | None = None
    send_images: bool | None = None
    init_images: list[str] | None = None
    mask: str | None = None
    inpainting_mask_invert: Whole | None = None
    inpaint_full_res: bool | None = None
    inpaint_full_res_padding: Whole | None = None
    mask_blur: Whole | None = None
    resize_mode: Whole | None = None

    @property
    def masked_only(self) -> bool:
        """Whether the masked part alone is painted, as A1111 does unless it is told not to."""
        return bool(self.mask) and self.inpaint_full_res is not False

    @field_validator("width", "height", "steps", "seed", "batch_size", "n_iter", mode="before")
    @classmethod
    def left_out(cls, value: Any) -> Any:
        return None if value in ("", -1, "-1") else value


@dataclass(frozen=True, slots=True)
class Start:
    """What a picture is painted from."""

    image: str | None = None
    mask: str | None = None


class ProgressAsked(Asked):
    skip_current_image: Word = "false"


def routes(desk: Desk) -> list[Route]:
    return build_routes(
        desk,
        [
            ("/sdapi/v1/txt2img", "POST", answer_txt2img, PaintAsked),
            ("/sdapi/v1/img2img", "POST", answer_img2img, PaintAsked),
            ("/sdapi/v1/progress", "GET", show_progress, ProgressAsked),
            ("/sdapi/v1/interrupt", "POST", interrupt, None),
            ("/sdapi/v1/skip", "POST", skip, None),
            ("/sdapi/v1/sd-models", "GET", list_models, None),
            ("/sdapi/v1/options", "GET", show_options, None),
            ("/sdapi/v1/options", "POST", change_options, OverridesAsked),
            *a1111_lists.ROWS,
        ],
        "/sdapi/",
    )


async def answer_txt2img(desk: Desk, asked: Request, person: Person, given: PaintAsked) -> Response:
    return await paint(desk, asked, person, given, Start())


async def answer_img2img(desk: Desk, asked: Request, person: Person, given: PaintAsked) -> Response:
    starts = given.init_images or []
    if len(starts) != 1:
        raise Trouble(say("a1111.one-image", "Send exactly one picture in init_images; this request has {count}.", count=len(starts)))
    refuse_unsupported(given)
    return await paint(desk, asked, person, given, await work(save_start, desk, given, starts[0]))


def save_start(desk: Desk, given: PaintAsked, start: str) -> Start:
    """Save the start picture and its mask as Hearth takes them: white where to repaint, in the shape that is painted."""
    image = save_picture(desk, decode_base64(start), "start.png")
    mask = save_mask(desk, decode_base64(given.mask), False) if given.mask else None
    try:
        if mask is not None and given.inpainting_mask_invert:
            with open_picture(mask) as opened:
                drawn = ImageOps.invert(decode(opened, "L"))
            drawn.save(mask, "PNG")
        if given.width and given.height and (given.resize_mode or STRETCHED) == STRETCHED and not given.masked_only:
            for path in (image, mask) if mask else (image,):
                stretch(path, (given.width, given.height))
    except OSError as fault:
        raise not_a_picture("start.png") from fault
    return Start(str(image), str(mask) if mask else None)


def stretch(path: Path, size: tuple[int, int]) -> None:
    """Give a picture another shape, as A1111 does unless it is told to crop; what is larger than it stays for the run to scale."""
    with open_picture(path) as opened:
        if opened.width * size[1] == opened.height * size[0] or not 0 < min(size) <= max(size) <= SIDE_MOST:
            return
        picture = decode(opened, "RGBA" if "A" in opened.getbands() else "L" if opened.mode == "L" else "RGB")
    picture.resize(size, Image.Resampling.LANCZOS).save(path, "PNG")


def refuse_unsupported(given: PaintAsked) -> None:
    """Raise a Trouble for what A1111 would do and Hearth cannot."""
    refuse_rest(given, HARMLESS, knows_all=False)
    if given.override_settings is not None:
        refuse_rest(given.override_settings, HARMLESS_OPTIONS)
    for name, script in (given.alwayson_scripts or {}).items():
        arguments = script.get("args") if isinstance(script, dict) else script
        if is_on(arguments):
            raise BadRequest(
                say("a1111.script", "Hearth does not have the extension {name}. Switch it off.", name=name[:60]), field="alwayson_scripts"
            )
    if (given.resize_mode or STRETCHED) not in (STRETCHED, CROPPED):
        words = say(
            "a1111.resize", "resize_mode {mode} is not supported. Use 0, which stretches, or 1, which crops.", mode=given.resize_mode or 0
        )
        raise BadRequest(words, field="resize_mode")


def is_on(arguments: Any) -> bool:
    """Tell whether an extension is asked for anything: clients send those that they know of, and each of their units, switched off."""
    if isinstance(arguments, dict):
        return bool(arguments) and bool(arguments.get("enabled", arguments.get("enable", True)))
    if not isinstance(arguments, list) or not arguments:
        return bool(arguments)
    if not isinstance(arguments[0], dict):
        return arguments[0] is not False
    return any(is_on(each) for each in arguments if isinstance(each, dict))


async def paint(desk: Desk, asked: Request, person: Person, given: PaintAsked, start: Start) -> Response:
    request, size = await work(picture_request, desk, given, start)
    job, files = await run_job(desk, asked, request, person)
    seeds = [part.seed for part in desk.keeper.get_progress(job).parts]
    images = [] if given.send_images is False else [await work(encode, file, size) for file in files]
    used, info = await work(describe, files, seeds, size)
    info["comments"] = join(language(asked), *read_notes(desk, job, person))
    plain = given.model_dump(exclude={"init_images", "mask", "alwayson_scripts", *(given.model_extra or {})}, exclude_unset=True)
    return JSONResponse(
        {"images": images, "parameters": {"width": info["width"], "height": info["height"]} | plain | used, "info": json.dumps(info)}
    )


def encode(file: Path, size: tuple[int, int] | None) -> str:
    return base64.b64encode(encode_picture(file, Wanted(size=size))).decode()


def measure(file: Path) -> tuple[int, int]:
    with open_picture(file) as opened:
        return opened.size


def describe(files: Sequence[Path], seeds: list[int], size: tuple[int, int] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Say with which settings the pictures were made, whatever was asked for, as `parameters` and as `info` have them."""
    made = [picture_settings.read(each).request for each in files]
    first, texts = made[0], [picture_settings.read_text(each) for each in files]
    width, height = size or measure(files[0])
    used: dict[str, Any] = {
        "steps": first.steps,
        "cfg_scale": first.guidance,
        "negative_prompt": first.negative,
        "sampler_name": first.scheduler or "Automatic",
        "seed": seeds[0] if seeds else -1,
    }
    strength = first.strength if first.image else first.hires_strength if first.larger > 1 else None
    info = used | {
        "prompt": first.prompt, "all_prompts": [each.prompt for each in made],
        "all_negative_prompts": [each.negative for each in made], "all_seeds": seeds, "subseed": -1, "all_subseeds": [-1] * len(seeds),
        "subseed_strength": 0, "width": width, "height": height, "batch_size": len(files), "restore_faces": False, "face_restoration_model": None,
        "sd_model_name": public_name(first.model), "sd_model_hash": None, "sd_vae_name": None, "sd_vae_hash": None, "seed_resize_from_w": -1,
        "seed_resize_from_h": -1, "denoising_strength": strength, "extra_generation_params": {}, "index_of_first_image": 0, "infotexts": texts,
        "styles": [], "job_timestamp": time.strftime("%Y%m%d%H%M%S"), "clip_skip": 1, "is_using_inpainting_conditioning": False,
        "version": f"Hearth {__version__}",
    }  # fmt: skip
    echoed = {"sampler_index": used["sampler_name"], "scheduler": "Automatic", "denoising_strength": strength}  # its name has the schedule
    return used | echoed, info


async def show_progress(desk: Desk, asked: Request, person: Person, given: ProgressAsked) -> Response:
    now = await run_in_threadpool(desk.jobs.find_progress, KIND, person)
    step = now.step if now is not None and now.end is None else None
    waits = bool(job := desk.jobs.find_current(KIND, person)) and desk.jobs.is_waiting(job)
    picture = None
    if step and now and now.preview and given.skip_current_image.lower() != "true":
        picture = await run_in_threadpool(read_preview, desk, person)
    state = {
        "skipped": False, "interrupted": False, "stopping_generation": False, "job": job if step or waits else "", "job_count": int(bool(step or waits)),
        "job_timestamp": time.strftime("%Y%m%d%H%M%S"), "job_no": step.part if step else 0,
        "sampling_step": step.done if step else 0, "sampling_steps": step.total if step else 0,
    }  # fmt: skip
    share = step.done / step.total if step and step.total else 0.0
    eta = (step.eta_s or 0.0) if step else 0.0
    return JSONResponse({"progress": share, "eta_relative": eta, "state": state, "current_image": picture, "textinfo": None})


async def interrupt(desk: Desk, asked: Request, person: Person) -> Response:
    await run_in_threadpool(desk.jobs.stop, KIND, person)
    return JSONResponse({})


async def skip(desk: Desk, asked: Request, person: Person) -> Response:
    """Stop a job of one picture; of several A1111 would go on with the next."""
    now = await run_in_threadpool(desk.jobs.find_progress, KIND, person)
    if now is not None and now.end is None and now.step is not None and now.step.parts > 1:
        raise Trouble(say("a1111.skip", "Hearth cannot skip one picture of several. POST /sdapi/v1/interrupt stops them all."))
    return await interrupt(desk, asked, person)


async def list_models(desk: Desk, asked: Request, person: Person) -> Response:
    return JSONResponse([model_entry(each) for each in await run_in_threadpool(installed_models, desk)])


async def show_options(desk: Desk, asked: Request, person: Person) -> Response:
    return JSONResponse({"sd_model_checkpoint": public_name(current_model(desk)), **OPTIONS})


async def change_options(desk: Desk, asked: Request, person: Person, given: OverridesAsked) -> Response:
    refuse_rest(given, HARMLESS_OPTIONS)
    if given.sd_model_checkpoint is not None:
        chosen = find_checkpoint(desk, given.sd_model_checkpoint)
        desk.settings.change("paint", {}, lambda kept: {**kept, "model": chosen})
    return JSONResponse({})


def picture_request(desk: Desk, given: PaintAsked, start: Start) -> tuple[PictureRequest, tuple[int, int] | None]:
    """Return the request, and the size to scale its pictures to, if it is another one than is painted."""
    refuse_unsupported(given)
    batch = (1 if given.batch_size is None else given.batch_size) * (1 if given.n_iter is None else given.n_iter)
    checkpoint = given.override_settings.sd_model_checkpoint if given.override_settings else None
    scale = (2.0 if given.hr_scale is None else given.hr_scale) if given.enable_hr and not start.image else 1.0
    upscale = choose_scale(scale)
    request = PictureRequest(
        given.prompt or "",
        find_checkpoint(desk, checkpoint) if checkpoint else current_model(desk),
        given.negative_prompt or "",
        given.width,
        given.height,
        given.steps,
        given.cfg_scale,
        find_sampler(given.sampler_name or given.sampler_index or "", given.scheduler or ""),
        None if given.seed is None else given.seed % SEED_LIMIT,
        batch,
        start.image,
        start.mask,
        DENOISING if given.denoising_strength is None or not start.image else given.denoising_strength,
        upscale=upscale,
        enlarger=find_upscaler(desk, given.hr_upscaler or "") if upscale > 1 else "",
        hires=upscale > 1 and given.denoising_strength != 0,
        hires_strength=given.denoising_strength or HIRES_STRENGTH,
        masked_only=given.masked_only,
        masked_padding=given.inpaint_full_res_padding or 0,
        mask_blur=BLUR if given.mask_blur is None else given.mask_blur,
    )
    if given.masked_only:  # the picture keeps its own size, whatever the part is painted in
        return fit_size(desk, request)[0], None
    if upscale == 1 or not (given.width and given.height):
        return fit_size(desk, request)
    return request, find_larger((given.width, given.height), scale)


def find_sampler(name: str, schedule: str) -> str | None:
    """Return A1111's sampler and its schedule, which newer clients send apart, by the one name that Hearth has for both; None for the model's own."""
    if name.strip().lower() in AUTOMATIC:
        return None
    full = name_sampler(name, schedule)
    if full not in NAMES:
        raise NotThere(
            say(
                "a1111.sampler", "Hearth does not have the sampler {name}. GET /sdapi/v1/samplers lists those that it has.", name=full[:80]
            ),
            field="sampler_name",
        )
    return full


def find_upscaler(desk: Desk, name: str) -> str:
    """Return the enlarger of that name; the plain ones of A1111, and those in its latent space, are Hearth's plain one."""
    if not name or name in PLAIN_UPSCALERS or name.startswith("Latent"):
        return ""
    if name != STARTER_ENLARGER and name not in list_enlargers(desk.keeper.home):
        raise NotThere(
            say(
                "a1111.upscaler",
                "Hearth does not have the upscaler {name}. GET /sdapi/v1/upscalers lists those that it has.",
                name=name[:80],
            ),
            field="hr_upscaler",
        )
    return name


def find_checkpoint(desk: Desk, wanted: str) -> str:
    """Return the model of that title, with or without the ending and the hash that A1111 puts behind it."""
    name = wanted.partition(" [")[0].lower().removesuffix(ENDING)
    for each in installed_models(desk):
        if public_name(each.id).lower().removesuffix(ENDING) == name:
            return each.id
    raise no_such_model(wanted, LIST)


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
