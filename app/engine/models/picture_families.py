"""The table of the families of pictures, in the order in which a file is held against them. No torch, no weights."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import Call, decoder
from app.engine.models.families import chroma, flux, flux2_klein, lumina_2, pixart_sigma, stable_diffusion, stable_diffusion_3, z_image
from app.engine.models.families.family import PictureFamily

_ALL: Final = (
    stable_diffusion.SD_1, stable_diffusion.SD_XL, pixart_sigma.FAMILY, stable_diffusion_3.FAMILY,
    flux2_klein.FAMILY, chroma.FAMILY, flux.FAMILY,  # the first two have the tensors of FLUX.1's denoisers, too
    z_image.FAMILY, lumina_2.FAMILY,
)  # fmt: skip
FAMILIES: Final[dict[str, PictureFamily]] = {each.name: each for each in _ALL}
BY_CLASS: Final = {kind: each for each in _ALL for kind in each.classes}
"""The `_class_name` of a model_index.json finds its family here."""


def list_calls(family: str, width: int, height: int) -> tuple[Call, ...]:
    """List the attention calls of the prompt, one denoising step, and the VAE."""
    return *FAMILIES[family].calls(width, height), decoder(width, height)
