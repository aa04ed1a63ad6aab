"""The families of pictures, one row each: its pipeline and parts, what its files are told by, what its steps cost. No torch, no weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.compat.planning.attention_calls import CLIP_G, CLIP_L, GUIDED, QWEN, SD15, SDXL, Call, decoder, joint, t5, unet
from app.engine.models.safetensors import Entry

Entries = Mapping[str, Entry]
Parts = Mapping[str, tuple[str, ...]]
"""The parts of a pipeline, and the classes that each may have. A folder only chooses among them: others may load what their config names,
from anywhere. Schedulers are checked by their kind (loader.py)."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """A text encoder that the family's single files may lack."""

    part: str
    kind: str = ""
    """What a file beside it has to be, by file_facts.py; empty: it is not taken from there."""
    width: int = 0
    """Numbers that such a file has for each word."""


@dataclass(frozen=True, slots=True)
class NumberedGuidance:
    """How models of a family are set that take guidance as a number, as FLUX.1 dev does."""

    steps: int
    guidance: float
    text_tokens: int
    scheduler: tuple[tuple[str, str | float | bool], ...]
    """What of its scheduler's settings differs from the others'."""
    mark: str
    """A tensor that the denoisers of such models alone have."""


@dataclass(frozen=True, slots=True)
class PictureFamily:
    name: str
    title: str
    short: str
    """How people call it who make LoRAs for it."""
    like: str
    """The catalog's row whose recommendations a local model uses."""
    text_class: str
    """The class of diffusers for text to picture; the next two for a start picture and a mask, if there are any."""
    parts: Parts
    calls: Callable[[int, int], tuple[Call, ...]]
    """(width, height) -> the attention calls of the prompt and of one denoising step."""
    recognise: Callable[[Entries, str], str | None] = lambda _entries, _prefix: None
    """(tensors, what begins the denoiser's names) -> "" if a file's denoiser is of this family, the title of a relative of it that Hearth has not,
    or None."""
    image_class: str = ""
    inpaint_class: str = ""
    denoiser: str = "transformer"
    unpack: str = "shift"
    """How its latents become the VAE's: a key of pictures/families/unpack.py."""
    negative_prompts: bool = True
    flow_matching: bool = True
    """Flow-matching models keep their own scheduler."""
    prompt_weights: bool = False
    """Whether all its text encoders are CLIP, which takes weighted words and embeddings."""
    uses_strength: bool = True
    """False: a start picture without a mask is edited by the prompt, and strength has no effect."""
    guided_rows: bool = True
    """Whether guidance doubles the rows; FLUX's distilled models take it as a number, or not at all."""
    spares_guidance: bool = True
    """Whether `quicker` can reuse the row without the prompt."""
    outer_share: float = 1.0
    """How much of a denoiser's work its outermost blocks are (of a transformer, the first of each stack), which every step computes."""
    numbered: NumberedGuidance | None = None
    whole_steps: tuple[int, float] | None = None
    """Steps and guidance of its models that were not distilled to a few steps, where the others were."""
    steps_unsaid: bool = False
    """Whether a file's name may be silent about which of the two it is."""
    few_steps_folders: bool = False
    """Whether trailing timesteps in a folder's scheduler say that it needs few steps."""
    call_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Always passed to the pipeline's call."""
    load_arguments: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str = ""
    """Makes what its text encoder reads of a prompt, in Jinja; empty where that is the prompt."""
    encoders: tuple[Encoder, ...] = ()
    vae_file: str = ""
    """The name of a VAE's file beside a denoiser's, as nothing in a header tells VAEs of the same shape apart."""
    unsafe_in_half: tuple[str, ...] = ()
    """Parts whose numbers may not fit into float16."""
    scaled: tuple[str, ...] = ()
    """Those of them that can be scaled until they do."""
    written_as: tuple[str, ...] = ()
    """How the name that trainers write into a LoRA begins."""
    lora_marks: tuple[str, ...] = ()
    """Parts of a tensor's name that LoRAs of no family before this one have."""
    lora_width: int = 0
    """Numbers that a UNet's attention reads of each token."""
    guide_share: float = 0.0
    """What a control model (ControlNet) adds to a step's work; 0: none can guide its denoiser."""

    @property
    def edits(self) -> bool:
        """Whether its models change a picture as the prompt says."""
        return bool(self.image_class) and not self.uses_strength

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


