"""Train the text encoder to write sketches: its last 64 places, which are padding to any caption, each tell of one cell, and draw it roughly."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from training.muon import Muon
from training.pictures.captions import say
from training.pictures.data import FIRST_SEED
from training.pictures.scenes import Scene, scene
from training.pictures.sketch import CELLS, NOTHING, ROUGH_AT, THING_AT, USED, WIDTH, complete, sketch

CAPTION_TOKENS = 48
TOKENS = CAPTION_TOKENS + CELLS * CELLS
FIRST_CHECK_SEED = 50_000_000
EMPTY_SHARE = 0.04
THINGS_WEIGH = 4.0


def make_text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer),
            hidden_size=WIDTH,
            intermediate_size=4 * WIDTH,
            projection_dim=WIDTH,
            num_hidden_layers=7,
            num_attention_heads=4,
            max_position_embeddings=TOKENS,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def tokens_of(tokenizer: CLIPTokenizer, captions: Sequence[str]) -> Tensor:
    ids = tokenizer(list(captions), padding="max_length", max_length=TOKENS, truncation=True, return_tensors="pt").input_ids
    return torch.as_tensor(ids)


def full_sketch(rows: Tensor) -> Tensor:
    """Return what the whole encoder ought to write: constants where the caption stands, then the sketch."""
    head = NOTHING.expand(len(rows), CAPTION_TOKENS, WIDTH)
    return torch.cat([head, complete(rows)], 1)


def weights_of(rows: Tensor) -> Tensor:
    """Weigh cells that hold a thing."""
    return 1 + (THINGS_WEIGH - 1) * (rows[..., THING_AT : THING_AT + 1] > 0.5)


def _loss(found: Tensor, rows: Tensor) -> Tensor:
    cells, head = found[:, CAPTION_TOKENS:], found[:, :CAPTION_TOKENS]
    off = ((cells[..., :USED] - rows) ** 2 * weights_of(rows)).mean() + 0.3 * ((cells - complete(rows)) ** 2).mean()
    return off + 0.02 * ((head - NOTHING) ** 2).mean()


class Reader:
    """Hands out captions with their sketches."""

    def __init__(self, work: Path, tokenizer: CLIPTokenizer, seed: int) -> None:
        self.tokenizer, self.rng = tokenizer, np.random.default_rng(seed)
        self.sketches = np.load(work / "sketches.npy", mmap_mode="r")
        self.scenes: dict[int, Scene] = {}
        self.empty = sketch(None)

    def take(self, count: int) -> tuple[Tensor, Tensor]:
        chosen = np.sort(self.rng.integers(len(self.sketches), size=count))
        rows = self.sketches[chosen].astype(np.float32)
        captions = []
        for place, i in enumerate(int(i) for i in chosen):
            if i not in self.scenes:
                self.scenes[i] = scene(FIRST_SEED + i)
            captions.append(say(self.scenes[i], int(self.rng.integers(1 << 40))))
            if self.rng.random() < EMPTY_SHARE:
                captions[-1], rows[place] = "", self.empty
        return tokens_of(self.tokenizer, captions), torch.from_numpy(rows)


@torch.no_grad()
def missed_share(encoder: CLIPTextModel, tokenizer: CLIPTokenizer, count: int = 300) -> tuple[float, float]:
    """Return how much of the sketches' variance the encoder misses on held-out captions: of what is said, and of what is drawn."""
    scenes = [scene(FIRST_CHECK_SEED + i, True) for i in range(count)]
    rows = torch.from_numpy(np.stack([sketch(s) for s in scenes]))
    found = [
        encoder(tokens_of(tokenizer, [say(s, i) for i, s in enumerate(scenes)][at : at + 50])).last_hidden_state
        for at in range(0, count, 50)
    ]
    off = torch.cat(found)[:, CAPTION_TOKENS:, :USED] - rows
    spread = rows - rows.mean((0, 1))
    told = slice(1, ROUGH_AT), slice(ROUGH_AT, USED)
    said, drawn = ((off[..., part].pow(2).sum() / spread[..., part].pow(2).sum()).item() for part in told)
    return said, drawn


def train_text_encoder(
    encoder: CLIPTextModel, tokenizer: CLIPTokenizer, work: Path, steps: int, batch: int = 48, rate: float = 4e-3
) -> Iterator[str]:
    """Train in place, resuming from work/text.pt; keep work/text."""
    torch.manual_seed(2)
    inner = [w for name, w in encoder.named_parameters() if w.ndim == 2 and ".layers." in name]
    outer = [w for name, w in encoder.named_parameters() if not (w.ndim == 2 and ".layers." in name)]
    steppers = [Muon(inner, rate), torch.optim.AdamW(outer, 0.5 * rate, betas=(0.9, 0.97), weight_decay=0.0)]
    first, kept = 0, work / "text.pt"
    if kept.exists():
        state = torch.load(kept, weights_only=True)
        first = int(state["step"])
        encoder.load_state_dict(state["encoder"])
        for stepper, held in zip(steppers, state["steppers"], strict=True):
            stepper.load_state_dict(held)
    reader, began_s, losses = Reader(work, tokenizer, 7 + first), time.monotonic(), []
    for step in range(first, steps):
        share = min(1.0, (step + 1) / 100) * min(1.0, (steps - step) / (0.6 * steps))
        for stepper, own in zip(steppers, (1.0, 0.5), strict=True):
            stepper.param_groups[0]["lr"] = rate * own * share
        tokens, rows = reader.take(batch)
        with torch.autocast("cpu", torch.bfloat16):
            found = encoder(tokens).last_hidden_state
        loss = _loss(found.float(), rows)
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        for stepper in steppers:
            stepper.step()
            stepper.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 100 == 99 or step == steps - 1:
            torch.save(
                {"step": step + 1, "encoder": encoder.state_dict(), "steppers": [s.state_dict() for s in steppers]},
                kept.with_suffix(".new"),
            )
            kept.with_suffix(".new").replace(kept)
            encoder.save_pretrained(work / "text")
            said, drawn = missed_share(encoder, tokenizer, 100)
            yield f"text {step + 1}/{steps} loss {np.mean(losses[-100:]):.4f} missed {said:.3f} drawn {drawn:.3f} {time.monotonic() - began_s:.0f} s"
