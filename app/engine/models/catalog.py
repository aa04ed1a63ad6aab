"""List the models Hearth knows, one row each, with licences and facts from the model cards. No torch, no network."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app.base import paths
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.planning.types import ModelPart
from app.engine.jobs.request import KindName
from app.engine.models import detect, local_models
from app.engine.models.local_models import Seen
from app.engine.models.model import FEW_STEPS, NOT_NEEDED, Attention, Companion, Model, ModelKind, ModelSettings, Source
from app.engine.models.picture_readers import ALL as ALL_READERS
from app.engine.models.recognisers import RECOGNISERS
from app.engine.models.swin2sr import ROWS as ENLARGERS

NEAR_MOST: Final = 3
"""At most so many names are offered for one that is unknown."""
_MB: Final = 1_000_000
_GB: Final = 1_000_000_000

_CLIP_L: Final = ModelPart("text_encoder", "text", 123_060_480, linear=84_934_656)
_CLIP_L_PROJECTED: Final = ModelPart("text_encoder", "text", 123_650_304, linear=84_934_656)
_CLIP_G: Final = ModelPart("text_encoder_2", "text", 694_659_840, linear=629_145_600)
_T5: Final = ModelPart("text_encoder", "text", 4_762_310_656, linear=4_630_511_616, wide=1_006_632_960)
_QWEN3_4B: Final = ModelPart("text_encoder", "text", 4_022_468_096, linear=3_633_315_840)
_GEMMA_2: Final = ModelPart("text_encoder", "text", 2_614_341_888, linear=2_024_275_968, half_is_safe=False)
_VAE: Final = ModelPart("vae", "vae", 83_653_863)
_VAE_16: Final = ModelPart("vae", "vae", 83_819_683)
_FLUX_VAE: Final = replace(_VAE_16, half_is_safe=False)
"""It paints black in float16: InvokeAI #7208. Z-Image uses it too; FLUX.2's is alike, and nothing shows that it is better."""

_SIZES_512: Final = ((512, 512), (512, 768), (768, 512), (640, 448), (448, 640))
_SIZES_1024: Final = ((1024, 1024), (896, 1152), (1152, 896), (832, 1216), (1216, 832), (768, 1344), (1344, 768))

_CONFIGS: Final = ("model_index.json", "*/*.json", "*/*.txt", "*/*.model", "*/*.jinja")
_HALF: Final = (*_CONFIGS, "*/*.fp16.safetensors")
_WHOLE: Final = (*_CONFIGS, "*/*.safetensors")
_SAFE: Final = (*NOT_NEEDED, "safety_checker/*", "feature_extractor/*", "vae_1_0/*", "vae_decoder/*", "vae_encoder/*")
"""The checker is a 1.2 GB model that blacks pictures out; diffusers' own pipelines make it optional."""

_FIXED_VAE: Final = Companion(
    "vae", Source("madebyollin/sdxl-vae-fp16-fix", ("config.json", "diffusion_pytorch_model.safetensors"), 335 * _MB), "MIT"
)
_LCM: Final = Companion(
    FEW_STEPS, Source("latent-consistency/lcm-lora-sdv1-5", ("pytorch_lora_weights.safetensors",), 135 * _MB), "OpenRAIL++"
)
_LCM_SSD: Final = Companion(
    FEW_STEPS, Source("latent-consistency/lcm-lora-ssd-1b", ("pytorch_lora_weights.safetensors",), 210 * _MB), "OpenRAIL++"
)
_LIGHTNING: Final = Companion(
    FEW_STEPS, Source("ByteDance/SDXL-Lightning", ("sdxl_lightning_8step_lora.safetensors",), 394 * _MB), "OpenRAIL++"
)
_DENOISER: Final = ("transformer/*.safetensors", "transformer/*.index.json")


def _make_gguf(repo: str, file: str, size_bytes: int, licence: str) -> Companion:
    return Companion("gguf", Source(repo, (file,), size_bytes), licence, instead_of=_DENOISER, when="gguf")


def _make_tiny_vae(repo: str) -> Companion:
    source = Source(f"madebyollin/{repo}", ("config.json", "diffusion_pytorch_model.safetensors"), 10 * _MB)
    return Companion("tiny-vae", source, "MIT", optional=True)


_TINY, _TINY_XL, _TINY_3, _TINY_FLUX = map(_make_tiny_vae, ("taesd", "taesdxl", "taesd3", "taef1"))


