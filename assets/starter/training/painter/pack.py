"""Pack the trained parts as a diffusers folder in half precision, with the card that the engine reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from assets.starter.training.painter.captions import grammar, say, words_of
from assets.starter.training.painter.model import MAX_BYTES, TOKENS
from assets.starter.training.painter.scenes import scene
from assets.starter.training.pictures.model import make_pipeline

GOAL = 0.9  # all right at 256 px, what the starter ought to reach
GATE: dict[str, Any] = {  # what these weights promise; less is not released
    "256px": {
        "all_right": 0.9,
        "background_right": 0.98,
        "place_right": 0.98,
        "size_right": 0.98,
        "colour_right": 0.97,
        "shape_right": 0.92,
    },
    "judges_own_error": 0.02,
}
SETTINGS: dict[str, Any] = {
    "steps": 20, "guidance": 1.6, "size": 256, "sizes": [256], "scheduler": "DDIMScheduler",
    "prediction_type": "v_prediction", "image_to_image_strength": 0.6,
}  # fmt: skip
EXAMPLES = [
    "a red circle left of a blue square on a white background",
    "a calm sea at sunset with the sun in the middle, a white sailboat on the left and mountains behind",
    "three yellow stars in a row on a purple background",
    "snowy hills by night, a full moon on the right, a red house on the left and a pine tree in the middle",
    "a big pink heart on a black background",
    "green hills on a sunny day with a sun on the left, white clouds, a yellow cottage in the middle and a tree on the right",
]
DOMAIN = (
    "One to three flat shapes (circle, square, triangle, star, heart) in nine colours on a plain background, and small "
    "landscapes: hills, snow, dunes or the sea by day, at sunset or at night, with a sun or moon, mountains, clouds, a house, trees or a boat."
)


def describe(training: dict[str, Any]) -> dict[str, Any]:
    """Return the card without its scores."""
    captions = [say(scene(seed), seed) for seed in range(20_000)]
    return {
        "id": "hearth/starter-painter", "name": "Starter painter", "licence": "Apache-2.0", "domain": DOMAIN,
        "words": sorted({*words_of(captions), *words_of(EXAMPLES)}), "grammar": grammar(), "longest_prompt_tokens": TOKENS,
        "examples": EXAMPLES,
        "settings": SETTINGS, "goal": GOAL, "gate": GATE, "training": training,
    }  # fmt: skip


def pack(work: Path, folder: Path, training: dict[str, Any]) -> int:
    """Replace the folder and return its size in bytes."""
    tokenizer = CLIPTokenizer.from_pretrained(work / "tokenizer", model_max_length=TOKENS)
    pipeline = make_pipeline(
        tokenizer,
        CLIPTextModel.from_pretrained(work / "text"),
        AutoencoderKL.from_pretrained(work / "grown" / "vae"),
        UNet2DConditionModel.from_pretrained(work / "unet"),
    )
    for part in ("tokenizer", "text_encoder", "vae", "unet", "scheduler"):
        shutil.rmtree(folder / part, ignore_errors=True)
    pipeline.to(dtype=torch.float16)
    pipeline.save_pretrained(folder, safe_serialization=True)
    for part in ("text_encoder", "vae", "unet"):
        config_at = folder / part / "config.json"
        config = json.loads(config_at.read_text(encoding="utf-8"))
        config.pop("_name_or_path", None)  # the path of the training folder is private
        if part == "text_encoder":
            config["dtype"] = "float32"  # else transformers loads halves while diffusers loads floats, and a plain load can't paint
        config_at.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in ("vocab.json", "merges.txt"):  # the pipeline saves tokenizer.json alone
        shutil.copy(work / "tokenizer" / name, folder / "tokenizer" / name)
    (folder / "starter.json").write_text(json.dumps(describe(training), indent=1) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise ValueError(f"{folder} holds {size} bytes, more than the {MAX_BYTES} a starter may have; make the UNet narrower")
    return size
