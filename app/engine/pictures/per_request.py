"""What stands around a pipeline for one picture: which of its forms runs, what it is told, its LoRAs, its decoder, the last strokes."""

from __future__ import annotations

import inspect
from typing import Any, Final

import diffusers
import torch
from PIL import Image, ImageChops, ImageFilter

from app.engine.jobs import schedulers
from app.engine.pictures import prompt_embeddings, steps
from app.engine.pictures.final_settings import PictureSettings
from app.engine.pipelines import loader, placement
from app.engine.pipelines.families import Family
from app.sentence import Trouble, say

FEATHER_PIXELS: Final = 4
"""How far inside the mask the old picture fades into the new one."""


def make_pipeline(loaded: Any, family: Family, chosen: PictureSettings) -> Any:
    """The form of the loaded pipeline that this request asks for, around the same weights, with a scheduler of its own."""
    name = family.inpaint if chosen.mask else family.image if chosen.image else family.text
    form = getattr(diffusers, name)
    there = {**loaded.config, **loaded.components, "scheduler": _make_scheduler(loaded, chosen.request.scheduler)}
    there |= dict.fromkeys(("image_encoder", "feature_extractor", "safety_checker"))
    there |= {"add_watermarker": False, "requires_safety_checker": False}
    wanted = list(inspect.signature(form.__init__).parameters)[1:]
    pipe = form(**{name: there[name] for name in wanted if name in there})
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _make_scheduler(loaded: Any, name: str | None) -> Any:
    own = loaded.scheduler
    if name is None:
        return type(own).from_config(own.config)
    row = schedulers.by_name(name)
    return getattr(diffusers, row.class_name).from_config(own.config, **row.settings)


def make_arguments(pipe: Any, family: Family, chosen: PictureSettings) -> dict[str, Any]:
    """What the pipeline is told, as far as it listens."""
    request = chosen.request
    negative = request.negative if family.negative else ""
    if family.weights:
        spoken = prompt_embeddings.embed_prompts(pipe, request.prompt, negative)
    else:
        plain = (prompt_embeddings.strip_weights(text)[0] for text in (request.prompt, negative))
        spoken = dict(zip(("prompt", "negative_prompt"), (text or None for text in plain), strict=True))
    accepted = inspect.signature(type(pipe).__call__).parameters
    all_of_it = {
        **family.told,
        **spoken,
        "num_inference_steps": request.steps,
        "guidance_scale": request.guidance,
        "width": request.width,
        "height": request.height,
        "image": chosen.image,
        "mask_image": chosen.mask,
        "strength": request.strength if chosen.image is not None else None,
        "output_type": "latent",
    }
    return {name: value for name, value in all_of_it.items() if name in accepted and value is not None}


def apply_loras(pipe: Any, chosen: PictureSettings, worn: dict[str, str]) -> None:
    """The LoRAs of this request and no others. `worn` remembers which files are loaded, by path."""
    wanted = {each.path: each.weight for each in chosen.request.loras}
    if wanted and not hasattr(pipe, "load_lora_weights"):
        raise Trouble(say("lora.none", "This model takes no LoRAs. Leave them out, or choose SD 1.5 or SDXL."))
    for path in [path for path in worn if path not in wanted]:
        pipe.delete_adapters(worn.pop(path))
    for path in wanted:
        if path not in worn:
            name = f"lora{max((int(each[4:]) for each in worn.values()), default=0) + 1}"
            loader.add_lora(pipe, path, name)
            worn[path] = name
    weights = {worn[path]: weight for path, weight in wanted.items()}
    if chosen.few_steps:
        weights[loader.FEW_STEPS] = 1.0
    if weights:
        pipe.enable_lora()
        pipe.set_adapters(list(weights), list(weights.values()))
    elif hasattr(pipe, "get_list_adapters") and pipe.get_list_adapters():
        pipe.disable_lora()


def unpack_latents(pipe: Any, family: Family, latents: torch.Tensor, chosen: PictureSettings) -> torch.Tensor:
    return family.unpack(pipe, latents, chosen.request.height or 0, chosen.request.width or 0)


@torch.no_grad()
def decode_latents(pipe: Any, family: Family, latents: torch.Tensor, chosen: PictureSettings, exact: bool, step: int) -> Image.Image:
    vae = pipe.vae
    latents = unpack_latents(pipe, family, latents, chosen).to(placement.find_device(vae), vae.dtype)
    try:
        image = vae.decode(latents, return_dict=False)[0]
    except (RuntimeError, MemoryError) as fault:
        fault.where = "vae"  # type: ignore[union-attr]  # of all that frees memory, tiles help here first
        raise
    steps.check_decoded(image, step, exact)
    picture: Image.Image = pipe.image_processor.postprocess(image, output_type="pil")[0]
    pipe.maybe_free_model_hooks()
    return picture


def finish_picture(painted: Image.Image, chosen: PictureSettings) -> Image.Image:
    """Outside the mask not a pixel changes; enlarged by Lanczos where that was asked for."""
    if chosen.mask is not None and chosen.image is not None:
        inside = chosen.mask.filter(ImageFilter.MinFilter(2 * FEATHER_PIXELS + 1)).filter(
            ImageFilter.GaussianBlur(FEATHER_PIXELS / 2)
        )
        painted = Image.composite(painted, chosen.image, ImageChops.multiply(inside, chosen.mask))
    times = chosen.request.upscale
    if times > 1:
        painted = painted.resize((painted.width * times, painted.height * times), Image.Resampling.LANCZOS)
    return painted
