"""Make the painter's untrained parts (tokenizer, autoencoder, UNet) and the pipeline."""

from __future__ import annotations

import json
from pathlib import Path

from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPTextModel, CLIPTokenizer

from training.pictures.sketch import WIDTH

LATENT_FACTOR = 4  # from 128 px, half the decoded size
SCALING = 1.8  # brings the latents' spread near one
WORD_END = "</w>"


def make_autoencoder() -> AutoencoderKL:
    """Make a VAE for 256 px and 4 channels of 32 x 32. One norm group: more would remove flat colours."""
    widths = (16, 24, 48, 56)
    return AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * len(widths),
        up_block_types=("UpDecoderBlock2D",) * len(widths),
        block_out_channels=widths,
        layers_per_block=1,
        norm_num_groups=1,
        latent_channels=4,
        sample_size=256,
        mid_block_add_attention=False,
        scaling_factor=SCALING,
    )


def make_unet() -> UNet2DConditionModel:
    """Make a UNet that looks at the sketch and at itself where its latents are halved, at 256 and at 64 places."""
    return UNet2DConditionModel(
        sample_size=32,
        in_channels=4,
        out_channels=4,
        block_out_channels=(32, 64, 120),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=WIDTH,
        attention_head_dim=(2, 4, 6),
        norm_num_groups=8,
    )


def make_scheduler() -> DDIMScheduler:
    return DDIMScheduler(
        num_train_timesteps=1000,
        beta_start=1e-4,
        beta_end=0.02,
        beta_schedule="linear",
        clip_sample=False,
        steps_offset=1,
        set_alpha_to_one=True,
        prediction_type="v_prediction",
        timestep_spacing="trailing",
    )


def train_tokenizer(captions: list[str], folder: Path, tokens: int) -> CLIPTokenizer:
    """Make a byte-pair tokenizer like CLIP's with the domain's words as tokens; other words become bytes."""
    pairs = Tokenizer(models.BPE(end_of_word_suffix=WORD_END))
    pairs.normalizer = normalizers.Lowercase()
    pairs.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    pairs.train_from_iterator(captions, trainers.BpeTrainer(vocab_size=900, end_of_word_suffix=WORD_END, show_progress=False))
    merges = [tuple(pair) for pair in json.loads(pairs.to_str())["model"]["merges"]]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*letters, *(letter + WORD_END for letter in letters), *("".join(pair) for pair in merges)]
    names += ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {name: i for i, name in enumerate(dict.fromkeys(names))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=tokens)
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_pipeline(
    tokenizer: CLIPTokenizer, text_encoder: CLIPTextModel, autoencoder: AutoencoderKL, unet: UNet2DConditionModel
) -> StableDiffusionPipeline:
    return StableDiffusionPipeline(
        vae=autoencoder,
        text_encoder=text_encoder,
        tokenizer=tokenizer,
        unet=unet,
        scheduler=make_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
