"""Read the settings that Fooocus, SwarmUI and InvokeAI store in their pictures as JSON: a table of names for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from app.base.bounded_json import parse_json
from app.engine.pictures.files.foreign_settings import GRAPH, Found, Guide, RestoredSettings, list_lost, name_sampler, restore

_NUMBERS: Final = re.compile(r"\d{1,6}")
_WEIGHED: Final = re.compile(r"(?<!\\)\(([^()\\]*+)\)([+-]{1,9}+|\d{1,2}+(?:\.\d{1,4}+)?+)?|(?<![\w'-])(\w[\w']*+)([+-]{1,9}+)(?![\w+-])")
"""InvokeAI weighs words in brackets by a number behind them, and those and single words by plus and minus; brackets alone weigh nothing."""
_JOINED: Final = re.compile(r"\)\.(and|blend|swap)\(")
MORE, LESS = 1.1, 0.9
"""Each plus and each minus multiplies so much."""


@dataclass(frozen=True, slots=True)
class Names:
    """What a program calls each setting."""

    mark: str
    """It alone writes this field."""
    prompt: str
    negative: str
    guidance: tuple[str, ...]
    """The first that is there counts: what FLUX is told goes before the other one, which is 1 then."""
    sampler: str
    schedule: str = "scheduler"
    strength: str = ""
    within: str = ""
    """This field holds all of them; empty: they stand at the top."""
    usual: Mapping[str, Any] = field(default_factory=dict)
    """It always writes these, and they change nothing."""
    weighs_behind: bool = False
    """It writes weights behind the words, as InvokeAI does."""


PROGRAMS: Final = (
    Names("metadata_scheme", "prompt", "negative_prompt", ("guidance_scale",), "sampler", usual={"clip_skip": 2}),
    Names(
        "sui_image_params", "prompt", "negativeprompt", ("fluxguidancescale", "cfgscale"), "sampler", strength="initimagecreativity",
        within="sui_image_params",
    ),
    Names("positive_prompt", "positive_prompt", "negative_prompt", ("guidance", "cfg_scale"), "scheduler", "", strength="strength", weighs_behind=True),
)  # fmt: skip
"""Fooocus, SwarmUI and InvokeAI write these, in this order."""


def read_json(text: str) -> RestoredSettings:
    """Read the settings; raise a ValueError for JSON of another program."""
    whole = parse_json(text, GRAPH)
    names = next((each for each in PROGRAMS if isinstance(whole, dict) and each.mark in whole), None)
    if names is None:
        raise ValueError("no settings of a program that is known")
    told: Mapping[str, Any] = whole[names.within] if names.within else whole
    if not isinstance(told, Mapping):
        raise ValueError("no settings")
    model = told.get("base_model") or told.get("model") or ""
    sizes = _NUMBERS.findall(str(told.get("resolution", "")))
    width, height = sizes[:2] if len(sizes) >= 2 else (told.get("width"), told.get("height"))
    strength = told.get(names.strength) if names.strength else None
    beside = whole.get("sui_extra_data")  # where SwarmUI names the starting picture
    started = "initimage" in told or (isinstance(beside, Mapping) and "initimage_filename" in beside)
    from_picture = strength is not None and (started or str(told.get("generation_mode", "")).endswith(("img2img", "inpaint", "outpaint")))
    guidance = next((told[each] for each in names.guidance if told.get(each) is not None), None)
    worded = told.get(names.prompt), told.get(names.negative)  # InvokeAI repeats them as the prompts of the style
    texts = [str(each or "").strip() for each in worded]
    rewrite = rewrite_weights if names.weighs_behind else str
    joined = dict.fromkeys(f".{each}()" for text in texts for each in _JOINED.findall(text)) if names.weighs_behind else ()
    changed = {name: value for name, value in told.items() if names.usual.get(name) != value and value not in worded}
    return restore(
        Found(
            rewrite(texts[0]),
            rewrite(texts[1]),
            loras=tuple(list_loras(told)),
            sampler=name_sampler(str(told.get(names.sampler) or ""), str(told.get(names.schedule) or "") if names.schedule else ""),
            numbers={"steps": told.get("steps"), "guidance": guidance, "seed": told.get("seed"), "width": width, "height": height},
            model=str(model.get("name", "") if isinstance(model, dict) else model),
            strength=strength,
            from_picture=from_picture,
            guide=Guide() if any(told.get(each) for each in ("controlnetmodel", "controlnets", "t2iAdapters")) else None,
            referenced=any(told.get(each) for each in ("ipAdapters", "ref_images")),
            lost=(*list_lost(changed), *joined),
        )
    )


def rewrite_weights(prompt: str) -> str:
    """Return InvokeAI's prompt with its weights as A1111 writes them: (words:1.2)."""

    def rewrite(found: re.Match[str]) -> str:
        words, sign = (found[1], found[2] or "") if found[3] is None else (found[3], found[4])
        weight = (MORE ** sign.count("+") * LESS ** sign.count("-")) if sign[:1] in ("", "+", "-") else float(sign)
        return words if weight == 1 else f"({words}:{weight:.4g})"

    return _WEIGHED.sub(rewrite, prompt)


def list_loras(told: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return names and weights, which each program writes in another way."""
    found, weights = told.get("loras"), told.get("loraweights")
    if not isinstance(found, list):
        return []
    pairs: list[tuple[str, Any]] = []
    for place, each in enumerate(found):
        if isinstance(each, list | tuple) and len(each) >= 2:
            pairs.append((str(each[0]), each[1]))
        elif isinstance(each, dict):
            named = each.get("model", each.get("lora"))
            pairs.append(
                (str(named.get("name", named.get("model_name", ""))) if isinstance(named, dict) else str(named), each.get("weight", 1.0))
            )
        elif isinstance(each, str):
            pairs.append((each, weights[place] if isinstance(weights, list) and place < len(weights) else 1.0))
    return [(PurePath(name).stem if name.endswith(".safetensors") else name, weight) for name, weight in pairs if name]
