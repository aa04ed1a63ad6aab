"""Pack the trained parts as a diffusers folder in half precision, with the card that the engine reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from transformers import CLIPTextModel, CLIPTokenizer

from training.pictures.captions import grammar, say, words_of
from training.pictures.evaluate import write_json
from training.pictures.model import make_pipeline
from training.pictures.scenes import scene
from training.pictures.text import CAPTION_TOKENS, TOKENS

MAX_BYTES = 12_250_000
GOAL = 0.9
GATE = {"all_right": 0.4, "true_drawings_right": 0.9, "altered_drawings_found": 0.95}
SETTINGS: dict[str, Any] = {
    "steps": 16, "guidance": 1.5, "size": 256, "sizes": [256], "scheduler": "DDIMScheduler", "prediction_type": "v_prediction",
    "image_to_image_strength": 0.6,
}  # fmt: skip
EXAMPLES = [
    "green hills with a yellow house at the left and a rainbow",
    "the sea at sunset with a red lighthouse at the left, a white boat in the middle and mountains behind",
    "a red circle left of a blue square on a white background",
    "snowy hills at night with a moon at the right, a red house at the left and a pine in the middle",
    "a purple heart and a yellow star on a pink background",
    "a desert at sunset with a cactus at the left, a brown horse at the right and mountains behind",
]
DOMAIN = (
    "One to four things, out of 39 nouns in eleven colours and three sizes, before a plain background or in hills, snow, a desert or at sea, "
    "by day, at sunset or at night, with clouds, rain, falling snow, a rainbow or mountains; flat, as a watercolour, a pencil drawing or in lamplight."
)


def describe(training: dict[str, Any]) -> dict[str, Any]:
    """Return the card without its scores."""
    captions = [say(scene(seed), seed) for seed in range(20_000)]
    return {
        "id": "hearth/starter-painter",
        "name": "Starter painter",
        "licence": "Apache-2.0",
        "domain": DOMAIN,
        "words": sorted({*words_of(captions), *words_of(EXAMPLES)}),
        "grammar": grammar(),
        "longest_prompt_tokens": CAPTION_TOKENS,
        "examples": EXAMPLES,
        "settings": SETTINGS,
        "goal": GOAL,
        "gate": GATE,
        "training": training,
    }


def pack(work: Path, folder: Path, training: dict[str, Any]) -> int:
    """Replace the folder's weights and card, and return its size in bytes."""
    tokenizer = CLIPTokenizer.from_pretrained(work / "tokenizer", model_max_length=TOKENS)
    pipeline = make_pipeline(
        tokenizer,
        CLIPTextModel.from_pretrained(work / "text"),
        AutoencoderKL.from_pretrained(work / "decoder" / "vae"),
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
    write_json(folder / "starter.json", describe(training))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise ValueError(f"{folder} holds {size} bytes, more than the {MAX_BYTES} a starter may have; make the UNet narrower")
    return size
