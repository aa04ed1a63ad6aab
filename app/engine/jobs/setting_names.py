"""What the settings of a request are called in sentences."""

from __future__ import annotations

from typing import Final

from app.base.sentence import Sentence, say_to_all

NAMES: Final[dict[str, Sentence]] = {
    "script": say_to_all("setting.script", "script"),
    "prompt": say_to_all("setting.prompt", "prompt"),
    "negative prompt": say_to_all("setting.negative", "negative prompt"),
    "guidance": say_to_all("setting.guidance", "guidance"),
    "temperature": say_to_all("setting.temperature", "temperature"),
    "top p": say_to_all("setting.top-p", "top p"),
    "cfg filter": say_to_all("setting.cfg-filter", "guidance filter"),
    "speed": say_to_all("setting.speed", "speed"),
    "loudness": say_to_all("setting.loudness", "loudness"),
    "silence at the end": say_to_all("setting.tail", "silence at the end"),
    "length": say_to_all("setting.length", "length"),
    "seed": say_to_all("setting.seed", "seed"),
    "width": say_to_all("setting.width", "width"),
    "height": say_to_all("setting.height", "height"),
    "steps": say_to_all("setting.steps", "steps"),
    "batch": say_to_all("setting.batch", "number of pictures"),
    "upscale": say_to_all("setting.upscale", "upscale"),
    "preview every": say_to_all("setting.preview", "steps between previews"),
    "strength": say_to_all("setting.strength", "strength"),
}


def name_weight(path: str) -> Sentence:
    return say_to_all("setting.lora-weight", "weight of {path}", path=path)