def _make_xl_settings(guidance: float = 5.0, steps: int = 25, scheduler: str = "Euler") -> ModelSettings:
    return ModelSettings(steps, guidance, scheduler, 1024, 1024, _SIZES_1024, most=2048)


_UNET_XL: Final = Attention(heads=10, kv_heads=10, head_dim=64, pixels_a_token=16)

CATALOG: Final[tuple[Model, ...]] = (
    Model(
        "starter-voice", "speech", "dia", "Starter voice",
        parts=(ModelPart("model", "speech", 3_948_096), ModelPart("codec", "codec", 2_140_681)),
        attention=Attention(4, 2, 48, text_tokens=256, keys=512, masked=True),
        path=str(paths.assets() / "starter" / "voice"), licence="Apache-2.0", starter=True, cache_bytes=4 * _MB,
        note=say("catalog.starter-voice",
            "Comes with Hearth, no download needed. It reads any English text in eight small voices; "
            "Dia sounds more natural and can imitate a recording."),
    ),
    Model(
        "starter-painter", "picture", "sd15", "Starter painter",
        parts=(ModelPart("text_encoder", "text", 1_511_424), ModelPart("unet", "denoiser", 3_832_188), ModelPart("vae", "vae", 660_559)),
        attention=Attention(4, 4, 16, pixels_a_token=16),
        settings=ModelSettings(16, 1.5, "", 256, 256, ((256, 256),), least=256, most=256, most_guidance=2.0),
        path=str(paths.assets() / "starter" / "painter"), licence="Apache-2.0", starter=True,
        note=say("catalog.starter-painter",
            "Comes with Hearth, no download needed. It reads any English caption and paints small scenes of 39 things; "
            "for anything else, use SD 1.5."),
    ),
    Model(
        "dia-1.6b", "speech", "dia", "Dia 1.6B",
        parts=(ModelPart("model", "speech", 1_611_160_576, linear=1_572_864_000, widest=33_554_432), ModelPart("codec", "codec", 76_600_000)),
        attention=Attention(16, 4, 128, text_tokens=1024, keys=3072, masked=True),
        source=Source("nari-labs/Dia-1.6B-0626", ("*.json", "*.safetensors", "*.txt"), 6_445 * _MB),
        companions=(Companion("codec", Source("descript/dac_44khz", ("*.json", "model.safetensors"), 307 * _MB), "MIT"),),
        licence="Apache-2.0", cache_bytes=528 * _MB, frames_per_s=44_100 / 512,
        note=say("catalog.dia", "English dialogue for two speakers, with laughs and sighs. Can imitate a voice from a recording."),
    ),
    Model(
        "pocket-tts", "speech", "pocket_tts", "Pocket TTS",
        parts=(ModelPart("model", "speech", 89_452_099, linear=84_511_840), ModelPart("codec", "codec", 20_054_337)),
        attention=Attention(16, 16, 64, text_tokens=64, keys=512, masked=True),
        # Folders inside would be other languages.
        source=Source("eustlb/pocket-tts", ("*.json", "*.safetensors"), 358 * _MB, (*NOT_NEEDED, "*/*")),
        companions=(Companion("codec", Source("eustlb/pocket-tts-audio-tokenizer", ("*.json", "*.safetensors"), 80 * _MB), "CC BY 4.0"),),
        licence="CC BY 4.0", cache_bytes=25 * _MB, frames_per_s=12.5,
        credit="Pocket TTS by Kyutai, CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/), https://huggingface.co/kyutai/pocket-tts",
        note=say("catalog.pocket", "Natural English that is quick on a processor. Can imitate a voice from a recording, without its words."),
    ),
    Model(
        "phonon-31m", "speech", "gradium_phonon_tts", "Phonon 31M",
        parts=(ModelPart("model", "speech", 30_806_595, linear=26_909_536), ModelPart("codec", "codec", 10_305_313)),
        attention=Attention(12, 12, 64, text_tokens=64, keys=512, masked=True),
        source=Source("gradium/phonon-31m-en", ("*.json", "model.safetensors", "*.safetensors"), 83 * _MB),
        companions=(
            Companion("codec", Source("gradium/phonon-mimi", ("*.json", "*.safetensors"), 42 * _MB), "Apache-2.0"),
            Companion("voices", Source("gradium/phonon-voices", ("voices.jsonl", "*.safetensors"), 27 * _MB), "Apache-2.0"),
        ),
        licence="Apache-2.0", cache_bytes=13 * _MB, frames_per_s=12.5,
        note=say("catalog.phonon", "A small, quick English voice for any processor, in many ready voices."),
    ),
    Model(
        "vibevoice-1.5b", "speech", "vibevoice", "VibeVoice 1.5B",
        parts=(ModelPart("model", "speech", 2_704_021_987, linear=2_243_788_800, eight=805_306_368),),
        attention=Attention(12, 2, 128, text_tokens=256, keys=640, masked=True),
        source=Source("vibevoice/VibeVoice-1.5B-hf", ("*.json", "*.safetensors", "*.txt"), 5_424 * _MB),
        licence="MIT", cache_bytes=350 * _MB, languages=("en", "zh"), frames_per_s=7.5,
        note=say("catalog.vibevoice",
            "Lively English and Chinese for dialogues. Imitates a voice from a recording, without its words. Its makers made it for research, and ask "
            "you to say that a computer speaks."),
    ),
    Model(
        "sd15", "picture", "sd15", "Stable Diffusion 1.5",
        parts=(_CLIP_L, ModelPart("unet", "denoiser", 859_520_964, linear=270_049_280), _VAE),
        attention=Attention(8, 8, 40, pixels_a_token=8),
        settings=ModelSettings(6, 1.5, "LCM", 512, 512, _SIZES_512, most=1024),
        plain=ModelSettings(25, 7.0, "DPM++ 2M Karras", 512, 512, _SIZES_512, most=1024),
        source=Source("stable-diffusion-v1-5/stable-diffusion-v1-5", _HALF, 2_135 * _MB, _SAFE),
        companions=(_LCM, _TINY), licence="CreativeML OpenRAIL-M",
        note=say("catalog.sd15", "The lightest model that paints anything. With its LCM LoRA, 4 to 8 steps are enough. A good first download."),
    ),
    Model(
        "sdxl", "picture", "sdxl", "Stable Diffusion XL",
        parts=(_CLIP_L, _CLIP_G, ModelPart("unet", "denoiser", 2_567_463_684, linear=2_232_647_680), _VAE),
        attention=_UNET_XL, settings=_make_xl_settings(),
        source=Source("stabilityai/stable-diffusion-xl-base-1.0", _HALF, 6_773 * _MB, (*_SAFE, "vae/*.safetensors")),
        companions=(_FIXED_VAE, _TINY_XL), licence="OpenRAIL++",
        note=say("catalog.sdxl", "Large, detailed pictures. Thousands of LoRAs are available."),
    ),
    Model(
        # The same files as above, which are not fetched twice.
        "sdxl-lightning", "picture", "sdxl", "SDXL Lightning",
        parts=(_CLIP_L, _CLIP_G, ModelPart("unet", "denoiser", 2_567_463_684, linear=2_232_647_680), _VAE),
        attention=_UNET_XL, settings=_make_xl_settings(guidance=0.0, steps=8, scheduler="Euler trailing"), plain=_make_xl_settings(),
        source=Source("stabilityai/stable-diffusion-xl-base-1.0", _HALF, 6_773 * _MB, (*_SAFE, "vae/*.safetensors")),
        companions=(_FIXED_VAE, _LIGHTNING, _TINY_XL), licence="OpenRAIL++",
        note=say("catalog.sdxl-lightning",
            "SDXL with a LoRA for 8 steps without guidance, a sixth of the work, and a tiny decoder. How much quality this costs has not been "
            "measured."),
    ),
    Model(
        "sdxl-turbo", "picture", "sdxl", "SDXL Turbo",
        parts=(_CLIP_L, _CLIP_G, ModelPart("unet", "denoiser", 2_567_463_684, linear=2_232_647_680), _VAE),
        attention=_UNET_XL,
        settings=ModelSettings(4, 0.0, "Euler a trailing", 512, 512, _SIZES_512, most=1024),
        source=Source("stabilityai/sdxl-turbo", _HALF, 6_773 * _MB, (*_SAFE, "vae/*.safetensors")),
        companions=(_FIXED_VAE, _TINY_XL), licence="Stability AI Non-Commercial Community",
        note=say("catalog.sdxl-turbo", "Fast: 1 to 4 steps at 512 pixels. Its licence restricts commercial use."),
    ),
    Model(
        "ssd-1b", "picture", "sdxl", "SSD-1B",
        parts=(_CLIP_L, _CLIP_G, ModelPart("unet", "denoiser", 1_331_334_404, linear=1_026_785_280), _VAE),
        attention=_UNET_XL, settings=_make_xl_settings(guidance=7.5),
        source=Source("segmind/SSD-1B", _HALF, 4_303 * _MB, (*_SAFE, "vae/*.safetensors")),
        companions=(_FIXED_VAE, _TINY_XL), licence="Apache-2.0",
        note=say("catalog.ssd-1b", "Half the size of SDXL and lighter; according to its makers up to 60% faster."),
    ),
    Model(
        # The same files as above, which are not fetched twice.
        "ssd-1b-lcm", "picture", "sdxl", "SSD-1B LCM",
        parts=(_CLIP_L, _CLIP_G, ModelPart("unet", "denoiser", 1_331_334_404, linear=1_026_785_280), _VAE),
        attention=_UNET_XL, settings=_make_xl_settings(guidance=1.0, steps=6, scheduler="LCM"), plain=_make_xl_settings(guidance=7.5),
        source=Source("segmind/SSD-1B", _HALF, 4_303 * _MB, (*_SAFE, "vae/*.safetensors")),
        companions=(_FIXED_VAE, _LCM_SSD, _TINY_XL), licence="Apache-2.0",
        note=say("catalog.ssd-1b-lcm",
            "SSD-1B with a LoRA for 6 steps without guidance, an eighth of the work. How much quality this costs has not been measured."),
    ),
    Model(
        "pixart-sigma", "picture", "pixart-sigma", "PixArt-Sigma",
        parts=(
            _T5, ModelPart("transformer", "denoiser", 615_574_688, linear=610_856_096),
            ModelPart("vae", "vae", 83_653_863, half_is_safe=False),
        ),
        attention=Attention(16, 16, 72, pixels_a_token=16, masked=True, causal=False),
        settings=ModelSettings(20, 4.5, "DPM++ 2M", 1024, 1024, _SIZES_1024),
        # Its text encoder is published in float32 only.
        source=Source("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", _WHOLE, 21_900 * _MB, _SAFE),
        companions=(_TINY_XL,), licence="OpenRAIL++",
        note=say("catalog.pixart", "A small model that follows long prompts, with a large text encoder."),
    ),
    Model(
        "sd35-medium", "picture", "sd3", "Stable Diffusion 3.5 Medium",
        parts=(
            _CLIP_L_PROJECTED, _CLIP_G, replace(_T5, name="text_encoder_3"),
            # With its table of 384 x 384 places, which is held as its weights are.
            ModelPart("transformer", "denoiser", 2_469_663_936, linear=2_243_171_520), _VAE_16,
        ),
        attention=Attention(24, 24, 64, pixels_a_token=16, text_tokens=333),
        settings=ModelSettings(28, 4.5, "", 1024, 1024, _SIZES_1024, multiple=16),
        source=Source("stabilityai/stable-diffusion-3.5-medium", _WHOLE, 16_400 * _MB, (*_SAFE, "text_encoders/*", "*/*.fp16*")),
        companions=(_TINY_3,), licence="Stability AI Community", gated=True,
        note=say("catalog.sd35", "Follows long prompts well and can write text in pictures. Accept its licence on Hugging Face first."),
    ),
    Model(
        "flux1-schnell", "picture", "flux", "FLUX.1 schnell",
        parts=(
            _CLIP_L, replace(_T5, name="text_encoder_2"), ModelPart("transformer", "denoiser", 11_891_178_560), _FLUX_VAE,
        ),
        attention=Attention(24, 24, 128, pixels_a_token=16, text_tokens=256),
        settings=ModelSettings(4, 0.0, "", 1024, 1024, _SIZES_1024, multiple=16),
        source=Source("black-forest-labs/FLUX.1-schnell", _WHOLE, 33_730 * _MB, _SAFE),
        companions=(_make_gguf("city96/FLUX.1-schnell-gguf", "flux1-schnell-Q4_0.gguf", 6_770 * _MB, "Apache-2.0"), _TINY_FLUX),
        licence="Apache-2.0", gated=True,
        note=say("catalog.flux", "Very good pictures in 4 steps, but a large download. Accept its licence on Hugging Face first."),
    ),
    Model(
        "chroma1-hd", "picture", "chroma", "Chroma1 HD",
        parts=(_T5, ModelPart("transformer", "denoiser", 8_899_983_424), _FLUX_VAE),
        attention=Attention(24, 24, 128, pixels_a_token=16, text_tokens=512, masked=True),
        settings=ModelSettings(40, 3.0, "", 1024, 1024, _SIZES_1024, multiple=16),
        source=Source("lodestones/Chroma1-HD", _WHOLE, 27_500 * _MB, _SAFE),
        companions=(_make_gguf("silveroxides/Chroma1-HD-GGUF", "Chroma1-HD-Q4_0.gguf", 5_430 * _MB, "Apache-2.0"), _TINY_FLUX),
        licence="Apache-2.0",
        note=say("catalog.chroma", "Many styles, with negative prompts. Its 40 steps take far longer than the 4 of FLUX.1 schnell, and it filters nothing."),
    ),
    Model(
        "flux2-klein", "picture", "flux2-klein", "FLUX.2 klein 4B",
        parts=(_QWEN3_4B, ModelPart("transformer", "denoiser", 3_875_544_576), ModelPart("vae", "vae", 84_046_115, half_is_safe=False)),
        attention=Attention(24, 24, 128, pixels_a_token=16, text_tokens=512, masked=True),
        settings=ModelSettings(4, 1.0, "", 1024, 1024, _SIZES_1024, multiple=16),
        source=Source("black-forest-labs/FLUX.2-klein-4B", _WHOLE, 15_980 * _MB, _SAFE),
        companions=(_make_gguf("unsloth/FLUX.2-klein-4B-GGUF", "flux-2-klein-4b-Q4_K_M.gguf", 2_605 * _MB, "Apache-2.0"),),
        licence="Apache-2.0",
        note=say("catalog.klein", "New and fast: 4 steps. Can also edit a picture as you describe."),
    ),
    Model(
        "z-image-turbo", "picture", "z-image", "Z-Image Turbo",
        parts=(_QWEN3_4B, ModelPart("transformer", "denoiser", 6_154_908_736, half_is_safe=False, scales=True), _FLUX_VAE),
        attention=Attention(30, 30, 128, pixels_a_token=16, text_tokens=512, masked=True),
        settings=ModelSettings(9, 0.0, "", 1024, 1024, _SIZES_1024, multiple=16),
        source=Source("Tongyi-MAI/Z-Image-Turbo", _WHOLE, 32_900 * _MB, _SAFE),
        companions=(_make_gguf("unsloth/Z-Image-Turbo-GGUF", "z-image-turbo-Q4_K_M.gguf", 5 * _GB, "Apache-2.0"), _TINY_FLUX),
        licence="Apache-2.0",
        note=say("catalog.z-image", "Realistic pictures and readable text in 9 steps. Understands English and Chinese."),
    ),
    Model(
        "lumina-2", "picture", "lumina-2", "Lumina Image 2.0",
        parts=(_GEMMA_2, ModelPart("transformer", "denoiser", 2_609_769_152, half_is_safe=False), _FLUX_VAE),
        attention=Attention(24, 24, 96, pixels_a_token=16, text_tokens=256),
        settings=ModelSettings(30, 4.0, "", 1024, 1024, _SIZES_1024, multiple=16),
        # Its encoder and its transformer are published in float32 only.
        source=Source("Alpha-VLLM/Lumina-Image-2.0", _WHOLE, 21_250 * _MB, _SAFE),
        companions=(_TINY_FLUX,), licence="Apache-2.0, Gemma",
        note=say("catalog.lumina-2",
            "A small model that follows long prompts, with negative prompts. It reads them with Gemma 2, which Google's terms hold for."),
    ),
)  # fmt: skip

