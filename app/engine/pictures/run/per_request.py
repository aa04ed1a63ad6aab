"""Adapt a loaded pipeline to one request: pipeline class, call arguments, decoding, compositing."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import diffusers
import torch
from PIL import Image

from app.engine.jobs import schedulers
from app.engine.models.families.family import PictureFamily
from app.engine.pictures.families import placement
from app.engine.pictures.families.unpack import UNPACK
from app.engine.pictures.run import prompt_embeddings, steps
from app.engine.pictures.run.active_embeddings import ActiveEmbeddings
from app.engine.pictures.run.final_settings import PictureSettings
from app.engine.pictures.run.masked_part import Surroundings
from app.engine.pictures.run.tiny_vae import TinyVae


def make_pipeline(loaded: Any, family: PictureFamily, settings: PictureSettings) -> Any:
    """Build the pipeline class that the request needs from the loaded weights, with a new scheduler."""
    name = family.inpaint_class if settings.mask else family.image_class if settings.image else family.text_class
    pipeline_class = getattr(diffusers, name)
    available = {**loaded.config, **loaded.components, "scheduler": _make_scheduler(loaded, settings.request.scheduler)}
    available |= dict.fromkeys(("image_encoder", "feature_extractor", "safety_checker"))
    available |= {"add_watermarker": False, "requires_safety_checker": False}
    wanted = list(inspect.signature(pipeline_class.__init__).parameters)[1:]
    pipe = pipeline_class(**{name: available[name] for name in wanted if name in available})
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _make_scheduler(loaded: Any, name: str | None) -> Any:
    own = loaded.scheduler
    if name is None:
        return type(own).from_config(own.config)
    row = schedulers.find_scheduler(name)
    return getattr(diffusers, row.class_name).from_config(own.config, **row.settings)


def make_arguments(
    pipe: Any,
    family: PictureFamily,
    settings: PictureSettings,
    kept: prompt_embeddings.KeptEmbeddings,
    pictures: Sequence[int],
    words: ActiveEmbeddings,
) -> dict[str, Any]:
    """Return the arguments of the pipeline's call for these pictures of the batch, without those that it does not take."""
    request = settings.request
    kept.keep(pipe)
    own = [words.put_into(settings.prompts[index]) for index in pictures]
    negative = words.put_into(settings.negative) if family.negative_prompts else ""
    prompt, count = own[0], len(own)
    prompts: dict[str, Any]
    if len(set(own)) > 1:  # a starter's
        prompts, count = {"prompt": own}, 1
    elif family.prompt_weights:
        prompts = prompt_embeddings.embed_prompts(pipe, prompt, negative, kept)
    else:
        plain = (prompt_embeddings.strip_weights(text)[0] for text in (prompt, negative))
        prompts = dict(zip(("prompt", "negative_prompt"), (text or None for text in plain), strict=True))
    accepted = inspect.signature(type(pipe).__call__).parameters
    arguments = {
        **family.call_arguments,
        **_name_text_tokens(pipe, family),
        **prompts,
        "num_images_per_prompt": count if count > 1 else None,
        "num_inference_steps": request.steps,
        "guidance_scale": request.guidance,
        "guidance_rescale": settings.guidance_rescale or None,
        "width": request.width,
        "height": request.height,
        "image": settings.image,
        "mask_image": settings.mask,
        "strength": request.strength if settings.image is not None else None,
        "output_type": "latent",
    }
    return {name: value for name, value in arguments.items() if name in accepted and value is not None}


def _name_text_tokens(pipe: Any, family: PictureFamily) -> dict[str, int]:
    """Return how much text models read that take guidance as a number."""
    if family.numbered and getattr(pipe, family.denoiser).config.guidance_embeds:
        return {"max_sequence_length": family.numbered.text_tokens}
    return {}


def unpack_latents(pipe: Any, family: PictureFamily, latents: torch.Tensor, settings: PictureSettings) -> torch.Tensor:
    """Convert the denoiser's latents to the VAE's."""
    return UNPACK[family.unpack](pipe, latents, settings.request.height or 0, settings.request.width or 0)


@torch.no_grad()
def decode_latents(
    pipe: Any,
    family: PictureFamily,
    latents: torch.Tensor,
    settings: PictureSettings,
    *,
    exact: bool,
    step: int,
    tiny: TinyVae | None = None,
) -> Image.Image:
    """Decode with the VAE, or for Quicker's "much" with a tiny one, and check the result; `exact` says that a black picture is no rounding error."""
    vae = pipe.vae
    latents = unpack_latents(pipe, family, latents, settings).to(placement.find_device(vae), vae.dtype)
    try:
        small = tiny if settings.request.quicker == "much" else None
        image = vae.decode(latents, return_dict=False)[0] if small is None else small.decode(latents, vae)
    except (RuntimeError, MemoryError) as fault:
        fault.where = "vae"  # type: ignore[union-attr]  # here tiles save the most memory
        raise
    steps.check_decoded(image, step, exact)
    picture: Image.Image = pipe.image_processor.postprocess(image, output_type="pil")[0]
    pipe.maybe_free_model_hooks()
    return picture


def restore_surroundings(painted: Image.Image, settings: PictureSettings) -> Image.Image:
    """Restore the original pixels outside the mask."""
    if settings.mask is None or settings.image is None:
        return painted
    around = settings.around or Surroundings(settings.image, settings.mask, (0, 0, *settings.image.size))
    return around.paste(painted, settings.request.mask_blur)