_VAE: Final = ("AutoencoderKL", "AutoencoderTiny", "AsymmetricAutoencoderKL")
_CLIP: Final = ("CLIPTextModel",)
_PROJECTED_CLIP: Final = ("CLIPTextModelWithProjection",)
_T5: Final = ("T5EncoderModel",)
_QWEN: Final = ("Qwen3ForCausalLM", "Qwen3Model")
_CLIP_WORDS: Final = ("CLIPTokenizer", "CLIPTokenizerFast")
_T5_WORDS: Final = ("T5Tokenizer", "T5TokenizerFast")
_QWEN_WORDS: Final = ("Qwen2Tokenizer", "Qwen2TokenizerFast")
_QWEN_CHAT: Final = (
    "<|im_start|>user\n{{ messages[0]['content'] }}<|im_end|>\n<|im_start|>assistant\n"
    "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)
"""What Qwen 3's own template makes of the one message that pipelines give it."""


INPAINTING: Final = "an inpainting or editing model"
REFINER: Final = "the refiner of SDXL"


def _recognise_unet(entries: Entries, prefix: str, wanted: str) -> str | None:
    first = entries.get(f"{prefix}input_blocks.0.0.weight")
    if first is None or len(first.shape) != 4:
        return None
    shallow = entries.get(f"{prefix}input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight")
    deep = entries.get(f"{prefix}input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight")
    if first.shape[1] != 4:
        return INPAINTING
    if "conditioner.embedders.0.model.text_projection" in entries or (shallow is None and deep is not None and deep.shape[-1] == 1280):
        return REFINER
    if shallow is not None and shallow.shape[-1] == 1024:
        return "Stable Diffusion 2"
    if shallow is not None and shallow.shape[-1] == 768:
        return "" if wanted == "sd15" else None
    if f"{prefix}label_emb.0.0.weight" in entries:
        return "" if wanted == "sdxl" else None
    return "a denoiser of another family" if wanted == "sdxl" else None


def _recognise_sd3(entries: Entries, prefix: str) -> str | None:
    if f"{prefix}joint_blocks.0.context_block.adaLN_modulation.1.bias" not in entries:
        return None
    if f"{prefix}joint_blocks.37.x_block.mlp.fc1.weight" in entries:
        return "Stable Diffusion 3.5 Large"
    return "" if f"{prefix}joint_blocks.0.x_block.attn2.qkv.weight" in entries else "Stable Diffusion 3 Medium"


def _recognise_flux2(entries: Entries, prefix: str) -> str | None:
    modulation = entries.get(f"{prefix}single_stream_modulation.lin.weight")
    if modulation is None:
        return None
    return "FLUX.2 dev or klein 9B" if modulation.shape[-1:] in ((4096,), (6144,)) else ""


def _recognise_flux(entries: Entries, prefix: str) -> str | None:
    if f"{prefix}double_blocks.0.img_attn.norm.key_norm.scale" not in entries:
        return None
    first = entries.get(f"{prefix}img_in.weight")
    other = first is not None and len(first.shape) == 2 and first.shape[-1] in (96, 128, 384)
    return "FLUX.1 Fill, Canny or Depth" if other else ""


def _recognise_z_image(entries: Entries, prefix: str) -> str | None:
    if f"{prefix}layers.0.adaLN_modulation.0.weight" in entries:
        return ""
    return "Lumina 2" if f"{prefix}cap_embedder.0.weight" in entries else None


def _call_pixart(width: int, height: int) -> tuple[Call, ...]:
    tokens = -(-width // 16) * -(-height // 16)
    itself, text = Call("itself", GUIDED, 16, 16, tokens, tokens, 72), Call("text", GUIDED, 16, 16, tokens, 300, 72, masked=True)
    return t5(GUIDED, 300), itself, text


def _call_sd3(width: int, height: int) -> tuple[Call, ...]:
    tokens = -(-width // 16) * -(-height // 16)
    itself = Call("itself", GUIDED, 24, 24, tokens, tokens, 64)
    return CLIP_L, CLIP_G, t5(GUIDED, 256), *joint(GUIDED, 24, 64, text=333, masked=False, width=width, height=height), itself


_ROWS: Final = (
    PictureFamily(
        "sd15", "Stable Diffusion 1.5", "SD 1.5", "sd15", "StableDiffusionPipeline",
        {"text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "unet": ("UNet2DConditionModel",), "vae": _VAE},
        lambda width, height: (CLIP_L, *unet(SD15, GUIDED, width, height)),
        lambda entries, prefix: _recognise_unet(entries, prefix, "sd15"),
        "StableDiffusionImg2ImgPipeline", "StableDiffusionInpaintPipeline", "unet", "scale",
        flow_matching=False, prompt_weights=True,
        outer_share=0.4,  # timed (docs/speed-pictures.md)
        load_arguments={"safety_checker": None, "feature_extractor": None, "requires_safety_checker": False},
        encoders=(Encoder("text_encoder"),), written_as=("stable-diffusion-v1", "sd_v1"), lora_width=768,
        guide_share=0.36,  # of its multiplications, counted from 512 to 1024 pixels
    ),
    PictureFamily(
        "sdxl", "Stable Diffusion XL", "SDXL", "sdxl", "StableDiffusionXLPipeline",
        {
            "text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _PROJECTED_CLIP, "tokenizer_2": _CLIP_WORDS,
            "unet": ("UNet2DConditionModel",), "vae": _VAE,
        },
        lambda width, height: (CLIP_L, CLIP_G, *unet(SDXL, GUIDED, width, height)),
        lambda entries, prefix: _recognise_unet(entries, prefix, "sdxl"),
        "StableDiffusionXLImg2ImgPipeline", "StableDiffusionXLInpaintPipeline", "unet", "scale",
        flow_matching=False, prompt_weights=True,
        outer_share=0.2,  # estimated
        few_steps_folders=True, load_arguments={"add_watermarker": False}, encoders=(Encoder("text_encoder"), Encoder("text_encoder_2")),
        unsafe_in_half=("vae",), written_as=("stable-diffusion-xl", "sdxl"), lora_marks=("lora_te2_", "text_encoder_2."), lora_width=2048,
        guide_share=0.45,
    ),
    PictureFamily(
        "pixart-sigma", "PixArt-Sigma", "PixArt", "pixart-sigma", "PixArtSigmaPipeline",
        {"text_encoder": _T5, "tokenizer": _T5_WORDS, "transformer": ("PixArtTransformer2DModel", "Transformer2DModel"), "vae": _VAE},
        _call_pixart, unpack="scale", flow_matching=False,
        outer_share=0.04,  # of its multiplications, as those below (docs/speed-pictures.md)
        call_arguments={"use_resolution_binning": False, "clean_caption": False}, unsafe_in_half=("vae",),
    ),
    PictureFamily(
        "sd3", "Stable Diffusion 3.5 Medium", "SD 3", "sd35-medium", "StableDiffusion3Pipeline",
        {
            "text_encoder": _PROJECTED_CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _PROJECTED_CLIP, "tokenizer_2": _CLIP_WORDS,
            "text_encoder_3": _T5, "tokenizer_3": _T5_WORDS, "transformer": ("SD3Transformer2DModel",), "vae": _VAE,
        },
        _call_sd3, _recognise_sd3, "StableDiffusion3Img2ImgPipeline", "StableDiffusion3InpaintPipeline",
        # The two CLIPs of other programs come without their projection.
        encoders=(Encoder("text_encoder"), Encoder("text_encoder_2"), Encoder("text_encoder_3", "T5", 4096)),
        outer_share=0.05, written_as=("stable-diffusion-3", "sd3"), lora_marks=("joint_blocks",),
    ),
    PictureFamily(
        "flux2-klein", "FLUX.2 klein 4B", "FLUX.2", "flux2-klein", "Flux2KleinPipeline",
        {"text_encoder": _QWEN, "tokenizer": _QWEN_WORDS, "transformer": ("Flux2Transformer2DModel",), "vae": ("AutoencoderKLFlux2",)},
        lambda width, height: (QWEN, *joint(1, 24, 128, text=512, masked=False, width=width, height=height)), _recognise_flux2,
        "Flux2KleinPipeline", "Flux2KleinInpaintPipeline", unpack="unpatch", negative_prompts=False, uses_strength=False, guided_rows=False,
        outer_share=0.08, whole_steps=(50, 4.0), chat_template=_QWEN_CHAT, encoders=(Encoder("text_encoder", "Qwen 3", 2560),), unsafe_in_half=("vae",),
        written_as=("flux-2", "flux.2", "flux2"), lora_marks=("to_qkv_mlp_proj", "stream_modulation"),
    ),
    PictureFamily(
        "flux", "FLUX.1", "FLUX.1", "flux1-schnell", "FluxPipeline",
        {
            "text_encoder": _CLIP, "tokenizer": _CLIP_WORDS, "text_encoder_2": _T5, "tokenizer_2": _T5_WORDS,
            "transformer": ("FluxTransformer2DModel",), "vae": _VAE,
        },
        lambda width, height: (CLIP_L, t5(1, 256), *joint(1, 24, 128, text=256, masked=False, width=width, height=height)), _recognise_flux,
        "FluxImg2ImgPipeline", "FluxInpaintPipeline", unpack="unpack", negative_prompts=False, guided_rows=False,
        outer_share=0.04,
        numbered=NumberedGuidance(
            28, 3.5, 512, (("use_dynamic_shifting", True), ("shift", 3.0), ("base_shift", 0.5), ("max_shift", 1.15)), "guidance_in.in_layer.weight",
        ),
        call_arguments={"max_sequence_length": 256}, encoders=(Encoder("text_encoder", "CLIP", 768), Encoder("text_encoder_2", "T5", 4096)),
        vae_file="ae", unsafe_in_half=("vae",), written_as=("flux-1", "flux1"), lora_marks=("single_transformer_blocks", "double_blocks"),
    ),
    PictureFamily(
        "z-image", "Z-Image", "Z-Image", "z-image-turbo", "ZImagePipeline",
        {"text_encoder": _QWEN, "tokenizer": _QWEN_WORDS, "transformer": ("ZImageTransformer2DModel",), "vae": _VAE},
        lambda width, height: (QWEN, *joint(1, 30, 128, text=512, masked=True, width=width, height=height)), _recognise_z_image,
        "ZImageImg2ImgPipeline", "ZImageInpaintPipeline", spares_guidance=False, outer_share=0.09, whole_steps=(50, 4.0), steps_unsaid=True,
        chat_template=_QWEN_CHAT, encoders=(Encoder("text_encoder", "Qwen 3", 2560),), vae_file="ae",
        unsafe_in_half=("vae", "transformer"), scaled=("transformer",),
        written_as=("zimage",), lora_marks=("layers.0.attention", "layers_0_attention"),
    ),
)  # fmt: skip
FAMILIES: Final[dict[str, PictureFamily]] = {each.name: each for each in _ROWS}
"""In the order in which a file is held against them: FLUX.2's denoisers have the tensors of FLUX.1's, too."""
BY_CLASS: Final = {kind: each for each in _ROWS for kind in each.classes}
"""By the `_class_name` of a model_index.json."""


def list_calls(family: str, width: int, height: int) -> tuple[Call, ...]:
    """List the attention calls of the prompt, one denoising step, and the VAE."""
    return *FAMILIES[family].calls(width, height), decoder(width, height)
