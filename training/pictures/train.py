"""Do the parts of the training, in their order or one alone; each leaves its files in the work folder and resumes from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from training.pictures import data
from training.pictures.autoencoder import begin_autoencoder, train_autoencoder
from training.pictures.captions import say
from training.pictures.left import write_left
from training.pictures.model import make_autoencoder, make_unet, train_tokenizer
from training.pictures.scenes import scene
from training.pictures.text import TOKENS, make_text_encoder, train_text_encoder
from training.pictures.unet import Course, Sketched, Written, train_unet

AMOUNTS = {
    "sketches": 40_000,
    "latents": 30_000,
    "large": 1_800,
    "text": 5_000,
    "unet": 8_000,
    "autoencoder": 4_000,
    "left": 0,
    "decoder": 2_000,
}
"""The parts stand in their order, with how many pictures or steps each takes."""
SMOKE = {"sketches": 4, "latents": 4, "large": 8, "text": 2, "unet": 2, "autoencoder": 2, "left": 0, "decoder": 4}
CAPTIONS_FOR_TOKENIZER = 20_000
FIRST_RATE, LATER_RATE = 3e-3, 1.5e-3


def _tokenizer(work: Path, earlier: Path | None) -> CLIPTokenizer:
    if not (work / "tokenizer").exists():
        if earlier:
            shutil.copytree(earlier / "tokenizer", work / "tokenizer")
        else:
            train_tokenizer([say(scene(seed), seed) for seed in range(CAPTIONS_FOR_TOKENIZER)], work / "tokenizer", TOKENS)
    return CLIPTokenizer.from_pretrained(work / "tokenizer", model_max_length=TOKENS)


def _train_text(work: Path, steps: int, earlier: Path | None, batch: int) -> Iterator[str]:
    tokenizer = _tokenizer(work, earlier)
    encoder = CLIPTextModel.from_pretrained(earlier / "text_encoder", dtype=torch.float32) if earlier else make_text_encoder(tokenizer)
    yield from train_text_encoder(encoder, tokenizer, work, steps, batch, LATER_RATE if earlier else FIRST_RATE)
    (work / "text-done").touch()


def _train_unet(work: Path, steps: int, earlier: Path | None, batch: int) -> Iterator[str]:
    """Paint from sketches by formula until the text encoder is done, then from what it writes."""
    done = (work / "text-done").exists()
    source = Written(work, CLIPTextModel.from_pretrained(work / "text"), _tokenizer(work, earlier)) if done else Sketched(work)
    unet = UNet2DConditionModel.from_pretrained(earlier / "unet", torch_dtype=torch.float32) if earlier else make_unet()
    yield from train_unet(unet, source, Course("unet", steps, batch, LATER_RATE if earlier else FIRST_RATE), work)


def _train_autoencoder(work: Path, part: str, steps: int, earlier: Path | None, batch: int) -> Iterator[str]:
    """Begin with true latents; the decoder's own part goes on from there with those that the UNet left."""
    pictures, left, rate = np.load(work / "large.npy", mmap_mode="r"), None, LATER_RATE
    if part == "decoder":
        model, left = AutoencoderKL.from_pretrained(work / "autoencoder" / "vae"), np.load(work / "left.npy")
    elif earlier:
        model = AutoencoderKL.from_pretrained(earlier / "vae", torch_dtype=torch.float32)
    else:
        model, rate = make_autoencoder(), FIRST_RATE
        begin_autoencoder(model, pictures)
    yield from train_autoencoder(model, pictures, left, steps=steps, batch=batch, rate=rate, keep=work / part)


def do_part(part: str, work: Path, amount: int, earlier: Path | None, small: bool = False) -> Iterator[str]:
    """Do one part; yield lines of progress. `earlier` is a packed edition whose parts are trained further; `small` batches
    are for tests."""
    torch.manual_seed(0)
    if part in data.WRITERS:
        yield from data.WRITERS[part](work, amount)
    elif part == "text":
        yield from _train_text(work, amount, earlier, 2 if small else 48)
    elif part == "unet":
        yield from _train_unet(work, amount, earlier, 2 if small else 16)
    elif part in ("autoencoder", "decoder"):
        yield from _train_autoencoder(work, part, amount, earlier, 1 if small else 3)
    elif part == "left":
        yield from write_left(work, UNet2DConditionModel.from_pretrained(work / "unet").eval().requires_grad_(False))


def train(work: Path, amounts: Mapping[str, int], parts: Sequence[str], earlier: Path | None = None, small: bool = False) -> Iterator[str]:
    work.mkdir(parents=True, exist_ok=True)
    for part in parts:
        yield from do_part(part, work, amounts[part], earlier, small)
