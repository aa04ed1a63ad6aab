"""Formulas for memory in bytes: weights, scores, caches, a picture's decoding; for planning and forecasts."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from app.compat.machine.hardware import Hardware
from app.compat.planning.types import AUTO, Dtype, Kernel, ModelPart, Need, Offload, Path, Plan, Precision, Quantised, Role, Vae

BYTES: Final[dict[Dtype, int]] = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
BYTES_PER_PARAMETER: Final[dict[Quantised, float]] = {
    # Packed numbers and their scales; GGUF as Q8_0, the one that is correct on every device.
    # Of a voice with 4 bits, what runs once a part, a fifth, has 8; a group of 32 has two numbers more.
    "int8": 1.0, "int4": 0.7,
    "awq": 0.56, "bnb-nf4": 0.56, "bnb-int8": 1.0, "torchao-int8": 1.0, "gguf": 1.0625,
}  # fmt: skip
PUBLISHED: Final = frozenset({"awq", "gguf"})
"""These formats are published quantised almost entirely; the others quantise linear layers only, while loading."""
_QUANTISED_ROLES: Final[dict[Quantised, tuple[Role, ...]]] = {
    # diffusers reads only the denoiser from a GGUF file; torch's own kernels are quick with few lines at a time, as a voice has them.
    "gguf": ("denoiser",), "int8": ("speech",), "int4": ("speech",),
}  # fmt: skip
MIB: Final = 1 << 20
GIB: Final = 1 << 30

TIGHT: Final = 0.85
"""Above this share of the free memory other programs slow down. A plan passes it only where no leaner way is left."""
SCRATCH_BYTES: Final = {"attention": 64 * MIB, "speech": 256 * MIB, "picture": 512 * MIB}
"""This estimates one step's activations and the smallest score budget; forecast.py learns the true value."""
SCORES_AT_MOST: Final = GIB
SCORES_AT_LEAST: Final = 16 * MIB
FUSED: Final = frozenset({"flash", "efficient", "cudnn"})
"""These kernels never store all scores."""
STREAMING: Final[frozenset[Path]] = frozenset({"vector", "prefill"})
"""These of Metal's kernels never store all scores, though all of Metal's go by the name of "math"."""
WORKSPACE_BYTES: Final = {"cpu": 16 * MIB}
"""So many bytes of scores are computed at once where nothing else is asked for. Tiles of this size are the fastest: on a CPU one should stay in cache
(in bfloat16 14.4 ms at 16 MiB, 20.8 at 48)."""
WORKSPACE_ELSEWHERE_BYTES: Final = 64 * MIB
COPIES_OF_SCORES: Final = 3
"""At the peak so many copies are alive: scores, softmax, one temporary."""
VAE_WORK: Final = 2200
"""Decoding one pixel on a card takes so many bytes for each byte of the dtype (InvokeAI's rule; encoding takes half)."""
VAE_WORK_ON_PROCESSOR: Final = 4 * 256
"""There no library takes memory of its own: four copies of the widest layer at full size are alive, before its norm, after it, activated, and as
oneDNN orders it. SD 1.5, SDXL, FLUX and Z-Image have the same layers there."""
UNFOLDED: Final = 9 * 256
"""The windows of a VAE's widest convolution at full size have so many numbers for each pixel, all of which torch's own copies first."""
TILE_PIXELS: Final = 512
SMALLEST_TILE_PIXELS: Final = 256


def scores_bytes(batch: int, heads: int, queries: int, keys: int, dtype: Dtype) -> int:
    return batch * heads * queries * keys * BYTES[dtype]


def workspace_bytes(device: str) -> int:
    return WORKSPACE_BYTES.get(device, WORKSPACE_ELSEWHERE_BYTES)


def keeps_no_scores(kernels: Collection[Kernel], path: Path | None) -> bool:
    """Return whether torch computes this attention without storing all scores."""
    return bool(FUSED & set(kernels)) or bool(kernels and path in STREAMING)


def vae_bytes(width: int, height: int, dtype: Dtype, vae: Vae = Vae(), device: str = "cuda") -> int:  # noqa: B008 - frozen
    """Return the working memory to decode one picture, at once or in tiles. On a processor the C library still holds what the steps, and smaller layers,
    gave back."""
    if vae.tile_pixels:
        width, height = min(width, vae.tile_pixels), min(height, vae.tile_pixels)
    work, left = (VAE_WORK_ON_PROCESSOR, SCRATCH_BYTES["picture"]) if device == "cpu" else (VAE_WORK, 0)
    return width * height * BYTES[dtype] * (work + UNFOLDED * vae.unfolds) + left


