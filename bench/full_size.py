"""Write models of full size as folders, with random weights, so that a bench needs no download: Dia 1.6B, Pocket TTS, Phonon, VibeVoice, SD 1.5,
SDXL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import diffusers
import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import BPE, Unigram
from tokenizers.pre_tokenizers import ByteLevel
from transformers.initialization import no_init_weights

libraries: Any = SimpleNamespace(diffusers=diffusers, transformers=transformers)
"""The classes of both are made by untyped calls, so it is Any."""
BLOCK: Final = 1_000_003
"""All weights repeat so many random numbers. The count is prime, so that no two rows of a matrix get the same ones."""
SPREAD: Final = 0.02
LETTERS: Final = [chr(code) for code in range(33, 127)]


def write_voice(folder: Path, dtype: torch.dtype, layers: int | None = None) -> Path:
    """Write Dia 1.6B, with so many decoder layers, and its codec, which is small and whole; it never ends by itself."""
    config: Any = transformers.DiaConfig()
    if layers is not None:
        config.decoder_config.num_hidden_layers = layers
        config.encoder_config.num_hidden_layers = min(layers, config.encoder_config.num_hidden_layers)
    model = _make(transformers.DiaForConditionalGeneration, dtype, config)
    model.logits_dense.weight[config.decoder_config.eos_token_id] = 0  # others are likelier, and the end is made of the likeliest alone
    model.save_pretrained(folder)
    transformers.DiaTokenizer().save_pretrained(folder)
    codec = transformers.DacConfig(sampling_rate=44100)
    _make(transformers.DacModel, torch.float32, codec).save_pretrained(folder / "codec")
    return folder


def write_pocket(folder: Path, kind: str, layers: int | None = None) -> Path:
    """Write Pocket TTS or Phonon 31M, with so many layers, and its codec; it never ends by itself."""
    own = {"num_hidden_layers": 4, "intermediate_size": 1536} if kind == "phonon" else {}
    if layers is not None:
        own["num_hidden_layers"] = layers
    flow = {"num_hidden_layers": 5, "condition_dim": 768} if kind == "phonon" else {}
    name = "GradiumPhononTTS" if kind == "phonon" else "PocketTTS"
    config = getattr(transformers, f"{name}Config")(**own, flow_head_config=flow)
    model = _make(getattr(transformers, f"{name}ForConditionalGeneration"), torch.float32, config)
    model.latent_mean.zero_()
    model.latent_std.fill_(1)
    model.generation_config = libraries.transformers.GenerationConfig(
        do_sample=True, temperature=0.3, num_flow_steps=1, eos_threshold=-4.0, min_frames_before_eos=10_000, return_dict_in_generate=True
    )
    model.save_pretrained(folder)
    pieces = [("<unk>", 0.0), *((letter, -8.0) for letter in ("▁", *LETTERS))]
    Tokenizer(Unigram(pieces, 0, False)).save(str(folder / "tokenizer.json"))
    libraries.transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), unk_token="<unk>").save_pretrained(folder)
    sound: dict[str, Any] = {"encoder_config": None} if kind == "phonon" else {}
    codec = _make(transformers.PocketTTSAudioTokenizerModel, torch.float32, transformers.PocketTTSAudioTokenizerConfig(**sound))
    codec.save_pretrained(folder / "codec")
    return folder


def write_vibevoice(folder: Path, layers: int | None = None) -> Path:
    """Write VibeVoice 1.5B as it is published, in bfloat16, with so many layers of its language model; it never ends by itself: all signs are as
    likely, and the one of a frame comes first."""
    text = {
        "model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": layers or 28,
        "num_attention_heads": 12, "num_key_value_heads": 2, "max_position_embeddings": 65_536, "rope_theta": 1_000_000.0, "tie_word_embeddings": True,
    }  # fmt: skip
    config = transformers.VibeVoiceConfig(text_config=text, audio_token_id=151_643, eos_token_id=151_654, pad_token_id=151_654)
    model = _make(transformers.VibeVoiceForConditionalGeneration, torch.bfloat16, config)
    model.lm_head.weight.data = model.model.language_model.embed_tokens.weight.data.zero_()
    model.generation_config = libraries.transformers.GenerationConfig(
        do_sample=False,
        guidance_scale=1.3,
        noise_scheduler_class="DPMSolverMultistepScheduler",
        eos_token_id=151_654,
        pad_token_id=151_654,
        noise_scheduler_config={"beta_schedule": "squaredcos_cap_v2", "prediction_type": "v_prediction"},
    )
    model.save_pretrained(folder)
    pieces = {each: index for index, each in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(pieces, []))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "Qwen2Tokenizer"}', "utf-8")
    return folder


def write_picture(family: str, folder: Path, dtype: torch.dtype = torch.float16, **own: Any) -> Path:
    """Write SD 1.5 or SDXL with a tokenizer of single letters, in the precision in which they are published. `own`: more settings of its UNet."""
    with _default_dtype(dtype), no_init_weights():
        pipe = PIPELINES[family](**own)
    for part in pipe.components.values():
        if isinstance(part, torch.nn.Module):
            draw(part.eval())
    pipe.save_pretrained(folder)
    return folder


def _make(kind: Any, dtype: torch.dtype, *config: Any) -> Any:
    """Make a model of this dtype in memory of its own, without the libraries' slow initialisation."""
    with _default_dtype(dtype), no_init_weights():
        model = kind(*config)
    return draw(model.eval())


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@torch.no_grad()
def draw(model: torch.nn.Module) -> torch.nn.Module:
    """Fill matrices with random numbers, and vectors (norms, biases) with ones and zeros, as a fresh layer has them."""
    block = torch.randn(BLOCK, generator=torch.Generator().manual_seed(0)) * SPREAD
    for name, weight in model.named_parameters():
        if weight.ndim < 2:
            weight.fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        for part in torch.split(weight.view(-1), BLOCK):
            part.copy_(block[: len(part)])
    return model.requires_grad_(False)


