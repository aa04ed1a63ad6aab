"""What three well-known models ask of a machine, for pages and tables that explain one. The catalog has the full list; compat may not ask it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from app.compat.terms import Need, Part

_CLIP_L: Final = Part("text_encoder", "text", 123_060_480)
_CLIP_G: Final = Part("text_encoder_2", "text", 694_659_840)
_VAE: Final = 83_653_863

EXAMPLES: Final[MappingProxyType[str, Need]] = MappingProxyType({
    "Dia 1.6B": Need(
        "dia-1.6b", "speech", batch=2, heads=16, kv_heads=4, head_dim=128, queries=1, keys=3072, masked=True, causal=True,
        parts=(Part("model", "speech", 1_611_160_576), Part("codec", "codec", 76_600_000)), cache_bytes=528_000_000,
    ),
    "Stable Diffusion 1.5": Need(
        "sd15", "picture", batch=2, heads=8, kv_heads=8, head_dim=40, queries=4096, keys=4096, masked=False, causal=False,
        parts=(_CLIP_L, Part("unet", "denoiser", 859_520_964), Part("vae", "vae", _VAE)), width=512, height=512,
    ),
    "Stable Diffusion XL": Need(
        "sdxl", "picture", batch=2, heads=10, kv_heads=10, head_dim=64, queries=4096, keys=4096, masked=False, causal=False,
        # Its own VAE; the mended one that Hearth fetches beside it is safe in half precision.
        parts=(_CLIP_L, _CLIP_G, Part("unet", "denoiser", 2_567_463_684), Part("vae", "vae", _VAE, half_is_safe=False)),
        width=1024, height=1024,
    ),
})  # fmt: skip
