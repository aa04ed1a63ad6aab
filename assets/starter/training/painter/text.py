"""Train the text encoder first: every slot of the scene must be readable from its hidden states."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.painter.captions import say
from assets.starter.training.painter.model import TEXT_WIDTH, TOKENS
from assets.starter.training.painter.scenes import COLOURS, COLUMNS, GROUNDS, PLACES, RELATIONS, SHAPES, SIZES, TIMES, Scene, Thing, scene

_NONE = ("",)
_KINDS = (*_NONE, *SHAPES)
_COLOURS = (*_NONE, *COLOURS)
_COLUMNS = (*_NONE, *COLUMNS)
SLOTS: dict[str, tuple[str, ...]] = {
    "pattern": ("one", "pair", "row", "landscape"), "background": (*COLOURS, *TIMES), "relation": (*_NONE, *RELATIONS),
    "count": ("0", "1", "2", "3"), "first kind": _KINDS, "first colour": _COLOURS, "first size": (*_NONE, *SIZES),
    "first place": (*_NONE, *PLACES), "second kind": _KINDS, "second colour": _COLOURS, "second size": (*_NONE, *SIZES),
    "ground": (*_NONE, *GROUNDS), "mountains": ("False", "True"), "clouds": ("False", "True"),
    "light": (*_NONE, "sun", "moon", "crescent moon"), "light place": _COLUMNS, "house colour": _COLOURS,
    "house place": _COLUMNS, "boat colour": _COLOURS, "boat place": _COLUMNS, "tree": (*_NONE, "tree", "pine"),
    "tree place": _COLUMNS, "second tree place": _COLUMNS,
}  # fmt: skip


def slots_of(scene: Scene) -> list[int]:
    """Return the class of each slot."""
    said = {"pattern": scene.pattern, "background": scene.background, "relation": scene.relation, "ground": scene.ground,
            "mountains": str(scene.mountains), "clouds": str(scene.clouds)}  # fmt: skip
    if scene.pattern == "landscape":
        by_kind: dict[str, list[Thing]] = {}
        for thing in scene.things:
            name = "light" if "moon" in thing.kind or thing.kind == "sun" else thing.kind
            by_kind.setdefault("tree" if name == "pine" else name, []).append(thing)
        for name, things in by_kind.items():
            said[f"{name} place"] = things[0].place
            if name in ("light", "tree"):
                said[name] = things[0].kind
            else:
                said[f"{name} colour"] = things[0].colour
            if len(things) == 2:
                said["second tree place"] = things[1].place
    else:
        said["count"] = str(len(scene.things))
        for name, thing in zip(("first", "second"), scene.things[: 2 if scene.pattern == "pair" else 1], strict=False):
            said |= {f"{name} kind": thing.kind, f"{name} colour": thing.colour, f"{name} size": thing.size, f"{name} place": thing.place}
    empty = {"count": "0"}
    return [classes.index(said.get(name, empty.get(name, ""))) for name, classes in SLOTS.items()]


class _Reader(nn.Module):
    """Read the slots as a UNet would, by attention over the hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(len(SLOTS), TEXT_WIDTH) * 0.5)
        self.attention = nn.MultiheadAttention(TEXT_WIDTH, 4, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(TEXT_WIDTH, len(classes)) for classes in SLOTS.values())

    def forward(self, hidden: Tensor) -> list[Tensor]:
        seen, _ = self.attention(self.queries.expand(len(hidden), -1, -1), hidden, hidden, need_weights=False)
        return [head(seen[:, i]) for i, head in enumerate(self.heads)]


def tokens_of(tokenizer: CLIPTokenizer, captions: list[str], padding: str = "max_length") -> Tensor:
    ids = tokenizer(captions, padding=padding, max_length=TOKENS, truncation=True, return_tensors="pt").input_ids
    return torch.as_tensor(ids)


def _batch(tokenizer: CLIPTokenizer, seeds: range, held_out: bool, padding: str = "max_length") -> tuple[Tensor, Tensor]:
    scenes = [scene(seed, held_out) for seed in seeds]
    captions = [say(s, seed) for s, seed in zip(scenes, seeds, strict=True)]
    return tokens_of(tokenizer, captions, padding), torch.tensor([slots_of(s) for s in scenes])


def train_text_encoder(
    encoder: CLIPTextModel, tokenizer: CLIPTokenizer, steps: int, keep: Path, first_seed: int = 20_000_000
) -> Iterator[str]:
    """Train in place on new scenes; yield lines of progress with the score on held-out scenes."""
    torch.manual_seed(2)
    batch, reader = 32, _Reader()
    parameters = [*encoder.parameters(), *reader.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1.5e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-3, total_steps=steps, pct_start=0.05)
    began_s = time.monotonic()
    for step in range(steps):
        first = first_seed + step * batch
        tokens, slots = _batch(tokenizer, range(first, first + batch), False, "max_length" if step % 8 == 0 else "longest")
        logits = reader(encoder(tokens).last_hidden_state)
        loss = torch.stack([functional.cross_entropy(x, slots[:, i]) for i, x in enumerate(logits)]).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 99 or step == steps - 1:
            with torch.no_grad():
                tokens, slots = _batch(tokenizer, range(50_000_000, 50_000_200), True)
                right = torch.stack([x.argmax(1) for x in reader(encoder(tokens).last_hidden_state)], 1) == slots
            encoder.save_pretrained(keep)
            share, whole = right.float().mean().item(), right.all(1).float().mean().item()
            yield f"text {step + 1}/{steps} loss {loss.item():.4f} slots {share:.4f} all {whole:.3f} {time.monotonic() - began_s:.0f} s"
