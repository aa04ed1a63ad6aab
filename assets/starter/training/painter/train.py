"""Train all parts of the painter, without those that the work folder already has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.painter.autoencoder import train_autoencoder
from assets.starter.training.painter.captions import say
from assets.starter.training.painter.data import FIRST_SEED, read_pictures, write_pictures
from assets.starter.training.painter.growing import write_examples
from assets.starter.training.painter.model import TOKENS, make_text_encoder, make_unet
from assets.starter.training.painter.scenes import scene
from assets.starter.training.painter.text import train_text_encoder
from assets.starter.training.painter.unet import Course, Source, train_unet
from assets.starter.training.pictures.growing import grown, train_grown
from assets.starter.training.pictures.model import make_autoencoder, train_tokenizer

PARTS = ("autoencoder", "unet", "grown")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The amounts of training data and steps; the seeds are beside what they seed."""

    pictures_128: int = 36_000
    pictures_256: int = 2_000
    captions_for_tokenizer: int = 20_000
    text_steps: int = 1_200
    autoencoder_steps: int = 7_000
    unet_steps: int = 45_000
    unet_decay_steps: int = 24_000
    batch_128: int = 8
    batch_256: int = 2
    share_256: float = 0.0
    peak_rate: float = 1e-3
    examples: int = 1_600
    grown_steps: int = 2_000
    batch_grown: int = 3

    @property
    def as_facts(self) -> dict[str, int | float]:
        return asdict(self)


SMOKE = Recipe(8, 4, 400, 2, 2, 2, 1, 2, 1, 0.5, examples=4, grown_steps=2, batch_grown=2)


def train(work: Path, recipe: Recipe, parts: Sequence[str] = PARTS) -> Iterator[str]:
    """Train into work/tokenizer, text, vae, unet and grown/vae; yield lines of progress. Autoencoder and UNet may train side by side;
    the larger decoder comes last because it learns from the UNet's latents."""
    work.mkdir(parents=True, exist_ok=True)
    yield from write_pictures(work, 128, recipe.pictures_128)
    yield from write_pictures(work, 256, recipe.pictures_256)
    small, big = read_pictures(work, 128), read_pictures(work, 256)
    if "autoencoder" in parts and not (work / "vae").exists():
        torch.manual_seed(0)
        yield from train_autoencoder(make_autoencoder(), [small, small, big], recipe.autoencoder_steps, work / "vae")
    if not {"unet", "grown"} & {*parts}:
        return
    if not (work / "tokenizer").exists():
        train_tokenizer([say(scene(seed), seed) for seed in range(recipe.captions_for_tokenizer)], work / "tokenizer", TOKENS)
    tokenizer = CLIPTokenizer.from_pretrained(work / "tokenizer", model_max_length=TOKENS)
    torch.manual_seed(0)
    if not (work / "text").exists():
        yield from train_text_encoder(make_text_encoder(tokenizer), tokenizer, recipe.text_steps, work / "text")
    encoder = CLIPTextModel.from_pretrained(work / "text").eval().requires_grad_(False)
    if "unet" in parts:
        course = Course(
            Source(small, FIRST_SEED[128], recipe.batch_128), Source(big, FIRST_SEED[256], recipe.batch_256), recipe.share_256,
            recipe.unet_steps, recipe.unet_decay_steps, recipe.peak_rate,
        )  # fmt: skip
        yield from train_unet(make_unet(), encoder, tokenizer, course, work)
    if "grown" in parts:
        unet = UNet2DConditionModel.from_pretrained(work / "unet").eval().requires_grad_(False)
        yield from write_examples(work, unet, encoder, tokenizer, recipe.examples)
        large = grown(AutoencoderKL.from_pretrained(work / "vae"))
        yield from train_grown(large, np.load(work / "examples.npy", mmap_mode="r"), np.load(work / "left.npy"), recipe.grown_steps,
                               recipe.batch_grown, work / "grown")  # fmt: skip
