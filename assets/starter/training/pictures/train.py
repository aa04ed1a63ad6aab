"""Do the parts of the training, in their order or one alone; each leaves its files in the work folder and resumes from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.pictures import data
from assets.starter.training.pictures.autoencoder import train_autoencoder
from assets.starter.training.pictures.captions import say
from assets.starter.training.pictures.growing import grown, train_grown
from assets.starter.training.pictures.judge import train_judge
from assets.starter.training.pictures.left import write_left
from assets.starter.training.pictures.model import make_autoencoder, make_unet, train_tokenizer
from assets.starter.training.pictures.scenes import scene
from assets.starter.training.pictures.text import TOKENS, make_text_encoder, train_text_encoder
from assets.starter.training.pictures.unet import Course, Sketched, Written, train_unet

BEGUN = Path(__file__).with_name("begun")
AMOUNTS = {
    "sketches": 40_000, "latents": 30_000, "drawings": 12_000, "large": 1_600, "text": 2_600, "unet": 5_400, "autoencoder": 7_000,
    "left": 0, "decoder": 2_000, "judge": 3_000,
}  # fmt: skip
"""The parts in their order, with how many pictures or steps each takes."""
SMOKE = {
    "sketches": 4,
    "latents": 4,
    "drawings": 4,
    "large": 2,
    "text": 2,
    "unet": 2,
    "autoencoder": 2,
    "left": 0,
    "decoder": 2,
    "judge": 2,
}
CAPTIONS_FOR_TOKENIZER = 20_000


def _tokenizer(work: Path) -> CLIPTokenizer:
    if not (work / "tokenizer").exists():
        train_tokenizer([say(scene(seed), seed) for seed in range(CAPTIONS_FOR_TOKENIZER)], work / "tokenizer", TOKENS)
    return CLIPTokenizer.from_pretrained(work / "tokenizer", model_max_length=TOKENS)


def _begun_unet() -> UNet2DConditionModel:
    """Go on from the weights that are kept beside the scripts, if there are any."""
    return UNet2DConditionModel.from_pretrained(BEGUN / "unet", torch_dtype=torch.float32) if (BEGUN / "unet").exists() else make_unet()


def _train_unet(work: Path, steps: int, batch: int) -> Iterator[str]:
    """Paint from sketches by formula until the text encoder is done, then from what it writes."""
    done = (work / "text-done").exists()
    source = Written(work, CLIPTextModel.from_pretrained(work / "text"), _tokenizer(work)) if done else Sketched(work)
    yield from train_unet(_begun_unet(), source, Course("unet", steps, batch), work)


def _train_decoder(work: Path, steps: int, earlier: Path | None, batch: int) -> Iterator[str]:
    vae = (
        AutoencoderKL.from_pretrained(earlier / "vae", torch_dtype=torch.float32)
        if earlier
        else grown(AutoencoderKL.from_pretrained(work / "small"))
    )
    yield from train_grown(vae, np.load(work / "large.npy", mmap_mode="r"), np.load(work / "left.npy"), steps, batch, work)


def do_part(part: str, work: Path, amount: int, earlier: Path | None, small: bool = False) -> Iterator[str]:
    """Do one part; yield lines of progress. `earlier` is a packed edition whose autoencoder is trained further; `small` batches
    are for tests."""
    torch.manual_seed(0)
    if part in ("sketches", "latents", "drawings", "large"):
        yield from data.WRITERS[part](work, amount)
    elif part == "text":
        tokenizer = _tokenizer(work)
        yield from train_text_encoder(make_text_encoder(tokenizer), tokenizer, work, amount, 2 if small else 48)
        (work / "text-done").touch()
    elif part == "unet":
        yield from _train_unet(work, amount, 2 if small else 16)
    elif part == "autoencoder" and earlier is None:
        yield from train_autoencoder(make_autoencoder(), np.load(work / "drawings.npy", mmap_mode="r"), amount, work / "small")
    elif part == "left":
        yield from write_left(work, UNet2DConditionModel.from_pretrained(work / "unet").eval().requires_grad_(False))
    elif part == "decoder":
        yield from _train_decoder(work, amount, earlier, 2 if small else 3)
    elif part == "judge":
        pictures = np.load(work / "drawings.npy", mmap_mode="r")
        scenes = [scene(data.FIRST_DRAWING_SEED + i) for i in range(len(pictures))]
        yield from train_judge(pictures, scenes, work, amount, 2 if small else 24)


def train(work: Path, amounts: Mapping[str, int], parts: Sequence[str], earlier: Path | None = None, small: bool = False) -> Iterator[str]:
    work.mkdir(parents=True, exist_ok=True)
    for part in parts:
        yield from do_part(part, work, amounts[part], earlier, small)