BY_ID: Final = {model.id: model for model in (*CATALOG, *RECOGNISERS, *ALL_READERS, *ENLARGERS)}

CONFIGS: Final = {
    "sd15": Companion("configs", Source("stable-diffusion-v1-5/stable-diffusion-v1-5", _CONFIGS, 2 * _MB, _SAFE)),
    "sdxl": Companion("configs", Source("stabilityai/stable-diffusion-xl-base-1.0", _CONFIGS, 4 * _MB, _SAFE)),
    "sd3": Companion(
        "configs", Source("stabilityai/stable-diffusion-3.5-medium", _CONFIGS, 6 * _MB, (*_SAFE, "text_encoders/*", "*/*.fp16*"))
    ),
    "flux": Companion("configs", Source("black-forest-labs/FLUX.1-schnell", _CONFIGS, 5 * _MB, _SAFE)),
    "chroma": Companion("configs", Source("lodestones/Chroma1-HD", _CONFIGS, 4 * _MB, _SAFE)),
    "flux2-klein": Companion("configs", Source("black-forest-labs/FLUX.2-klein-4B", _CONFIGS, 16 * _MB, _SAFE)),
    "z-image": Companion("configs", Source("Tongyi-MAI/Z-Image-Turbo", _CONFIGS, 16 * _MB, _SAFE)),
    "lumina-2": Companion("configs", Source("Alpha-VLLM/Lumina-Image-2.0", _CONFIGS, 22 * _MB, _SAFE)),
}
"""A single file holds weights only; its configs and tokenizer come from its base model, a few megabytes, and so do parts that it lacks."""


