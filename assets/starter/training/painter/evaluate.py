"""Paint unseen captions with the packed pipeline, score the pictures, and compare the scores with the required ones."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers import StableDiffusionPipeline
from numpy.typing import NDArray
from PIL import Image

from assets.starter.training.painter.captions import say
from assets.starter.training.painter.draw import draw
from assets.starter.training.painter.judge import faults
from assets.starter.training.painter.scenes import Scene, scene

FIRST_TEST_SEED = 90_000_000  # never used to train or to choose anything
FIRST_TUNING_SEED = 70_000_000
FAULT_KINDS = ("background", "count", "place", "shape", "size", "colour")


def load(folder: Path) -> StableDiffusionPipeline:
    pipeline = StableDiffusionPipeline.from_pretrained(folder, local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def unseen(first_seed: int, count: int) -> list[tuple[Scene, str]]:
    """Return scenes that were held out from training, with a caption each."""
    scenes = [scene(first_seed + i, held_out=True) for i in range(count)]
    return [(s, say(s, first_seed + i)) for i, s in enumerate(scenes)]


def paint(
    pipeline: StableDiffusionPipeline, captions: Sequence[str], size: int, steps: int, guidance: float, first_seed: int = 0
) -> list[NDArray[np.uint8]]:
    """Paint one picture per caption, each with its own seed."""
    found: list[NDArray[np.uint8]] = []
    batch = 8
    for start in range(0, len(captions), batch):
        part = list(captions[start : start + batch])
        noise = [torch.Generator("cpu").manual_seed(first_seed + start + i) for i in range(len(part))]
        pictures = pipeline(
            part, height=size, width=size, num_inference_steps=steps, guidance_scale=guidance, generator=noise, output_type="np"
        ).images
        found += [np.round(picture * 255).astype(np.uint8) for picture in pictures]
    return found


def score(pictures: Sequence[NDArray[np.uint8]], scenes: Sequence[Scene]) -> dict[str, float]:
    """Return the share of correct pictures, and of those without each kind of fault."""
    wrong: Counter[str] = Counter()
    right: dict[str, list[bool]] = {"shapes": [], "landscapes": []}
    for picture, asked in zip(pictures, scenes, strict=True):
        found = faults(picture, asked)
        wrong.update({fault.split(":")[0] for fault in found})
        right["landscapes" if asked.pattern == "landscape" else "shapes"].append(not found)
    count = len(scenes)
    scores = {"all_right": sum(sum(r) for r in right.values()) / count}
    scores |= {f"{name}_all_right": sum(r) / len(r) for name, r in right.items() if r}
    scores |= {f"{kind}_right": 1 - wrong[kind] / count for kind in FAULT_KINDS}
    return {name: round(value, 4) for name, value in scores.items()} | {"captions": count}


def judges_own_error(count: int, size: int = 256) -> float:
    """Return how often the judge finds fault with correct drawings."""
    scenes = [scene(FIRST_TEST_SEED + i, held_out=True) for i in range(count)]
    return sum(bool(faults(draw(s, size), s)) for s in scenes) / count


def contact_sheet(pictures: Sequence[NDArray[np.uint8]], across: int) -> Image.Image:
    rows = [np.concatenate(list(pictures[i : i + across]), 1) for i in range(0, len(pictures) - across + 1, across)]
    return Image.fromarray(np.concatenate(rows))


def evaluate(folder: Path, count: int, first_seed: int, sheet: Path | None = None) -> dict[str, Any]:
    """Measure all scores of the packed weights."""
    card = json.loads((folder / "starter.json").read_text(encoding="utf-8"))
    settings, pipeline = card["settings"], load(folder)
    scores: dict[str, Any] = {}
    size, asked = settings["size"], unseen(first_seed, count)
    began_s = time.monotonic()
    pictures = paint(pipeline, [caption for _, caption in asked], size, settings["steps"], settings["guidance"])
    scores[f"{size}px"] = score(pictures, [s for s, _ in asked])
    scores[f"{size}px"]["seconds_a_picture"] = round((time.monotonic() - began_s) / count, 2)
    if sheet is not None:
        contact_sheet(pictures[:64], 8).save(sheet)
    scores["judges_own_error"] = judges_own_error(2 * count)
    return scores


def missed(scores: dict[str, Any], gate: dict[str, Any]) -> list[str]:
    """List the required scores that these miss."""
    found = [
        f"256px: {name} {scores['256px'][name]:.3f}, promised {least:.3f}"
        for name, least in gate["256px"].items()
        if scores["256px"][name] < least
    ]
    if scores["judges_own_error"] >= gate["judges_own_error"]:
        found.append(f"the judge errs in {scores['judges_own_error']:.3f}, allowed {gate['judges_own_error']:.3f}")
    return found
