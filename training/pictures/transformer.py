"""Train a small transformer on the painter's own drawings, to measure what reusing its blocks loses: python -m training.pictures.transformer."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import torch
from diffusers import AutoencoderKL, PixArtTransformer2DModel
from numpy.typing import NDArray
from torch import Tensor
from transformers import CLIPTextModel, CLIPTokenizer

from app.engine.pictures.run import reuse
from app.engine.pictures.run.reuse import Reuse
from training.pictures import data
from training.pictures.evaluate import FIRST_TUNING_SEED, score, unseen
from training.pictures.model import make_scheduler
from training.pictures.sketch import WIDTH
from training.pictures.text import TOKENS, tokens_of
from training.pictures.unet import Course, Sketched, train_unet

SHIPPED: Final = Path(__file__).parents[2] / "assets" / "starter" / "painter"
LAYERS: Final = 10
DRAWINGS, STEPS = 8_000, 1_200
GUIDANCE: Final = 1.5
SMALLEST_OFF: Final = 1e-10
CASES: Final = (
    ("full", 20, None), ("a little", 20, -1.0), ("much, at 0.05", 20, 0.05), ("much, at 0.10", 20, 0.1), ("much, at 0.15", 20, 0.15),
    ("much, at 0.25", 20, 0.25), ("much, always", 20, math.inf), ("fewer steps", 15, None), ("fewer steps", 12, None), ("fewer steps", 10, None),
)  # fmt: skip
"""Settings, steps, and how far the first block's answer may move; None: no step reuses; below 0: only how far guidance pulls."""


class Painter(PixArtTransformer2DModel):
    """PixArt's transformer, called as a UNet is."""

    def forward(self, noisy: Tensor, when: Tensor, hidden: Tensor, return_dict: bool = True) -> Any:
        times = torch.as_tensor(when).expand(len(noisy))
        return super().forward(noisy, encoder_hidden_states=hidden, timestep=times, return_dict=return_dict)


def make_painter() -> Painter:
    return Painter(
        num_attention_heads=4,
        attention_head_dim=WIDTH // 4,
        in_channels=4,
        out_channels=4,
        num_layers=LAYERS,
        cross_attention_dim=WIDTH,
        sample_size=32,
        patch_size=4,
    )


def train(work: Path, steps: int) -> Iterator[str]:
    """Train it on latents of drawings and their sketches; resumes from the work folder."""
    work.mkdir(parents=True, exist_ok=True)
    yield from data.write_latents(work, DRAWINGS)
    yield from data.write_sketches(work, DRAWINGS)
    torch.manual_seed(0)
    yield from train_unet(make_painter(), Sketched(work), Course("transformer", steps, 16), work)


def load_words() -> tuple[CLIPTextModel, CLIPTokenizer]:
    encoder = CLIPTextModel.from_pretrained(SHIPPED / "text_encoder", dtype=torch.float32).eval()
    return encoder, CLIPTokenizer.from_pretrained(SHIPPED / "tokenizer", model_max_length=TOKENS)


@torch.no_grad()
def paint(painter: Painter, hidden: Sequence[Tensor], steps: int, kept_of: Callable[[], Reuse]) -> tuple[list[Tensor], float]:
    """Paint the latents of a picture for each of these, a seed each, through what decides what a step reuses; return them and the processor's seconds."""
    scheduler, found = make_scheduler(), list[Tensor]()
    began_s = time.process_time()
    for seed, both in enumerate(hidden):
        scheduler.set_timesteps(steps)
        latents = torch.randn(1, 4, 32, 32, generator=torch.Generator().manual_seed(seed))
        kept = kept_of()
        with kept.remembering():
            for index, when in enumerate(scheduler.timesteps):
                answer = kept.compute(index, painter.forward, latents.expand(2, -1, -1, -1), when, both, return_dict=False)[0]
                plain, prompted = answer.chunk(2)
                latents = scheduler.step(plain + GUIDANCE * (prompted - plain), when, latents, return_dict=False)[0]
        found.append(latents)
    return found, time.process_time() - began_s


@torch.no_grad()
def measure(work: Path, count: int) -> Iterator[str]:
    """Paint captions kept out of training in full and with each setting, and compare."""
    painter = Painter.from_pretrained(work / "transformer").eval()
    vae = AutoencoderKL.from_pretrained(SHIPPED / "vae", torch_dtype=torch.float32).eval()
    encoder, tokenizer = load_words()
    told = unseen(FIRST_TUNING_SEED, count)
    scenes = [each for each, _ in told]
    hidden = [encoder(tokens_of(tokenizer, ["", caption])).last_hidden_state for _, caption in told]
    inner = list[int]()
    painter.transformer_blocks[1].attn1.register_forward_hook(lambda *_: inner.append(1))
    full: list[NDArray[np.uint8]] = []
    full_s = 1.0
    for name, steps, change in CASES:
        inner.clear()
        with patch.object(reuse, "MOST_CHANGE", change):
            latents, seconds = paint(painter, hidden, steps, partial(_make_reuse, painter, change))
        pictures = [_decode(vae, each) for each in latents]
        full, full_s = full or pictures, seconds if not full else full_s
        off = [a.astype(float) - b for a, b in zip(pictures, full, strict=True)]
        mean = np.mean([np.abs(each).mean() for each in off])
        ratios = [10 * math.log10(255**2 / max(SMALLEST_OFF, (each**2).mean())) for each in off]
        right = score(pictures, scenes)[0]["all_right"]
        spared = 1 - len(inner) / count / steps
        yield (
            f"{name:22} {steps:2} steps  inner blocks spared in {spared:.2f}  time {seconds / full_s:.2f}  off by {mean:.2f} of 255  "
            f"PSNR {np.mean(ratios):.1f} dB, least {min(ratios):.1f}  right {right:.3f}"
        )


def _make_reuse(painter: Painter, change: float | None) -> Reuse:
    return Reuse(lambda index: change is not None and index % 2 == 1, painter if change is not None and change > 0 else None)


def _decode(vae: AutoencoderKL, latents: Tensor) -> NDArray[np.uint8]:
    shown = (vae.decode(latents / vae.config.scaling_factor).sample[0] / 2 + 0.5).clamp(0, 1)
    found: NDArray[np.uint8] = (shown.permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.pictures.transformer", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("transformer-work"), help="where data and weights go")
    parser.add_argument("--steps", type=int, default=STEPS, help="of training")
    parser.add_argument("--count", type=int, default=24, help="captions to paint, a seed each")
    given = parser.parse_args()
    for line in chain(train(given.work, given.steps), measure(given.work, given.count)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
