"""What the settings of a request are called in sentences."""

from __future__ import annotations

from typing import Final

from app.sentence import Sentence, say

NAMES: Final[dict[str, Sentence]] = {
    "script": say("setting.script", "script"),
    "prompt": say("setting.prompt", "prompt"),
    "negative prompt": say("setting.negative", "negative prompt"),
    "guidance": say("setting.guidance", "guidance"),
    "temperature": say("setting.temperature", "temperature"),
    "top p": say("setting.top-p", "top p"),
    "cfg filter": say("setting.cfg-filter", "guidance filter"),
    "speed": say("setting.speed", "speed"),
    "loudness": say("setting.loudness", "loudness"),
    "silence at the end": say("setting.tail", "silence at the end"),
    "length": say("setting.length", "length"),
    "seed": say("setting.seed", "seed"),
    "width": say("setting.width", "width"),
    "height": say("setting.height", "height"),
    "steps": say("setting.steps", "steps"),
    "batch": say("setting.batch", "number of pictures"),
    "upscale": say("setting.upscale", "upscale"),
    "preview every": say("setting.preview", "steps between previews"),
    "strength": say("setting.strength", "strength"),
}


def name_weight(path: str) -> Sentence:
    return say("setting.lora-weight", "weight of {path}", path=path)
