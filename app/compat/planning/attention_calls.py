"""The attention calls that models make, by picture size or speech length: what families are put together from. Pure, no torch."""

from __future__ import annotations

from typing import Final, NamedTuple

from app.compat.planning.quickest_way import Shape

GUIDED: Final = 2
"""With guidance the model runs with and without the prompt in one batch."""
CLIP_TOKENS: Final = 77


class Call(NamedTuple):
    """One attention call. `name` says where in the model; the sizes are those of the model's config."""

    name: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    masked: bool = False
    causal: bool = False

    def shape(self, dtype: str) -> Shape:
        return Shape(*self[1:], dtype)


def unet(levels: tuple[tuple[int, int, int], ...], batch: int, width: int, height: int) -> tuple[Call, ...]:
    """List a UNet's calls, to itself and to the text at each level. `levels`: pixels per token, heads, head size."""
    found: list[Call] = []
    for pixels, heads, dim in levels:
        tokens = -(-width // pixels) * -(-height // pixels)
        found.append(Call(f"itself, {pixels} px a token", batch, heads, heads, tokens, tokens, dim))
        found.append(Call(f"text, {pixels} px a token", batch, heads, heads, tokens, CLIP_TOKENS, dim))
    return tuple(found)


def joint(batch: int, heads: int, dim: int, *, text: int, masked: bool, width: int, height: int) -> tuple[Call, ...]:
    """List the calls of transformers that attend to picture and text in one call."""
    tokens = -(-width // 16) * -(-height // 16) + text
    return (Call("picture and text", batch, heads, heads, tokens, tokens, dim, masked),)


SD15: Final = ((8, 8, 40), (16, 8, 80), (32, 8, 160), (64, 8, 160))
SDXL: Final = ((16, 10, 64), (32, 20, 64))
CLIP_L: Final = Call("prompt, CLIP-L", GUIDED, 12, 12, CLIP_TOKENS, CLIP_TOKENS, 64, causal=True)
CLIP_G: Final = Call("prompt, CLIP-G", GUIDED, 20, 20, CLIP_TOKENS, CLIP_TOKENS, 64, causal=True)
QWEN: Final = Call("prompt, Qwen3", 1, 32, 8, 512, 512, 128, masked=True)
SIZES: Final = (512, 768, 1024, 1536)


def t5(batch: int, tokens: int) -> Call:
    return Call("prompt, T5", batch, 64, 64, tokens, tokens, 64, masked=True)


def decoder(width: int, height: int) -> Call:
    """Return the call of a VAE."""
    latents = -(-width // 8) * -(-height // 8)
    return Call("VAE", 1, 1, 1, latents, latents, 512)


PROMPTS: Final = (128, 512)
CACHES: Final = (64, 256, 1024, 3072)


def speech(heads: int, kv_heads: int, head_dim: int, text: int, longest: int) -> tuple[Call, ...]:
    """List Dia's calls: its encoder, reading a voice's clip, and single steps over a growing cache. Guidance's
    second row asks nothing of the text: an empty one answers everything alike."""
    found = [Call(f"text of {rows}", 1, heads, heads, rows, rows, head_dim) for rows in (text // 4, text)]
    for rows in (each for each in PROMPTS if each <= longest):
        found.append(Call(f"a clip of {rows}", GUIDED, heads, kv_heads, rows, rows, head_dim, causal=True))
        found.append(Call(f"a clip of {rows}, text", 1, heads, heads, rows, text, head_dim))
    for keys in (each for each in CACHES if each <= longest):
        found.append(Call(f"a step over {keys}", GUIDED, heads, kv_heads, 1, keys, head_dim))
    found += [Call(f"a step, text of {keys}", 1, heads, heads, 1, keys, head_dim) for keys in (text // 4, text)]
    return tuple(found)


DIA: Final = speech(16, 4, 128, 1024, 3072)
