"""What a family of pictures is to whoever paints with it, and what several families have in common. No torch, no weights.

A family is a file here that says what is its own, and a row in app/engine/models/picture_families.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from app.base.sentence import Value
from app.compat.planning.attention_calls import Call
from app.engine.models.safetensors import Entry

Entries = Mapping[str, Entry]
Parts = Mapping[str, tuple[str, ...]]
"""Each part of a pipeline has the classes that it may have. A folder only chooses among them: others may load what their config names, from
anywhere. Schedulers are checked by their kind (loader.py)."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """A text encoder that the family's single files may lack."""

    part: str
    kind: str = ""
    """A file beside it has to be of this kind, by file_facts.py; empty says that it is not taken from there."""
    width: int = 0
    """Such a file has so many numbers for each word."""


@dataclass(frozen=True, slots=True)
class NumberedGuidance:
    """How models of a family are set that take guidance as a number, as FLUX.1 dev does."""

    steps: int
    guidance: float
    text_tokens: int
    scheduler: tuple[tuple[str, str | float | bool], ...]
    """Its scheduler's settings differ in this from the others'."""
    mark: str
    """Only the denoisers of such models have this tensor."""


@dataclass(frozen=True, slots=True)
class WholeSteps:
    """How models of a family are set that were not distilled to a few steps, where others of it were."""

    steps: int
    guidance: float
    shift: float | None = None
    """Their schedulers have this shift; None: the same as the others'."""


@dataclass(frozen=True, slots=True)
class FewSteps:
    """How models of a family are set that need few steps, which their names alone say: by this too, beside what says so in every family."""

    named: re.Pattern[str]
    steps: int
    guidance: float


@dataclass(frozen=True, slots=True)
class PictureFamily:
    name: str
    title: str
    short: str
    """People who make LoRAs for it call it this."""
    like: str
    """A local model uses the recommendations of this row of the catalog."""
    text_class: str
    """This class of diffusers makes a picture of text; `image_class` and `inpaint_class` take a start picture and a mask, if there are
    any."""
    parts: Parts
    calls: Callable[[int, int], tuple[Call, ...]]
    """It takes (width, height), and lists the attention calls of the prompt and of one denoising step."""
    recognise: Callable[[Entries, str], Value | None] = lambda _entries, _prefix: None
    """It takes (tensors, what begins the denoiser's names), and returns "" if a file's denoiser is of this family, the title of a relative
    of it that Hearth has not, or None."""
    image_class: str = ""
    inpaint_class: str = ""
    denoiser: str = "transformer"
    unpack: str = "shift"
    """Its latents become the VAE's in this way, a key of pictures/families/unpack.py."""
    negative_prompts: bool = True
    flow_matching: bool = True
    """Flow-matching models keep their own scheduler."""
    prompt_weights: bool = False
    """All its text encoders are CLIP, which takes weighted words and embeddings."""
    uses_strength: bool = True
    """False: a start picture without a mask is edited by the prompt, and strength has no effect."""
    guidance: Literal["rows", "calls", "number"] = "rows"
    """Its models compute the picture without the prompt so: as a second row, in a call of its own, or not, as they take guidance as a number or not at all."""
    spares_guidance: bool = True
    """`quicker` can reuse the row without the prompt."""
    outer_share: float = 1.0
    """A denoiser's outermost blocks (of a transformer, the first of each stack), which every step computes, are this share of its work."""
    numbered: NumberedGuidance | None = None
    whole_steps: WholeSteps | None = None
    steps_unsaid: bool = False
    """A file's name may be silent about whether it needs few steps. The family's name alone is the base model's."""
    few_steps: FewSteps | None = None
    few_steps_folders: bool = False
    """Trailing timesteps in a folder's scheduler say that it needs few steps."""
    call_arguments: Mapping[str, Any] = field(default_factory=dict)
    """The pipeline's call always gets these."""
    load_arguments: Mapping[str, Any] = field(default_factory=dict)
    asked_of_denoiser: Mapping[str, Any] = field(default_factory=dict)
    """Its pipelines read these in the denoiser's settings, and not every model says them there."""
    chat_template: str = ""
    """It makes what its text encoder reads of a prompt, in Jinja; it is empty where that is the prompt."""
    encoders: tuple[Encoder, ...] = ()
    vae_file: str = ""
    """A VAE's file beside a denoiser's has this name, as nothing in a header tells VAEs of the same shape apart."""
    unsafe_in_half: tuple[str, ...] = ()
    """The numbers of these parts may not fit into float16."""
    scaled: tuple[str, ...] = ()
    """These of them can be scaled until they do."""
    written_as: tuple[str, ...] = ()
    """The name that trainers write into a LoRA begins so."""
    lora_marks: tuple[str, ...] = ()
    """LoRAs of no family before this one have these in the names of their tensors."""
    loras_like: str = ""
    """LoRAs of this family have the same tensors: only their makers' words tell the two apart."""
    lora_width: int = 0
    """A UNet's attention reads so many numbers of each token."""
    guide_share: float = 0.0
    """A control model (ControlNet) adds this to a step's work; 0 says that none can guide its denoiser."""

    @property
    def edits(self) -> bool:
        """Whether its models change a picture as the prompt says."""
        return bool(self.image_class) and not self.uses_strength

    @property
    def paints_over(self) -> bool:
        """Whether its models can paint over a picture that was enlarged."""
        return bool(self.image_class) and self.uses_strength

    @property
    def guided(self) -> bool:
        return self.guide_share > 0

    @property
    def paints_in_tiles(self) -> bool:
        """Whether what is larger than its models were trained for is painted over in tiles: a UNet's work, whose files the library converts whole."""
        return self.denoiser == "unet"

    @property
    def classes(self) -> tuple[str, ...]:
        """What a folder of it may call its pipeline; one that was made for masks has a denoiser of its own."""
        return tuple(filter(None, (self.text_class, self.image_class)))


VAE: Final = ("AutoencoderKL", "AutoencoderTiny", "AsymmetricAutoencoderKL")
CLIP: Final = ("CLIPTextModel",)
PROJECTED_CLIP: Final = ("CLIPTextModelWithProjection",)
T5: Final = ("T5EncoderModel",)
QWEN_3: Final = ("Qwen3ForCausalLM", "Qwen3Model")
CLIP_WORDS: Final = ("CLIPTokenizer", "CLIPTokenizerFast")
T5_WORDS: Final = ("T5Tokenizer", "T5TokenizerFast")
QWEN_WORDS: Final = ("Qwen2Tokenizer", "Qwen2TokenizerFast")
QWEN_CHAT: Final = (
    "<|im_start|>user\n{{ messages[0]['content'] }}<|im_end|>\n<|im_start|>assistant\n"
    "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""Qwen 3's own template makes this of the one message that pipelines give it."""
