"""Paint captions whose scenes were kept out of training, look at the pictures, and count what is wrong."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusers import StableDiffusionPipeline
from numpy.typing import NDArray
from PIL import Image

from app.engine.pictures.scenes.match import understand, vary
from app.engine.pictures.scenes.tables import make_tables
from training.pictures.captions import grammar, say
from training.pictures.draw import draw, place_things
from training.pictures.looking import FAULTS, faults, shows
from training.pictures.scenes import Scene, scene
from training.pictures.told import misread
from training.pictures.world import COLOURS, NOUNS

TABLES = make_tables(grammar())
FIRST_TEST_SEED = 90_000_000  # never used to train or to choose anything
FIRST_TUNING_SEED = 70_000_000
SIZE = 256
VARIED = 24  # captions, each painted with two seeds
SURE = 30  # so many scenes are drawn to see how far the eye of the code can be trusted


def load(folder: Path) -> StableDiffusionPipeline:
    pipeline = StableDiffusionPipeline.from_pretrained(folder, local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def unseen(first_seed: int, count: int) -> list[tuple[Scene, str]]:
    """Return scenes that were held out from training, with a caption each."""
    scenes = [scene(first_seed + i, held_out=True) for i in range(count)]
    return [(s, say(s, first_seed + i)) for i, s in enumerate(scenes)]


def filled(caption: str, seed: int, negative: str = "") -> tuple[str, Scene]:
    """Return what a person gets who types this: the caption that the reader makes of it for a seed, and its scene."""
    written = vary(understand(caption, negative, TABLES), TABLES, seed)
    found = understand(written, "", TABLES).scene
    return written, Scene(found.groups, found.background, found.ground, found.time or "day", found.weather, found.mountains, found.style)


def paint(
    pipeline: StableDiffusionPipeline, captions: Sequence[str], steps: int, guidance: float, first_seed: int = 0
) -> list[NDArray[np.uint8]]:
    """Paint one picture per caption, each with its own seed."""
    found: list[NDArray[np.uint8]] = []
    for start in range(0, len(captions), 8):
        part = list(captions[start : start + 8])
        noise = [torch.Generator("cpu").manual_seed(first_seed + start + i) for i in range(len(part))]
        pictures = pipeline(
            part, height=SIZE, width=SIZE, num_inference_steps=steps, guidance_scale=guidance, generator=noise, output_type="np"
        )
        found += [np.round(picture * 255).astype(np.uint8) for picture in pictures.images]
    return found


def score(pictures: Sequence[NDArray[np.uint8]], scenes: Sequence[Scene]) -> tuple[dict[str, float], list[list[str]]]:
    """Return the share of pictures that are right, and without each kind of fault; and all faults."""
    found = [faults(picture, asked) for picture, asked in zip(pictures, scenes, strict=True)]
    wrong: Counter[str] = Counter(kind for each in found for kind in {fault.split(":")[0] for fault in each})
    right = {"all": [not each for each in found],
             "plain": [not each for each, s in zip(found, scenes, strict=True) if not s.ground],
             "landscapes": [not each for each, s in zip(found, scenes, strict=True) if s.ground]}  # fmt: skip
    scores = {f"{name}_right": sum(each) / len(each) for name, each in right.items() if each}
    scores |= {f"{kind}_right": 1 - wrong[kind] / len(scenes) for kind in FAULTS}
    return {name: round(value, 4) for name, value in scores.items()}, found


def variety(pipeline: StableDiffusionPipeline, captions: Sequence[str], steps: int, guidance: float) -> float:
    """Return by how much of 255 two seeds' pictures of one caption differ, in the mean of all pixels."""
    seeds = 1000, 2000
    one, other = (paint(pipeline, [filled(each, seed + i)[0] for i, each in enumerate(captions)], steps, guidance, seed) for seed in seeds)
    return float(np.mean([np.abs(a.astype(float) - b).mean() for a, b in zip(one, other, strict=True)]))