BEST: Final = {
    "speech": ("dia-1.6b", "vibevoice-1.5b", "pocket-tts", "phonon-31m", "starter-voice"),
    "picture": (
        "z-image-turbo", "flux2-klein", "flux1-schnell", "chroma1-hd", "sdxl", "sd35-medium", "lumina-2", "ssd-1b", "sdxl-lightning", "ssd-1b-lcm",
        "sdxl-turbo", "pixart-sigma", "sd15", "starter-painter",
    ),
}  # fmt: skip
"""If no model is named, the first installed one of these is used."""
OFFERED: Final[Mapping[str, str]] = {"speech": "dia-1.6b", "picture": "sd15"}
"""The greeting offers this model, and it is offered where a small one does not know a word."""
EDITOR: Final = "flux2-klein"
"""It is offered where no installed model changes a picture by words."""


def choose_best(kind: KindName, there: Callable[[Model], bool]) -> Model:
    """Choose the first installed model of `BEST`; the starters come with Hearth, so there always is one."""
    return next((BY_ID[id_] for id_ in BEST[kind] if there(BY_ID[id_])), BY_ID[BEST[kind][-1]])


def name_model(id_: str) -> str:
    """Return the title of a model by its id, in English. The page asks each second, so no file is read."""
    return BY_ID[id_].title if id_ in BY_ID else detect.name_path(Path(id_))


