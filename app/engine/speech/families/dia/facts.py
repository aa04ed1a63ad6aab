"""What a folder says of a Dia voice: its limits and its parts. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.base.regular_file import is_inside
from app.engine.models import safetensors
from app.engine.models.config_facts import read_config_if_there, refuse_fact
from app.engine.models.judged_files import judge_folder
from app.engine.models.model import Model
from app.engine.models.voice_limits import BYTES_LEAST, DIA, LONGEST_LEAST_S, NONVERBALS, RATES, VoiceLimits, clip_key


def describe(path: Path, catalog: Mapping[str, Model]) -> Model:
    """Describe a local Dia as a row like the catalog's."""
    judge_folder(path, ("codec",))
    like, own = catalog["dia-1.6b"], path / "codec"
    codec = safetensors.describe_part("codec", "codec", own) if own.is_dir() else like.parts[1]
    return replace(like, parts=(safetensors.describe_part("model", "speech", path), codec))


def read_limits(folder: Path, beside: Mapping[str, Path]) -> VoiceLimits:
    """Read the limits from config.json, the codec's config.json and, for a starter voice, starter.json."""
    sound_folder = folder / "codec" if (folder / "codec").is_dir() else beside.get("codec", folder)
    config, sound, starter = (
        read_config_if_there(folder, "config.json"),
        read_config_if_there(sound_folder, "config.json"),
        read_config_if_there(folder, "starter.json"),
    )
    rate = int(sound.get("sampling_rate", DIA.rate))
    hop = math.prod(sound.get("downsampling_ratios", (2, 4, 8, 8)))
    rows_most = int(config.get("decoder_config", {}).get("max_position_embeddings", DIA.rows_most))
    delay = max(config.get("delay_pattern", (DIA.delay,)))
    if not RATES[0] <= rate / hop <= RATES[1]:
        raise refuse_fact(sound_folder, "config.json", "sampling_rate", rate)
    if (rows_most - delay - 1) * hop / rate < LONGEST_LEAST_S:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", rows_most)
    most_s = (rows_most - delay - 1) * hop / rate
    most_s = min(most_s, float(starter.get("longest_s", most_s)))
    shared = most_s if starter else most_s / 2  # half is reserved for the previous part as voice prompt
    bytes_most = int(config.get("encoder_config", {}).get("max_position_embeddings", DIA.bytes_most))
    if bytes_most < BYTES_LEAST:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", bytes_most)
    return VoiceLimits(
        name=str(starter.get("name", DIA.name)),
        bytes_most=bytes_most,
        rows_most=rows_most,
        delay=delay,
        rate=rate,
        frame_rate=rate / hop,
        part_least_s=float(starter.get("part_least_s", 0.0)) if starter else DIA.part_least_s,
        part_aim_s=min(float(starter.get("part_aim_s", DIA.part_aim_s)), 0.8 * shared),
        part_most_s=min(float(starter.get("part_most_s", DIA.part_most_s)), shared),
        bytes_per_s=float(starter.get("bytes_per_s", DIA.bytes_per_s)),
        nonverbals=frozenset(starter.get("nonverbals", ())) if starter else NONVERBALS,
        carries=not starter,
        clip_most_s=float(starter.get("clip_most_s", DIA.clip_most_s)),
        letters=_find_letters(folder, starter["letters"]) if starter.get("letters") else None,
        ready={clip_key(folder / clip): str(sign) for clip, sign in starter.get("ready", {}).items()},
        usual=tuple(starter.get("usual", ())),
        signs_per_s_most=float(starter.get("signs_per_s_most", math.inf)),
        signs_per_s=float(starter["signs_per_s"]) if "signs_per_s" in starter else None,
        silence_s=float(starter.get("silence_s", DIA.silence_s)),
        outgrown=float(starter.get("outgrown", DIA.outgrown)),
        edition=str(starter.get("edition", "")),
        own_voices=frozenset(starter.get("own_voices", ())) if starter else None,
        settings=DIA.settings | read_recommended(starter.get("generation", {})),
    )


def read_recommended(generation: dict[str, Any]) -> dict[str, float]:
    """Translate the names of generate() to those of a request. Without sampling the temperature is 0."""
    names = {"guidance_scale": "guidance", "temperature": "temperature", "top_p": "top_p", "top_k": "cfg_filter"}
    found = {name: float(generation[theirs]) for theirs, name in names.items() if theirs in generation}
    return found if generation.get("do_sample", True) else {**found, "temperature": 0.0}


def _find_letters(folder: Path, name: str) -> Path:
    if not is_inside(folder / name, folder):
        raise refuse_fact(folder, "starter.json", "letters", name)
    return folder / name
