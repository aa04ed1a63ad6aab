"""The types of a plan: what a model needs, what the user chose, what was decided. decide.py decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.base.sentence import Sentence
from app.compat.planning.quickest_way import Shape, Way

Dtype = Literal["float64", "float32", "float16", "bfloat16"]
HALVES: Final[tuple[Dtype, ...]] = ("float16", "bfloat16")
Gqa = Literal["native", "folded", "expanded"]
Kernel = Literal["flash", "cudnn", "efficient", "math"]
Path = Literal["vector", "prefill", "graph"]
"""One of torch's Metal kernels takes a call: the one for few queries, the one for many, or a graph of products."""
Offload = Literal["none", "model", "group", "sequential"]
Quantised = Literal["none", "int8", "int4", "awq", "bnb-nf4", "bnb-int8", "torchao-int8", "gguf"]
"""Weights of fewer bits: packed for torch's own kernels, or by another library."""
Product = Literal["torch", "kernel", "lines"]
"""Few lines are multiplied by weights as torch does, by a kernel of Hearth's, or line by line."""
Row = Literal["calls", "graph"]
"""A card is given a row of speech call by call, or as one captured CUDA graph."""
Convolution = Literal["library", "torch"]
Role = Literal["text", "denoiser", "vae", "speech", "codec"]
Chunk = int | Literal["auto"]
"""Queries that attention takes at a time, or automatic."""
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One part of a model, named as in its pipeline."""

    name: str
    role: Role
    parameters: int
    half_is_safe: bool = True
    """False if float16 overflows (SDXL's own VAE and FLUX's, Z-Image's transformer)."""
    linear: int | None = None
    """Parameters in linear layers, the only ones quantised while loading; None: nearly all."""
    wide: int = 0
    """Parameters that transformers keeps in float32 when loading float16, and bitsandbytes leaves alone (T5's)."""
    gguf_bytes: int | None = None
    """Size of its GGUF file, if known."""
    widest: int = 0
    """Parameters of its largest linear layer, for a voice: what is widened or sent at a time."""
    eight: int = 0
    """Parameters in linear layers that have 8 bits where the others are packed in 4: what makes sound."""
    scales: bool = False
    """Whether it stays within float16 if its layers are scaled (Z-Image's transformer), though as it is it would overflow."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a model needs: its widest attention, its parts, its picture. Without arguments: any attention."""

    model: str = ""
    kind: Literal["attention", "speech", "picture"] = "attention"
    batch: int = 1
    heads: int = 8
    kv_heads: int = 8
    head_dim: int = 64
    queries: int = 4096
    keys: int = 4096
    masked: bool = True
    causal: bool = True
    parts: tuple[ModelPart, ...] = ()
    cache_bytes: int = 0
    """Key/value caches at their longest, in two-byte numbers."""
    reading_bytes: int = 0
    """What models take on the processor that read a picture before the first step, and then leave the memory."""
    width: int = 0
    height: int = 0
    attention: str = ""
    """The attention that its config requires, for example flash_attention_2."""
    published: Quantised = "none"
    """Quantisation in which its weights are published."""
    also_published: tuple[Quantised, ...] = ()
    """Other available formats of the model: a GGUF file beside the plain weights."""
    impossible: tuple[tuple[Quantised, Sentence], ...] = ()
    """Quantisations unavailable for it here, each with the reason."""
    plain: bool = False
    """Its weights are held as they compute and where they compute: nothing widens them, sends them layer by layer or captures a row."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user chose, besides the chunk size; None is automatic."""

    gqa: Gqa | None = None
    kernels: tuple[Kernel, ...] | Kernel | None = None
    """One, several, or () for Hearth's own arithmetic only."""
    dtype: Dtype | None = None
    offload: Offload | None = None
    quantised: Quantised | None = None


@dataclass(frozen=True, slots=True)
class Precision:
    """How one part's numbers are stored, computed with, and where."""

    part: str
    role: Role
    storage: Dtype
    compute: Dtype
    device: str
    linear: Dtype | None = None
    """Dtype in which a voice's linear layers multiply, with sums in float32, or a UNet's transformer blocks compute; None: `compute`."""
    kept_bytes: int = 0
    """Bytes of its layers that stay on the device while the others are sent for each row."""


@dataclass(frozen=True, slots=True)
class Vae:
    slicing: bool = False
    tile_pixels: int = 0
    """Tile size; 0: no tiles."""
    unfolds: bool = False
    """Whether each convolution first copies every window of its input."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one attention call ran."""

    path: str
    """Its path, as the seam counts it."""
    rows: int
    """Queries at a time."""
    queries: int


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a field has its value, or what speaks against another option of it."""

    field: str
    sentence: Sentence
    source: str = "Hearth's rule"
    """A link, an issue number, or "measured here"."""
    asked: str = ""
    """The option set by hand, where this says what became of it."""
    slower: bool = False
    """Whether jobs take longer for it, so that each one tells it."""
    fatal: bool = False
    """Whether the option is wrong, broken or impossible; else merely unwise."""
    overrules: bool = False
    """Whether a run failed with the option, or it is unavailable: it is taken only if there is no other, even if chosen by hand."""


@dataclass(frozen=True, slots=True)
class Rejected:
    field: str
    option: str
    objections: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    device: str
    """torch's name of the device."""
    dtype: Dtype
    """The model's compute dtype; `precision` has each part's."""
    score_dtype: Dtype | None
    """None: scores in the kernel's own precision."""
    gqa: Gqa
    chunk_q: Chunk
    """Queries at a time as planned; AUTO: from free memory at each call, within `budget_bytes`."""
    chunk_most: int | None
    """Most queries at a time, if memory ran out in an earlier run; None if it never did."""
    chunk_k: int | None
    """Keys at a time with a running maximum; None: split only if one row of scores is too large."""
    budget_bytes: int
    """Bytes that the scores of one call may take."""
    contiguous: bool
    explicit_mask: bool
    """Whether to pass the causal mask as a tensor."""
    expand_mask: bool
    pad_value: bool
    pad_heads: bool
    """Whether long calls' heads are padded to a size that Metal's prefill kernel takes."""
    zero_masked_rows: bool
    kernels: tuple[Kernel, ...]
    """Allowed torch kernels, best first; empty: own arithmetic only. On Metal "math" is torch's attention of any
    kind."""
    ways: tuple[tuple[Shape, Way], ...]
    """The fastest way for each shape measured here; a rule decides for all others."""
    precision: tuple[Precision, ...]
    offload: Offload
    vae: Vae
    quantised: Quantised
    product: Product
    row: Row
    attention: str
    """Attention for from_pretrained: sdpa."""
    convolution: Convolution
    """Whether the card's library (cuDNN, MIOpen) computes convolutions, or torch itself."""
    environment: tuple[tuple[str, str], ...]
    """Environment variables to set before torch is imported."""
    because: tuple[Reason, ...]
    """One for each field above, in their order."""
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[Reason, ...] = ()
    retired: tuple[Reason, ...] = ()
    """Known defects that this machine's self-test disproved."""
    runs_on: str = "cpu"
    """The tensors are there: on `device`, or on the CPU on a pretended machine."""
    native_right: bool = False
    """Folded for speed, though torch's grouped heads are correct here: short calls may use them."""
    path: Path | None = None
    """On Metal this plan is for this kernel; it is None elsewhere."""
    others: tuple[Plan, ...] = ()
    """On Metal these are the same plan for calls that other kernels take."""

    def of(self, role: Role) -> Precision | None:
        return next((each for each in self.precision if each.role == role), None)