def find_credit(id_: object) -> str:
    """Return who is to be credited beside what was made with a model of the catalog."""
    return BY_ID[id_].credit if isinstance(id_, str) and id_ in BY_ID else ""


def list_credits(settings: Mapping[str, Any]) -> str:
    """Return who is to be credited beside what was made with these settings: for its model, and those of its cast."""
    cast = settings.get("cast")
    models = [
        settings.get("model"),
        *(each.get("model") for each in (cast if isinstance(cast, list | tuple) else ()) if isinstance(each, dict)),
    ]
    return ", ".join(dict.fromkeys(filter(None, map(find_credit, models))))


def look(wanted: str) -> Seen:
    """Look at a local folder or file."""
    return local_models.look(wanted, (BY_ID, CONFIGS))


def look_at_all(wanted: Iterable[str], wait_s: float = local_models.WAIT_S) -> dict[str, Seen]:
    """Look at several local folders or files at once."""
    return local_models.look_at_all(wanted, (BY_ID, CONFIGS), wait_s)


def find(wanted: str, kind: ModelKind | None = None) -> Model:
    """Find a model by id, or a local folder or file; raise a Trouble with the nearest names, of that kind alone if one is given."""
    if wanted in BY_ID:
        return BY_ID[wanted]
    seen = look(wanted)
    if seen.there or not seen.answers:
        return seen.require_model()
    if "/" in wanted or "\\" in wanted:
        raise Trouble(
            say("catalog.no-path", "There is no model at {wanted}: no such file or folder is there.", wanted=wanted[:200]), cure="models"
        )
    known = {id_: model for id_, model in BY_ID.items() if kind in (None, model.kind)}
    named = {**{id_: id_ for id_ in known}, **{model.title.lower(): id_ for id_, model in known.items()}}
    near = dict.fromkeys(named[each] for each in difflib.get_close_matches(wanted[:200].lower(), named, n=2 * NEAR_MOST, cutoff=0.45))
    raise Trouble(_name_unknown(wanted[:200] or "''", tuple(near)[:NEAR_MOST]), cure="models")


def _name_unknown(wanted: str, near: tuple[str, ...]) -> Sentence:
    if near:
        return say(
            "catalog.unknown", "Hearth knows no model, file or folder named {wanted}. Did you mean: {near}?", wanted=wanted, near=near
        )
    return say(
        "catalog.none-near",
        "Hearth knows no model, file or folder named {wanted}. The Models tab and {hearth} models list all.",
        wanted=wanted,
    )
