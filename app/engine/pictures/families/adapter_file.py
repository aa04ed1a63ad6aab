"""Load an IP-Adapter and the encoder of its picture: diffusers' own attention and projection, transformers' own encoder, open tensors only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
import transformers
from PIL import Image
from safetensors.torch import load_file

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Plan, Precision
from app.engine.models.adapters import Adapter, ImageEncoder, name_adapter
from app.engine.models.loading import weights_complete
from app.engine.models.loading.release_memory import release
from app.engine.models.model_folder import check_part
from app.engine.pictures.families import placement, seen_pixels

ENCODER: Final = "image_encoder"
_PARTS: Final = ("image_proj", "ip_adapter")
_CROSS: Final = "attn2.processor"
_FAULTS: Final = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, IndexError, ZeroDivisionError)
"""The libraries raise these for settings and weights that make no adapter."""


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    processors: Mapping[str, Any]
    """They do the UNet's attention to the prompt, by its layers' names."""
    projection: Any
    """It makes tokens of what the encoder says of the picture."""


def load_adapter(adapter: Adapter, unet: Any, dtype: torch.dtype, device: torch.device) -> LoadedAdapter:
    """Return an adapter for this UNet, which stays as it is; raise a Trouble if it was made for another, or is damaged."""
    parts: dict[str, dict[str, torch.Tensor]] = {name: {} for name in _PARTS}
    for name, tensor in load_file(adapter.path).items():
        part, _, rest = name.partition(".")
        if part in parts and rest:
            parts[part][rest] = tensor.to(dtype)
    try:
        made = unet._convert_ip_adapter_attn_to_diffusers([parts], low_cpu_mem_usage=False)
        processors = {name.removesuffix(".processor"): each for name, each in made.items() if name.endswith(_CROSS)}
        projection = unet._convert_ip_adapter_image_proj_to_diffusers(parts["image_proj"], low_cpu_mem_usage=False)
        for each in (projection, *processors.values()):
            each.to(device, dtype).requires_grad_(False)
        if 2 * len(processors) != len(parts["ip_adapter"]):
            raise ValueError("other layers")
    except _FAULTS as fault:
        raise Trouble(
            say(
                "adapter.misfit",
                "The IP-Adapter {name} was made for another model, or is damaged. Choose one that was made for this model's family.",
                name=name_adapter(adapter.path),
            )
        ) from fault
    return LoadedAdapter(processors, projection.eval())


@torch.no_grad()
def read_picture(encoder: ImageEncoder, adapter: Adapter, picture: Image.Image, plan: Plan) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what an adapter takes of a picture, and of none, on the processor in float32. The encoder leaves the memory again: it is asked once."""
    seen = _ask(_load_encoder(encoder, plan), adapter, picture)
    release()
    return seen


def _ask(encoder: Any, adapter: Adapter, picture: Image.Image) -> tuple[torch.Tensor, torch.Tensor]:
    pixels = _scale(picture, encoder.config.image_size)
    if adapter.reads == "whole":
        seen = encoder(pixels).image_embeds
        return seen, torch.zeros_like(seen)
    return tuple(encoder(each, output_hidden_states=True).hidden_states[-2] for each in (pixels, torch.zeros_like(pixels)))


def _load_encoder(encoder: ImageEncoder, plan: Plan) -> Any:
    if encoder.path.is_dir():
        check_part(encoder.path, encoder.path)
    tensors = {name: tensor for file in encoder.weights for name, tensor in load_file(file).items()}
    try:
        with torch.device("meta"):
            made: Any = transformers.CLIPVisionModelWithProjection(transformers.CLIPVisionConfig(**encoder.settings))
        held = made.state_dict()
        odd = [name for name in held.keys() & tensors.keys() if held[name].shape != tensors[name].shape]
        weights_complete.check_weights(encoder.path, held.keys() - tensors.keys(), (), odd)
        stored = torch.float16 if encoder.halves else torch.float32
        made.load_state_dict({name: tensors[name].to(stored) for name in held}, assign=True)
        embeddings = made.vision_model.embeddings
        embeddings.position_ids = torch.arange(embeddings.num_positions)[None]
    except _FAULTS as fault:
        raise Trouble(say("adapter.encoder", "The image encoder {name} is damaged. Get it again.", name=encoder.path.name)) from fault
    how = Precision(ENCODER, "text", "float16" if encoder.halves else "float32", "float32", "cpu")
    placement.place_part(ENCODER, made, replace(plan, device="cpu", runs_on="cpu", offload="none", precision=(how,)), None)
    return made.eval()


def _scale(picture: Image.Image, side: int) -> torch.Tensor:
    """Return a picture as CLIP reads it: its middle square, of so many pixels a side."""
    ratio = side / min(picture.size)
    size = max(side, round(picture.width * ratio)), max(side, round(picture.height * ratio))
    scaled = picture.convert("RGB").resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - side) // 2, (size[1] - side) // 2
    return seen_pixels.scale(scaled.crop((left, top, left + side, top + side)), (side, side), seen_pixels.CLIP)
