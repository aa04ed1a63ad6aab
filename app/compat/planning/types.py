"""The terms of a plan: what a model needs, what a person chose, what was decided. Types only; deciding is decide.py's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.compat.planning.quickest_way import Shape, Way
from app.sentence import Sentence

Dtype = Literal["float64", "float32", "float16", "bfloat16"]
Gqa = Literal["native", "folded", "expanded"]
Kernel = Literal["flash", "cudnn", "efficient", "math"]
Offload = Literal["none", "model", "group", "sequential"]
Quantised = Literal["none", "awq", "bnb-nf4", "bnb-int8", "torchao-int8", "gguf"]
Role = Literal["text", "denoiser", "vae", "speech", "codec"]
Chunk = int | Literal["auto"]
"""Queries that attention takes at a time, or left to Hearth."""
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One part of a model, under the name its pipeline gives it."""

    name: str
    role: Role
    parameters: int
    half_is_safe: bool = True
    """False where float16 overflows (SDXL's own VAE, Z-Image's transformer)."""
    linear: int | None = None
    """How many of them lie in linear layers, the only ones that are made smaller while loading; None: nearly all."""
    wide: int = 0
    """How many of them transformers keeps in float32 where float16 is asked for, and bitsandbytes leaves alone (T5's)."""
    gguf_bytes: int | None = None
    """How large its GGUF file is, where it is known."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a model asks of a machine: its widest attention, its parts, its picture. Without arguments: any attention."""

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
    width: int = 0
    height: int = 0
    attention: str = ""
    """The attention its config insists on, for example flash_attention_2."""
    published: Quantised = "none"
    """How its weights are published."""
    also_published: tuple[Quantised, ...] = ()
    """Other forms to be had of the same model: a GGUF file beside the plain weights."""
    impossible: tuple[tuple[Quantised, Sentence], ...] = ()
    """Ways to make its weights smaller that are not to be had here, each with the reason."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The person's will; None is automatic."""

    chunk: Chunk = AUTO
    gqa: Gqa | None = None
    kernels: tuple[Kernel, ...] | Kernel | None = None
    """One, several, or () for Hearth's own arithmetic alone."""
    dtype: Dtype | None = None
    offload: Offload | None = None
    quantised: Quantised | None = None


@dataclass(frozen=True, slots=True)
class Precision:
    """How one part's numbers are kept, computed with, and where."""

    part: str
    role: Role
    storage: Dtype
    compute: Dtype
    device: str


@dataclass(frozen=True, slots=True)
class Vae:
    slicing: bool = False
    tile_pixels: int = 0
    """0: whole."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one call of attention went."""

    path: str
    """In words, as the seam counts it."""
    rows: int
    """Queries at a time."""
    queries: int


@dataclass(frozen=True, slots=True)
class Reason:
    field: str
    sentence: Sentence
    source: str = ""
    """A link, an issue number, or "measured here"."""


@dataclass(frozen=True, slots=True)
class Rejected:
    field: str
    option: str
    objections: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    device: str
    """What torch calls it."""
    dtype: Dtype
    """What the model computes in; `precision` says it part by part."""
    score_dtype: Dtype | None
    """None: scores as the kernel keeps them."""
    gqa: Gqa
    chunk_q: Chunk
    """Queries at a time as planned; AUTO: from free memory at each call, within `budget_bytes`."""
    chunk_most: int | None
    """The most that attention may take at a time since memory ran out in an earlier run; None: it never did."""
    chunk_k: int | None
    """Keys at a time with a running maximum; None: only where one row of scores is too large."""
    budget_bytes: int
    """What the scores of one call may take."""
    contiguous: bool
    explicit_mask: bool
    """Causal as a mask tensor."""
    expand_mask: bool
    pad_value: bool
    zero_masked_rows: bool
    kernels: tuple[Kernel, ...]
    """Which of torch's kernels may run, best first; empty: Hearth's own arithmetic only. On Metal "math" is torch's own
    attention, whatever it is made of."""
    ways: tuple[tuple[Shape, Way], ...]
    """The quickest way for each shape that was measured here; for all others a rule decides."""
    precision: tuple[Precision, ...]
    offload: Offload
    vae: Vae
    quantised: Quantised
    attention: str
    """What from_pretrained is told: sdpa."""
    environment: tuple[tuple[str, str], ...]
    """To set before torch is imported."""
    because: tuple[Reason, ...]
    """One for each field above, in their order."""
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[Reason, ...] = ()
    retired: tuple[Reason, ...] = ()
    """Known defects that this machine was seen not to have, so that they no longer count."""
    runs_on: str = "cpu"
    """Where the tensors are: `device`, or on a pretended machine the processor."""
    native_right: bool = False
    """Folded because that is quicker, not because torch's own grouped heads go wrong here: short calls may go natively."""

    def of(self, role: Role) -> Precision | None:
        return next((each for each in self.precision if each.role == role), None)