def part_bytes(part: ModelPart, precision: Precision, quantised: Quantised) -> int:
    """Return the bytes of one part's weights, with those of its LoRAs: as narrow as the layers that they sit on, unless those are quantised."""
    narrow = quantised == "none" or not is_quantised(part, quantised)
    return _own_bytes(part, precision, quantised) + part.loras * BYTES[precision.storage if narrow else precision.compute]


def _own_bytes(part: ModelPart, precision: Precision, quantised: Quantised) -> int:
    """Return the bytes of one part's own weights. Only the large parts are quantised; a VAE and a codec are not."""
    half = precision.storage == precision.compute == "float16"
    widened = part.wide * (BYTES["float32"] - BYTES["float16"]) if half else 0
    if quantised == "none" or not is_quantised(part, quantised):
        # With storage narrower than compute, these stay in the compute dtype: their layers read their own dtype.
        whole = part.wide * max(0, BYTES[precision.compute] - BYTES[precision.storage])
        if part.role == "denoiser" and precision.linear is not None:
            whole -= (part.linear or 0) * (BYTES[precision.storage] - BYTES[precision.linear])
        return part.parameters * BYTES[precision.storage] + (widened or whole)
    if quantised == "gguf" and part.gguf_bytes is not None:
        return part.gguf_bytes
    if quantised in PUBLISHED:
        return int(part.parameters * BYTES_PER_PARAMETER[quantised])
    small = part.parameters if part.linear is None else part.linear
    if quantised.startswith("bnb"):
        small -= part.wide
    else:
        widened = 0
    # Unquantised weights have the compute dtype; speech is loaded in its storage dtype.
    rest = (part.parameters - small) * BYTES[precision.storage if part.role == "speech" else precision.compute]
    if quantised == "int4":
        widened += int(part.eight * (BYTES_PER_PARAMETER["int8"] - BYTES_PER_PARAMETER["int4"]))
    return int(small * BYTES_PER_PARAMETER[quantised]) + rest + widened


def is_quantised(part: ModelPart, quantised: Quantised) -> bool:
    return part.role in _QUANTISED_ROLES.get(quantised, ("denoiser", "text", "speech"))


