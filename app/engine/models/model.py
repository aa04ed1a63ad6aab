"""Describe a model before it is loaded: source, parts, attention, settings. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from app.base.sentence import Sentence, say
from app.compat.planning.memory_formulas import BYTES
from app.compat.planning.types import ModelPart, Need, Quantised
from app.engine.jobs.request import KindName
from app.engine.models.model_names import word_name
from app.engine.models.painted_tiles import find_larger, find_tile
from app.engine.models.picture_families import FAMILIES as PICTURES
from app.engine.models.voice_families import FAMILIES as VOICES

ModelKind = Literal["speech", "picture", "hearing", "seeing", "enlarging"]
"""A model is for a kind of job, for hearing what was said, for reading pictures for others, or for making them larger."""
GGUF_ALONE = say("quantised.gguf-alone", "The weights are in a GGUF file, and are used as they are there.")
FROM_FOLDERS: tuple[Quantised, ...] = ("bnb-nf4", "bnb-int8", "awq")
"""Libraries make these while they load a folder, and not of a single file."""
GUIDED_ROWS = 2
"""With guidance each step runs the model on two rows at once: with the prompt and without."""
SMALL_PARAMETERS = 50_000_000
"""Below this a model's kernels end before a second thread wakes up, and Python between them takes as long as they do."""
FEW_STEPS = "few-steps"
"""With a companion of this name, a LoRA, a model needs only 4 to 8 steps. It is loaded along, and published in half precision."""
NOT_NEEDED = ("*.bin", "*.ckpt", "*.pt", "*.pth", "*.msgpack", "*.onnx*", "*.h5", "*.py", "*.pkl")
"""Nobody downloads or reads these: pickles, other frameworks, code."""


@dataclass(frozen=True, slots=True)
class Attention:
    """The widest attention of a model. For pictures the number of tokens follows from the size."""

    heads: int
    kv_heads: int
    head_dim: int
    pixels_a_token: int = 0
    """A token stands for a square of pixels with this side; 0: it is no picture."""
    text_tokens: int = 0
    """So many tokens of text are in the same attention (joint attention); for speech it is the encoder's limit."""
    keys: int = 0
    """There are so many keys, if that differs from the number of queries."""
    masked: bool = False
    causal: bool = True
    """CLIP's and Qwen's text encoders are causal."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a model's makers recommend."""

    steps: int = 0
    guidance: float = 0.0
    scheduler: str = ""
    """jobs/schedulers.py has this name; empty: the model's own is used (flow models have no other)."""
    width: int = 0
    height: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    multiple: int = 8
    least: int = 64
    most: int = 2048
    most_guidance: float = 0.0
    """More would wash the colours out: it is rescaled, or from a picture held; 0: no such limit is known."""

    @property
    def one_size(self) -> bool:
        return self.least == self.most

    def round_side(self, side: float) -> int:
        """Return the nearest side that the model can paint."""
        return max(self.least, round(side / self.multiple) * self.multiple)

    def fit_shape(self, shape: tuple[int, int], most: int = 0) -> tuple[int, int]:
        """Return the size of this shape with about as many pixels as the recommended one, and no longer side than the model, or `most`, allows."""
        if self.one_size:
            return self.width, self.height
        area, proportion = self.width * self.height, shape[0] / shape[1]
        width, height = (area * proportion) ** 0.5, (area / proportion) ** 0.5
        longest = min(each for each in (self.most, most, max(width, height)) if each)
        scale = longest // self.multiple * self.multiple / max(width, height) if longest < max(width, height) else 1.0
        return self.round_side(width * scale), self.round_side(height * scale)


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one repository on the hub."""

    repo: str
    files: tuple[str, ...]
    """They are patterns, as huggingface_hub's allow_patterns takes them."""
    bytes: int
    """The download is about so large; the hub gives exact sizes on request."""
    leave: tuple[str, ...] = NOT_NEEDED
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class Companion:
    """Files from elsewhere that a model needs. `name` is the key under which the loader looks for them."""

    name: str
    source: Source
    licence: str = ""
    instead_of: tuple[str, ...] = ()
    """They replace the model's own files of these patterns."""
    when: Quantised | None = None
    """It is needed only if the plan's weights are quantised this way; None: always."""
    optional: bool = False
    """True: it is fetched with the model, which goes on without it."""