def unwanted_gone(pipeline: StableDiffusionPipeline, typed: Sequence[str], steps: int, guidance: float) -> float:
    """Name a thing of each caption that has several as unwanted; return how often it is not where it would have been."""
    asked = [
        (caption, found)
        for caption, (_, found) in zip(typed, map(filled, typed, range(len(typed))), strict=True)
        if len({group.kind for group in found.groups}) > 1
    ][:VARIED]
    captions = [filled(caption, i, found.groups[-1].kind)[0] for i, (caption, found) in enumerate(asked)]
    pictures = paint(pipeline, captions, steps, guidance)
    return 1 - sum(shows(each, s, s.groups[-1].kind) for each, (_, s) in zip(pictures, asked, strict=True)) / max(1, len(asked))


def contact_sheet(pictures: Sequence[NDArray[np.uint8]], across: int) -> Image.Image:
    rows = [np.concatenate(list(pictures[i : i + across]), 1) for i in range(0, len(pictures) - across + 1, across)]
    return Image.fromarray(np.concatenate(rows))


def altered(asked: Scene, rng: random.Random) -> NDArray[np.uint8] | None:
    """Draw the scene with one thing of another kind or colour, or without it; None where there is no thing."""
    spots = place_things(asked)
    if not spots:
        return None
    index = rng.randrange(len(spots))
    spot, own = spots[index], {spots[index].colour, *NOUNS[spots[index].kind].natural}
    changes = [replace(spot, kind=rng.choice([kind for kind in NOUNS if kind != spot.kind])), None]
    changes += [replace(spot, colour=rng.choice(other))] if (other := [colour for colour in COLOURS if colour not in own]) else []
    changed = rng.choice(changes)
    return draw(asked, SIZE, spots=[*spots[:index], *([changed] if changed else []), *spots[index + 1 :]])


def sureness(scenes: Sequence[Scene]) -> dict[str, float]:
    """Return in how many true drawings the eye of the code finds no fault, and in how many with one thing altered it finds one."""
    rng = random.Random(1)
    others = [(drawing, asked) for asked in scenes if (drawing := altered(asked, rng)) is not None]
    return {
        "true_drawings_right": round(sum(not faults(draw(s, SIZE), s) for s in scenes) / len(scenes), 4),
        "altered_drawings_found": round(sum(bool(faults(drawing, asked)) for drawing, asked in others) / len(others), 4),
    }


def evaluate(
    folder: Path, typed: Sequence[str], told: Sequence[Mapping[str, Any]], settings: dict[str, Any], sheet: Path | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Measure the packed weights with these captions; return scores, and for each picture its caption with its faults. `told`: what each
    caption means, where a person wrote it down; a caption that is read otherwise is wrong."""
    pipeline, count = load(folder), len(typed)
    read = [filled(caption, seed) for seed, caption in enumerate(typed)]
    scenes = [s for _, s in read]
    began_s = time.monotonic()
    pictures = paint(pipeline, [caption for caption, _ in read], settings["steps"], settings["guidance"])
    seconds = (time.monotonic() - began_s) / count
    scores: dict[str, Any]
    scores, found = score(pictures, scenes)
    wrong = [misread(each, s) for each, s in zip(told, scenes, strict=True)] if told else [[]] * count
    if told:
        scores["read_right"] = round(sum(not each for each in wrong) / count, 4)
        scores["read_and_all_right"] = round(sum(not one and not other for one, other in zip(wrong, found, strict=True)) / count, 4)
    if sheet is not None:
        contact_sheet(pictures[:60], 10).save(sheet)
    scores |= {"captions": count, "seconds_a_picture": round(seconds, 2)} | sureness(scenes[:SURE])
    scores["seeds_differ"] = round(variety(pipeline, typed[:VARIED], settings["steps"], settings["guidance"]), 1)
    scores["unwanted_gone"] = round(unwanted_gone(pipeline, typed, settings["steps"], settings["guidance"]), 4)
    lines = [
        f"{one} -> {other}: {'; '.join((*misread_as, *faulty)) or 'right'}"
        for one, (other, _), misread_as, faulty in zip(typed, read, wrong, found, strict=True)
    ]
    return scores, lines


def missed(scores: dict[str, Any], gate: dict[str, float]) -> list[str]:
    """List the promised scores that these miss."""
    return [f"{name} {scores[name]:.3f}, promised {least:.3f}" for name, least in gate.items() if scores[name] < least]


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
