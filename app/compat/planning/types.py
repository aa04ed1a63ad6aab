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
"""Weights of fewer bits are packed for torch's own kernels, or by another library."""
Product = Literal["torch", "kernel", "lines"]
"""Few lines are multiplied by weights as torch does, by a kernel of Hearth's, or line by line."""
Row = Literal["calls", "graph"]
"""A card is given a row of speech call by call, or as one captured CUDA graph."""
Convolution = Literal["library", "torch"]
Role = Literal["text", "denoiser", "vae", "speech", "codec"]
Chunk = int | Literal["auto"]
"""Attention takes so many queries at a time, or as many as are chosen automatically."""
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ModelPart:
    """One part of a model, named as in its pipeline."""

    name: str
    role: Role
    parameters: int
    half_is_safe: bool = True
    """False: float16 overflows (SDXL's own VAE and FLUX's, Z-Image's transformer)."""
    linear: int | None = None
    """So many parameters are in linear layers, the only ones quantised while loading; None: nearly all."""
    wide: int = 0
    """transformers keeps so many parameters in float32 when loading float16, and bitsandbytes leaves them alone (T5's)."""
    gguf_bytes: int | None = None
    """Its GGUF file has this size, if that is known."""
    widest: int = 0
    """A voice's largest linear layer has so many parameters: what is widened or sent at a time."""
    eight: int = 0
    """Linear layers that make sound have so many parameters: they keep 8 bits where the others are packed in 4."""
    loras: int = 0
    """LoRAs beside its layers have so many parameters. They are as wide as it computes, and never quantised."""
    scales: bool = False
    """True: it stays within float16 if its layers are scaled (Z-Image's transformer), though as it is it would overflow."""


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
    """Key/value caches take so much at their longest, in two-byte numbers."""
    handed: int = 0
    """So many numbers are beside the denoiser's own at each step: a control model's, which it adds to its layers."""
    reading_bytes: int = 0
    """Models that read a picture take so much on the processor before the first step, and then leave the memory."""
    width: int = 0
    height: int = 0
    attention: str = ""
    """Its config requires this attention, for example flash_attention_2."""
    published: Quantised = "none"
    """Its weights are published in this quantisation."""
    also_published: tuple[Quantised, ...] = ()
    """The model is available in these formats as well: a GGUF file beside the plain weights."""
    impossible: tuple[tuple[Quantised, Sentence], ...] = ()
    """These quantisations are unavailable for it here, each for the reason given."""
    plain: bool = False
    """Its weights are held as they compute and where they compute: nothing widens them, sends them layer by layer or captures a row."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user chose, besides the chunk size; None is automatic."""

    gqa: Gqa | None = None
    kernels: tuple[Kernel, ...] | Kernel | None = None
    """Several may be named; () allows Hearth's own arithmetic only."""
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
    """In this dtype a voice's linear layers multiply, with sums in float32, or a UNet's transformer blocks compute; None: `compute`."""
    kept_bytes: int = 0
    """So many bytes of its layers stay on the device while the others are sent for each row."""


@dataclass(frozen=True, slots=True)
class Vae:
    slicing: bool = False
    tile_pixels: int = 0
    """A tile is so many pixels wide and high; 0: there are no tiles."""
    unfolds: bool = False
    """True: each convolution first copies every window of its input."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one attention call ran."""

    path: str
    """The seam counts calls under this name."""
    rows: int
    """It took so many queries at a time."""
    queries: int


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a field has its value, or what speaks against another option of it."""

    field: str
    sentence: Sentence
    source: str = "Hearth's rule"
    """A link, an issue number or "measured here" says where it is from."""
    asked: str = ""
    """This option was set by hand, and the sentence says what became of it."""
    slower: bool = False
    """True: jobs take longer for it, so that each one tells it."""
    fatal: bool = False
    """True: the option is wrong, broken or impossible; False: it is merely unwise."""
    overrules: bool = False
    """True: a run failed with the option, or it is unavailable, so it is taken only if there is no other, even if chosen by hand."""


@dataclass(frozen=True, slots=True)
class Rejected:
    field: str
    option: str
    objections: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    device: str
    """torch knows the device by this name."""
    dtype: Dtype
    """The model computes in this dtype; `precision` has each part's."""
    score_dtype: Dtype | None
    """None leaves scores in the kernel's own precision."""
    gqa: Gqa
    chunk_q: Chunk
    """The plan takes so many queries at a time; AUTO: as many as free memory allows at each call, within `budget_bytes`."""
    chunk_most: int | None
    """Memory ran out in an earlier run, so that at most so many queries are taken at a time; None: it never did."""
    chunk_k: int | None
    """So many keys are taken at a time with a running maximum; None: they are split only if one row of scores is too large."""
    budget_bytes: int
    """The scores of one call may take so many bytes."""
    contiguous: bool
    explicit_mask: bool
    """True: the causal mask is passed as a tensor."""
    expand_mask: bool
    pad_value: bool
    pad_heads: bool
    """True: long calls' heads are padded to a size that Metal's prefill kernel takes."""
    zero_masked_rows: bool
    kernels: tuple[Kernel, ...]
    """These torch kernels are allowed, best first; empty: own arithmetic only. On Metal "math" is torch's attention of any kind."""
    ways: tuple[tuple[Shape, Way], ...]
    """These are the fastest ways for the shapes measured here; a rule decides for all others."""
    precision: tuple[Precision, ...]
    offload: Offload
    vae: Vae
    quantised: Quantised
    product: Product
    row: Row
    attention: str
    """from_pretrained is given this attention: sdpa."""
    convolution: Convolution
    """Either the card's library (cuDNN, MIOpen) computes convolutions, or torch itself."""
    channels_last: bool
    """True: convolutions that compute in `dtype` hold their weights channels last."""
    environment: tuple[tuple[str, str], ...]
    """These environment variables are set before torch is imported."""
    because: tuple[Reason, ...]
    """Each field above has one, in their order."""
    rejected: tuple[Rejected, ...] = ()
    warnings: tuple[Reason, ...] = ()
    retired: tuple[Reason, ...] = ()
    """This machine's self-test disproved these known defects."""
    runs_on: str = "cpu"
    """The tensors are there: on `device`, or on the CPU on a pretended machine."""
    native_right: bool = False
    """True: heads are folded for speed, though torch's grouped heads are correct here: short calls may use them."""
    path: Path | None = None
    """On Metal this plan is for this kernel; it is None elsewhere."""
    others: tuple[Plan, ...] = ()
    """On Metal these are the same plan for calls that other kernels take."""

    def of(self, role: Role) -> Precision | None:
        return next((each for each in self.precision if each.role == role), None)