@dataclass(frozen=True, slots=True)
class ConfigNeeds:
    """What a model's config.json asks of a plan, so that it says why that is rejected."""

    attention: str = ""
    awq: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    id: str
    kind: ModelKind
    family: str
    """Pictures and voices take a row's name; those that make nothing, their `model_type`."""
    title: str
    """It is in English; `words` has it in any language."""
    parts: tuple[ModelPart, ...]
    attention: Attention
    settings: ModelSettings = ModelSettings()
    source: Source | None = None
    path: str = ""
    """Starters and local models lie here; empty: it is in the hub's cache."""
    licence: str = ""
    gated: bool = False
    companions: tuple[Companion, ...] = ()
    credit: str = ""
    """It says who made it, with licence and place, where the licence wants that told beside whatever is made with it."""
    plain: ModelSettings | None = None
    """Schedulers other than LCM take these settings, without the few-steps LoRA."""
    starter: bool = False
    note: Sentence | None = None
    cache_bytes: int = 0
    languages: tuple[str, ...] = ("en",)
    """A voice of the catalog speaks these; once it is here, its folder says so itself (`VoiceLimits`)."""
    frames_per_s: float = 0.0
    """A voice takes this many steps for a second of sound, each of which reads all weights; 0 says that no forecast is made before it is here."""
    single_file: bool = False
    gguf: bool = False
    beside: tuple[tuple[str, str], ...] = ()
    """A single file lacks these parts, which are in these files beside it."""
    scheduler: tuple[tuple[str, str | float | bool], ...] = ()
    """These of its scheduler's settings are not its family's."""
    precision: str = ""
    """A single file's weights are in this precision, for people; its plan is made as for any."""
    needs: ConfigNeeds | None = None
    """A local model's config says this of its needs; the catalog's are read where they lie."""

    @property
    def is_local(self) -> bool:
        """Whether it is no row of the catalog, but a folder or file of the user's."""
        return bool(self.path) and not self.starter

    @property
    def lacks(self) -> tuple[str, ...]:
        """Parts of a single file that come from its base model."""
        wanted = (each for companion in self.companions for each in companion.source.files if self.single_file)
        return tuple(each.partition("/")[0] for each in wanted if each.endswith(".safetensors"))

    @property
    def makes(self) -> KindName | None:
        """The kind of job that may name it; None: it makes nothing itself."""
        return self.kind if self.kind == "speech" or self.kind == "picture" else None

    @property
    def words(self) -> str | Sentence:
        """The title, for sentences."""
        return word_name(self.title)

    @property
    def bytes(self) -> int:
        """Approximate size of the download, including companions that are always needed."""
        return sum(source.bytes for source in list_sources(self))

    def recommended(self, scheduler: str | None) -> ModelSettings:
        """Return the recommended settings; for a scheduler that the few-steps LoRA cannot use, those without it."""
        few_steps = scheduler is None or scheduler == self.settings.scheduler
        return self.settings if few_steps or self.plain is None else self.plain


def list_sources(model: Model, quantised: Quantised = "none") -> tuple[Source, ...]:
    """List what must be installed to load weights quantised this way: the model first, then its companions."""
    with_it = [each for each in model.companions if each.when in (None, quantised)]
    spared = tuple(pattern for each in with_it for pattern in each.instead_of)
    own = () if model.source is None else (replace(model.source, leave=(*model.source.leave, *spared)),)
    return (*own, *(each.source for each in with_it))


