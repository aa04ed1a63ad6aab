"""Test the starter painter: the shipped weights paint captions, the judge and the model card are right, training runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from diffusers import StableDiffusionImg2ImgPipeline, StableDiffusionInpaintPipeline, StableDiffusionPipeline
from PIL import Image

from assets.starter.training.painter.captions import say, words_of
from assets.starter.training.painter.card import HEAD, rows
from assets.starter.training.painter.draw import draw
from assets.starter.training.painter.evaluate import FIRST_TEST_SEED, load, missed, paint, score, unseen
from assets.starter.training.painter.judge import faults
from assets.starter.training.painter.model import MAX_BYTES
from assets.starter.training.painter.pack import pack
from assets.starter.training.painter.scenes import COLOURS, SHAPES, Scene, scene
from assets.starter.training.painter.train import SMOKE, train
from tests.support.places import TOP

FOLDER = TOP / "assets" / "starter" / "painter"
CARD = json.loads((FOLDER / "starter.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pipeline() -> StableDiffusionPipeline:
    return load(FOLDER)


def test_the_shipped_weights_paint_unseen_captions(pipeline: StableDiffusionPipeline) -> None:
    """Scores have to reach the card's, within the noise of a small sample."""
    asked, settings = unseen(FIRST_TEST_SEED, 8), CARD["settings"]
    pictures = paint(pipeline, [caption for _, caption in asked], 256, settings["steps"], settings["guidance"])
    scores = score(pictures, [s for s, _ in asked])
    assert scores["background_right"] == 1, scores
    assert scores["place_right"] >= 7 / 8 and scores["colour_right"] >= 6 / 8, scores
    assert scores["all_right"] >= 5 / 8, scores
    wrong = score(pictures, [s for s, _ in unseen(FIRST_TEST_SEED + 8, 8)])
    assert wrong["all_right"] == 0 and wrong["background_right"] < 0.5, "the judge takes these for other captions too"


def test_another_caption_is_another_picture(pipeline: StableDiffusionPipeline) -> None:
    """The picture follows the prompt, not the noise: with the same noise, another caption gives another picture."""
    settings = CARD["settings"]
    first, second = CARD["examples"][0], CARD["examples"][4]
    one, other = (paint(pipeline, [caption], 256, settings["steps"], settings["guidance"])[0] for caption in (first, second))
    assert np.abs(one.astype(float) - other).mean() > 20


def test_the_same_weights_go_on_from_a_picture_and_fill_a_hole(pipeline: StableDiffusionPipeline) -> None:
    asked = Scene("one", "white", (replace(scene_of("circle", "red")),))
    start, noise = Image.fromarray(draw(asked, 256)), torch.Generator("cpu").manual_seed(1)
    onwards = StableDiffusionImg2ImgPipeline.from_pipe(pipeline, requires_safety_checker=False)
    caption = "a blue circle on a white background"
    changed = onwards(caption, image=start, strength=0.8, num_inference_steps=20, guidance_scale=3.0, generator=noise).images[0]
    assert faults(np.asarray(changed), asked), "nothing was changed"
    filling = StableDiffusionInpaintPipeline.from_pipe(pipeline, requires_safety_checker=False)
    mask = np.zeros((256, 256), np.uint8)
    mask[:, 128:] = 255
    filled = filling(
        "a red circle on a white background", image=start, mask_image=Image.fromarray(mask), height=256, width=256,
        num_inference_steps=20, guidance_scale=3.0, generator=noise, strength=1.0,
    ).images[0]  # fmt: skip
    kept = np.abs(np.asarray(filled).astype(float) - np.asarray(start))[:, :112].mean()
    assert kept < 6, "the kept half was painted over"


def scene_of(kind: str, colour: str):  # type: ignore[no-untyped-def]
    return next(
        t for seed in range(10_000) for t in scene(seed).things if (t.kind, t.colour, t.place, t.size) == (kind, colour, "middle", "medium")
    )


def test_the_judge_finds_true_drawings_right() -> None:
    wrong = {seed: found for seed in range(100) if (found := faults(draw(scene(seed, True), 256), scene(seed, True)))}
    assert len(wrong) < 2, wrong


def test_the_judge_finds_one_wrong_thing() -> None:
    """Each drawing is compared with a scene that differs in one respect."""
    checked = 0
    for seed in range(60):
        asked = scene(seed, True)
        drawn = draw(asked, 256)
        if asked.pattern == "landscape":
            wrong = [replace(asked, mountains=not asked.mountains), replace(asked, things=asked.things[1:])]
            wrong = wrong if asked.things else wrong[:1]
        else:
            first = asked.things[0]
            kind = SHAPES[(SHAPES.index(first.kind) + 1) % len(SHAPES)]
            colour = COLOURS[(COLOURS.index(first.colour) + 1) % len(COLOURS)]
            wrong = [
                replace(asked, things=(replace(first, **change), *asked.things[1:]))
                for change in ({"kind": kind}, {"colour": colour}, {"size": "big" if first.size != "big" else "small"})
            ]
            wrong.append(replace(asked, things=(*asked.things, first)))
        for scene_asked in wrong:
            assert faults(drawn, scene_asked), (seed, scene_asked)
            checked += 1
    assert checked > 100


def test_the_card_tells_the_truth() -> None:
    scores, readme = CARD["scores"], (FOLDER / "README.md").read_text(encoding="utf-8")
    assert missed(scores, CARD["gate"]) == []
    assert HEAD + rows(scores) in readme
    assert set(words_of([say(scene(seed), seed) for seed in range(500)])) <= set(CARD["words"])
    assert set(words_of(CARD["examples"])) <= set(CARD["words"])


def test_a_missed_promise_is_told() -> None:
    scores, least = CARD["scores"], CARD["gate"]["256px"]["all_right"]
    worse = scores | {"256px": scores["256px"] | {"all_right": least - 0.01}}
    assert len(missed(worse, CARD["gate"])) == 1
    assert len(missed(scores | {"judges_own_error": 0.02}, CARD["gate"])) == 1


def test_the_folder_is_small_and_whole() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES
    assert {"vocab.json", "merges.txt", "tokenizer_config.json"} <= {path.name for path in (FOLDER / "tokenizer").iterdir()}
    assert not [path for path in files if path.suffix in (".bin", ".pt", ".pth", ".pkl", ".ckpt")]


def test_two_steps_of_everything(tmp_path: Path) -> None:
    lines = list(train(tmp_path, SMOKE))
    assert any(line.startswith("unet 2/2") for line in lines)
    assert any(line.startswith("grown 2/2") for line in lines)
    assert 0 < pack(tmp_path, tmp_path / "packed", SMOKE.as_facts) <= MAX_BYTES
    assert str(tmp_path) not in "".join(path.read_text("utf-8") for path in (tmp_path / "packed").rglob("*.json"))
    assert load(tmp_path / "packed").unet.config.in_channels == 4
