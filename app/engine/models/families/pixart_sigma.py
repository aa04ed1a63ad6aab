"""PixArt-Sigma: a small transformer behind a large text encoder."""

from __future__ import annotations

from typing import Final

from app.compat.planning.attention_calls import GUIDED, Call, t5
from app.engine.models.families.family import T5, T5_WORDS, VAE, PictureFamily


def _list_calls(width: int, height: int) -> tuple[Call, ...]:
    tokens = -(-width // 16) * -(-height // 16)
    itself, text = Call("itself", GUIDED, 16, 16, tokens, tokens, 72), Call("text", GUIDED, 16, 16, tokens, 300, 72, masked=True)
    return t5(GUIDED, 300), itself, text


FAMILY: Final = PictureFamily(
    "pixart-sigma", "PixArt-Sigma", "PixArt", "pixart-sigma", "PixArtSigmaPipeline",
    {"text_encoder": T5, "tokenizer": T5_WORDS, "transformer": ("PixArtTransformer2DModel", "Transformer2DModel"), "vae": VAE},
    _list_calls, unpack="scale", flow_matching=False,
    outer_share=0.04,  # of its multiplications, as those below (docs/speed-pictures.md)
    call_arguments={"use_resolution_binning": False, "clean_caption": False}, unsafe_in_half=("vae",),
)  # fmt: skip