def resident_bytes(need: Need, precision: tuple[Precision, ...], quantised: Quantised, offload: Offload, part: ModelPart) -> int:
    """Return the bytes of weights on the device while `part` runs."""
    its = next(how for each, how in zip(need.parts, precision, strict=True) if each is part)
    if offload == "none":
        beside = (pair for pair in zip(need.parts, precision, strict=True) if _share_memory(pair[1].device, its.device))
        return sum(part_bytes(each, how, quantised) for each, how in beside)
    size = part_bytes(part, its, quantised)
    if offload == "model":
        return size
    if part.role == "speech" and quantised == "none":
        # Embeddings and norms stay, and so do some layers; the others are there one at a time.
        small = part.parameters - (part.parameters if part.linear is None else part.linear)
        return min(size, (small + part.widest) * BYTES[its.storage] + its.kept_bytes)
    # A group is about a tenth of a model; one layer, loaded and dropped, is smaller than this.
    return min(size, size // 10 + its.kept_bytes) if offload == "group" else min(size, 64 * MIB)


def needed_bytes(need: Need, precision: tuple[Precision, ...], quantised: Quantised, offload: Offload, vae: Vae) -> int:
    """Return the most memory that the device holds at once, with the least for scores."""
    return _peak(need, precision, quantised, offload, vae, SCORES_AT_LEAST)


def _peak(need: Need, precision: tuple[Precision, ...], quantised: Quantised, offload: Offload, vae: Vae, scores: int) -> int:
    most = scores if not need.parts else 0
    for part, how in zip(need.parts, precision, strict=True):
        if how.device == "cpu" and not all(_share_memory(how.device, each.device) for each in precision):
            continue
        decoding = vae_bytes(need.width, need.height, how.compute, vae, how.device) if part.role == "vae" else 0
        work = max(decoding, work_bytes(need, part, how, quantised) + scores)
        meanwhile = sum(
            work_bytes(need, other, its, quantised)
            for other, its in zip(need.parts, precision, strict=True)
            if its.device != how.device and _share_memory(its.device, how.device)
        )
        most = max(most, resident_bytes(need, precision, quantised, offload, part) + work + meanwhile)
    if need.reading_bytes and all(_share_memory("cpu", how.device) for how in precision):
        loaded = sum(part_bytes(part, how, quantised) for part, how in zip(need.parts, precision, strict=True) if offload == "none")
        most = max(most, loaded + need.reading_bytes)
    return most


def _share_memory(one: str, other: str) -> bool:
    """Return whether two devices compute in one memory: Metal's is the computer's own."""
    return one == other or {one, other} == {"cpu", "mps"}


def work_bytes(need: Need, part: ModelPart, how: Precision, quantised: Quantised) -> int:
    """Return the working memory and caches of one part beside its attention's scores. A VAE's attention comes long before its
    largest layers."""
    if part.role == "vae":
        return 0
    work = SCRATCH_BYTES[need.kind]
    if part.role == "denoiser":
        work += need.handed * BYTES[how.compute]
    if part.role == "speech":
        work += need.cache_bytes * BYTES[how.compute] // 2
        if quantised == "none" and how.storage != (how.linear or how.compute):
            work += part.widest * BYTES[how.compute]  # the buffer in which layers are widened
    return work


def weights_bytes(need: Need, plan: Plan) -> int:
    """Return the bytes of all weights, wherever they are."""
    return sum(part_bytes(part, how, plan.quantised) for part, how in zip(need.parts, plan.precision, strict=True))


def held_bytes(need: Need, plan: Plan) -> int:
    """Return the bytes of weights that stay on the device between runs."""
    if plan.offload == "none":
        here = (pair for pair in zip(need.parts, plan.precision, strict=True) if _share_memory(pair[1].device, plan.device))
        return sum(part_bytes(part, how, plan.quantised) for part, how in here)
    # Of a picture nothing stays; of a voice all but its codec, or the layers that are not sent.
    voice = [pair for pair in zip(need.parts, plan.precision, strict=True) if pair[0].role == "speech"]
    return sum(part_bytes(part, how, plan.quantised) if plan.offload == "model" else how.kept_bytes for part, how in voice)


def sent_bytes(need: Need, plan: Plan) -> int:
    """Return the bytes of weights that go to the device anew at each step: where layers take turns there, those that do not stay."""
    if plan.offload not in ("group", "sequential"):
        return 0
    stepped = (pair for pair in zip(need.parts, plan.precision, strict=True) if pair[0].role in ("denoiser", "speech"))
    return sum(max(0, part_bytes(part, how, plan.quantised) - how.kept_bytes) for part, how in stepped)


def peak_bytes(need: Need, plan: Plan) -> int:
    """Forecast the peak: weights, caches and working memory, with scores at the plan's limit."""
    rows = need.queries if plan.chunk_q == AUTO else min(need.queries, plan.chunk_q)
    rows, keys = min(rows, plan.chunk_most or rows), min(need.keys, plan.chunk_k or need.keys)
    scores = scores_bytes(need.batch, need.heads, rows, keys, plan.score_dtype or plan.dtype) * COPIES_OF_SCORES
    # A chunk set by hand is used whatever is free; fused kernels store no scores and need no more than the rest.
    kept = plan.chunk_q != AUTO and not keeps_no_scores(plan.kernels, plan.path)
    # A picture's steps hold as much as the whole budget in other ways, such as packed weights.
    most = plan.budget_bytes if plan.device == "mps" or need.kind == "picture" else min(plan.budget_bytes, workspace_bytes(plan.device))
    scores = scores if kept else min(scores, most)
    return _peak(need, plan.precision, plan.quantised, plan.offload, plan.vae, scores)


def free_bytes(hardware: Hardware) -> int:
    """Return the memory to plan with; assume a small machine if it is unknown."""
    return hardware.free_bytes or hardware.limit_bytes or hardware.memory_bytes or 4 * GIB


def usable_bytes(hardware: Hardware) -> int:
    """Return the memory within which a plan prefers the better way: what is free, less a share for other programs. So more
    free memory never makes a plan that fits into one that is tight."""
    return int(TIGHT * free_bytes(hardware))


def too_much(needed: int, hardware: Hardware) -> dict[str, float]:
    """Return what is needed, which is too much, and what is free in GiB, as sentences name them."""
    most, free = round_apart(needed, free_bytes(hardware))
    return {"gib": most, "free": free}


def round_apart(needed: int, free: int) -> tuple[float, float]:
    """Round what is needed up and what is free down, in GiB: never "needs 10.8, but only 10.8 are free"."""
    return math.ceil(needed * 10 / GIB) / 10, math.floor(free * 10 / GIB) / 10


def gib(size_bytes: int) -> float:
    return round(size_bytes / GIB, 1)