def make_sd15(**own: Any) -> Any:
    return libraries.diffusers.StableDiffusionPipeline(
        vae=_make_vae(sample_size=512),
        text_encoder=_make_clip(768, 12, 12),
        tokenizer=_make_tokenizer(),
        unet=libraries.diffusers.UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8, **own),
        scheduler=libraries.diffusers.PNDMScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1, skip_prk_steps=True
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def make_sdxl(**own: Any) -> Any:
    return libraries.diffusers.StableDiffusionXLPipeline(
        vae=_make_vae(sample_size=1024, scaling_factor=0.13025),
        text_encoder=_make_clip(768, 12, 12),
        text_encoder_2=_make_clip(1280, 32, 20, libraries.transformers.CLIPTextModelWithProjection),
        tokenizer=_make_tokenizer(),
        tokenizer_2=_make_tokenizer(),
        add_watermarker=False,
        unet=libraries.diffusers.UNet2DConditionModel(
            sample_size=128,
            cross_attention_dim=2048,
            block_out_channels=(320, 640, 1280),
            attention_head_dim=(5, 10, 20),
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
            transformer_layers_per_block=(1, 2, 10),
            use_linear_projection=True,
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=2816,
            **own,
        ),
        scheduler=libraries.diffusers.EulerDiscreteScheduler(
            beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, steps_offset=1
        ),
    )


PIPELINES: Final = {"sd15": make_sd15, "sdxl": make_sdxl}


def _make_vae(**more: Any) -> Any:
    return libraries.diffusers.AutoencoderKL(
        block_out_channels=(128, 256, 512, 512),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=2,
        latent_channels=4,
        **more,
    )


def _make_clip(hidden: int, layers: int, heads: int, kind: Any = libraries.transformers.CLIPTextModel) -> Any:
    return kind(
        libraries.transformers.CLIPTextConfig(
            vocab_size=49408,
            hidden_size=hidden,
            intermediate_size=4 * hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            projection_dim=hidden,
            bos_token_id=188,
            eos_token_id=189,
            pad_token_id=189,
        )
    ).eval()


def _make_tokenizer() -> Any:
    pieces = [*LETTERS, *(f"{each}</w>" for each in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    return libraries.transformers.CLIPTokenizer(vocab={piece: index for index, piece in enumerate(pieces)}, merges=[], model_max_length=77)