def describe_need(
    model: Model, *, width: int | None = None, height: int | None = None, guidance: float | None = None, larger: float = 1
) -> Need:
    """Describe what one picture of this size takes (several at once are tried only where memory is free beside this). `larger`: how many times as large
    it is painted over, in tiles where the model paints in tiles."""
    shape, settings = model.attention, model.settings
    why = say("quantised.not-made", "Hearth does not make these weights for this voice.")
    if model.makes is None:
        return Need(
            model=model.id,
            kind="speech",
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            queries=shape.text_tokens,
            keys=shape.keys,
            masked=shape.masked,
            causal=False,
            parts=model.parts,
            cache_bytes=model.cache_bytes,
            plain=True,
            impossible=tuple((each, why) for each in get_args(Quantised) if each not in ("none", "gguf")),
        )
    if model.kind == "speech":
        family = VOICES[model.family]
        return Need(
            model=model.id,
            kind="speech",
            batch=GUIDED_ROWS if family.guided else 1,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            queries=shape.text_tokens,
            keys=shape.keys,
            masked=shape.masked,
            causal=shape.causal,
            parts=model.parts,
            cache_bytes=model.cache_bytes,
            plain=family.plain,
            impossible=tuple((each, why) for each in get_args(Quantised) if each not in ("none", "gguf", *family.quantised)),
        )
    width, height = width or settings.width, height or settings.height
    larger = larger if PICTURES[model.family].paints_over else 1
    whole = find_larger((width, height), larger, settings.multiple) if larger > 1 else (width, height)
    across, down = (find_tile(side, settings.width) for side in whole) if larger > 1 and PICTURES[model.family].paints_in_tiles else whole
    tokens = -(-across // shape.pixels_a_token) * -(-down // shape.pixels_a_token) + shape.text_tokens
    strength = settings.guidance if guidance is None else guidance
    return Need(
        model=model.id,
        kind="picture",
        batch=GUIDED_ROWS if is_guided(model, strength) and PICTURES[model.family].guidance == "rows" else 1,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        queries=tokens,
        keys=tokens,
        masked=shape.masked,
        causal=shape.causal,
        parts=_add_companions(model),
        width=whole[0],
        height=whole[1],
        published="gguf" if model.gguf else "none",
        also_published=tuple(each.when for each in model.companions if each.when is not None),
        impossible=_list_impossible(model),
    )


def add_to_denoiser(need: Need, parameters: int) -> Need:
    """Count weights with the denoiser's that lie beside them at each step and are never quantised: a control model's, an adapter's."""

    def with_them(part: ModelPart) -> ModelPart:
        return replace(
            part,
            parameters=part.parameters + parameters,
            linear=part.parameters if part.linear is None else part.linear,
            gguf_bytes=None if part.gguf_bytes is None else part.gguf_bytes + parameters * BYTES["float16"],
        )

    return replace(need, parts=tuple(with_them(part) if part.role == "denoiser" else part for part in need.parts))


def _list_impossible(model: Model) -> tuple[tuple[Quantised, Sentence], ...]:
    """List what cannot be made of a single file's weights, so that no plan wants it."""
    if model.gguf:
        return tuple((each, GGUF_ALONE) for each in get_args(Quantised) if each not in ("none", "gguf"))
    why = say("quantised.folder", "These weights can only be made from a diffusers folder, and this model is a single file.")
    return tuple((each, why) for each in FROM_FOLDERS if model.single_file)


def add_loras(need: Need, parameters: int) -> Need:
    """Count LoRAs with the denoiser's weights: what of them is beside a text encoder's is small."""
    parts = (replace(part, loras=part.loras + parameters) if part.role == "denoiser" else part for part in need.parts)
    return replace(need, parts=tuple(parts))


def _add_companions(model: Model) -> tuple[ModelPart, ...]:
    """Add the size of the GGUF file that replaces the denoiser, if one is published, and its few-steps LoRA."""
    gguf = next((each.source.bytes for each in model.companions if each.when == "gguf"), None)
    loras = sum(each.source.bytes // BYTES["float16"] for each in model.companions if each.name == FEW_STEPS)
    return tuple(
        replace(part, gguf_bytes=gguf or part.gguf_bytes, loras=loras) if part.role == "denoiser" else part for part in model.parts
    )


def is_guided(model: Model, guidance: float) -> bool:
    """Tell whether this much guidance doubles the work of a step. What is called twice for it and recommends none was distilled, and takes no notice."""
    how = PICTURES[model.family].guidance
    return guidance > 1 and (how == "rows" or (how == "calls" and model.settings.guidance > 1))
