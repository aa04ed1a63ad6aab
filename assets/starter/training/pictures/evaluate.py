"""Paint captions whose scenes were kept out of training, let the judge read the pictures, and count what is wrong."""

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

from assets.starter.training.pictures.captions import say
from assets.starter.training.pictures.draw import draw
from assets.starter.training.pictures.judge import Judge, Seen, see
from assets.starter.training.pictures.scenes import Scene, Spot, lay_out, scene
from assets.starter.training.pictures.world import NOUNS

FIRST_TEST_SEED = 90_000_000  # never used to train or to choose anything
FIRST_TUNING_SEED = 70_000_000
NEAR = 0.17  # so far from its place a thing may stand, as a share of the picture
SIZE_OFF = 0.36  # in logs: small and medium are .42 apart
FAULTS = ("whole", "count", "kind", "place", "colour", "size")


def load(folder: Path) -> StableDiffusionPipeline:
    pipeline = StableDiffusionPipeline.from_pretrained(folder, local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def unseen(first_seed: int, count: int) -> list[tuple[Scene, str]]:
    """Return scenes that were held out from training, with a caption each."""
    scenes = [scene(first_seed + i, held_out=True) for i in range(count)]
    return [(s, say(s, first_seed + i)) for i, s in enumerate(scenes)]


def paint(
    pipeline: StableDiffusionPipeline, captions: Sequence[str], steps: int, guidance: float, first_seed: int = 0
) -> list[NDArray[np.uint8]]:
    """Paint one picture of 256 px per caption, each with its own seed."""
    found: list[NDArray[np.uint8]] = []
    for start in range(0, len(captions), 8):
        part = list(captions[start : start + 8])
        noise = [torch.Generator("cpu").manual_seed(first_seed + start + i) for i in range(len(part))]
        pictures = pipeline(
            part, height=256, width=256, num_inference_steps=steps, guidance_scale=guidance, generator=noise, output_type="np"
        )
        found += [np.round(picture * 255).astype(np.uint8) for picture in pictures.images]
    return found


def _pairs(asked: Sequence[Spot], seen: Sequence[Spot]) -> list[tuple[Spot, Spot]]:
    """Match what was asked with what is seen, the nearest first, one to one."""
    ways = sorted(
        (abs(a.x - s.x) + abs(a.y - s.y) + 0.3 * (a.kind != s.kind), i, j) for i, a in enumerate(asked) for j, s in enumerate(seen)
    )
    pairs, left, right = [], set(), set()
    for _, i, j in ways:
        if i not in left and j not in right:
            left.add(i)
            right.add(j)
            pairs.append((asked[i], seen[j]))
    return pairs


def faults(seen: Seen, scene: Scene) -> list[str]:
    """List what is wrong as "kind: found for asked"."""
    wanted = {"ground": scene.ground, "weather": scene.weather, "mountains": scene.mountains, "style": scene.style}
    wanted |= {"time": scene.time} if scene.ground else {"background": scene.background} if scene.background else {}
    wrong = [f"whole: {seen.whole[name]} for {value or 'no ' + name}" for name, value in wanted.items() if seen.whole[name] != value]
    asked = lay_out(scene)
    if len(asked) != len(seen.things):
        wrong.append(f"count: {len(seen.things)} for {len(asked)}")
    sizes = {(group.kind, group.colour): group.size for group in scene.groups}
    for want, got in _pairs(asked, seen.things):
        if got.kind != want.kind:
            wrong.append(f"kind: {got.kind} for {want.kind}")
            continue
        if max(abs(got.x - want.x), abs(got.y - want.y)) > NEAR:
            wrong.append(f"place: {got.x:.2f} {got.y:.2f} for {want.x:.2f} {want.y:.2f} ({want.kind})")
        if got.colour not in ([want.colour] if want.colour else NOUNS[want.kind].natural):
            wrong.append(f"colour: {got.colour} {got.kind} for {want.colour or 'its own'}")
        if sizes[want.kind, want.colour] and abs(np.log(got.radius / want.radius)) > SIZE_OFF:
            wrong.append(f"size: {got.radius:.2f} for {want.radius:.2f} ({want.kind})")
    return wrong


def score(judge: Judge, pictures: Sequence[NDArray[np.uint8]], scenes: Sequence[Scene]) -> tuple[dict[str, float], list[list[str]]]:
    """Return the share of pictures that are right, and without each kind of fault; and all faults."""
    found = [faults(seen, asked) for at in range(0, len(scenes), 16)
             for seen, asked in zip(see(judge, np.stack(pictures[at : at + 16])), scenes[at : at + 16], strict=True)]  # fmt: skip
    wrong: Counter[str] = Counter(kind for each in found for kind in {fault.split(":")[0] for fault in each})
    right = {"all": [not each for each in found],
             "plain": [not each for each, s in zip(found, scenes, strict=True) if not s.ground],
             "landscapes": [not each for each, s in zip(found, scenes, strict=True) if s.ground]}  # fmt: skip
    scores = {f"{name}_right": sum(each) / len(each) for name, each in right.items() if each}
    scores |= {f"{kind}_right": 1 - wrong[kind] / len(scenes) for kind in FAULTS}
    return {name: round(value, 4) for name, value in scores.items()}, found


def variety(pipeline: StableDiffusionPipeline, captions: Sequence[str], steps: int, guidance: float) -> float:
    """Return by how much of 255 two seeds' pictures of one caption differ, in the mean of all pixels."""
    one, other = (paint(pipeline, captions, steps, guidance, seed) for seed in (1000, 2000))
    return float(np.mean([np.abs(a.astype(float) - b).mean() for a, b in zip(one, other, strict=True)]))


def contact_sheet(pictures: Sequence[NDArray[np.uint8]], across: int) -> Image.Image:
    rows = [np.concatenate(list(pictures[i : i + across]), 1) for i in range(0, len(pictures) - across + 1, across)]
    return Image.fromarray(np.concatenate(rows))


def evaluate(
    folder: Path, judge: Judge, count: int, first_seed: int, settings: dict[str, Any], sheet: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Measure the packed weights; return scores, and for each picture its caption with its faults."""
    pipeline, asked = load(folder), unseen(first_seed, count)
    captions = [caption for _, caption in asked]
    began_s = time.monotonic()
    pictures = paint(pipeline, captions, settings["steps"], settings["guidance"])
    seconds = (time.monotonic() - began_s) / count
    scores, found = score(judge, pictures, [s for s, _ in asked])
    if sheet is not None:
        contact_sheet(pictures[:64], 8).save(sheet)
    drawings = [draw(s, 256) for s, _ in asked]
    true, _ = score(judge, drawings, [s for s, _ in asked])
    scores |= {"captions": count, "seconds_a_picture": round(seconds, 2), "true_drawings_right": true["all_right"]}
    scores["seeds_differ"] = round(variety(pipeline, captions[:16], settings["steps"], settings["guidance"]), 1)
    return scores, [f"{caption}: {'; '.join(each) or 'right'}" for caption, each in zip(captions, found, strict=True)]


def missed(scores: dict[str, Any], gate: dict[str, float]) -> list[str]:
    """List the promised scores that these miss."""
    return [f"{name} {scores[name]:.3f}, promised {least:.3f}" for name, least in gate.items() if scores[name] < least]


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
