"""What a folder says of a VibeVoice: its limits, how it is made to speak, its one part. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from app.engine.models import safetensors
from app.engine.models.config_facts import read_config, read_config_if_there, refuse_fact
from app.engine.models.judged_files import judge_folder
from app.engine.models.model import Attention, Model
from app.engine.models.voice_limits import LONGEST_LEAST_S, RATES, VoiceLimits

SPEAKERS: Final = 4
LANGUAGES: Final = ("en", "zh")
RATE: Final = 24_000
RATIOS: Final = (2, 2, 4, 5, 5, 8)
FRAMES_MOST: Final = 600
"""A run has at most so many frames, which last 80 seconds."""
KEYS: Final = 640
"""A voice of 15 seconds, a part of 30, and its text take so many."""
TOKENS: Final = 256
TOWERS: Final = ("model.audio_tower.", "model.semantic_tokenizer_encoder.")
"""The first is its codec; the other hears its own sound."""
SCHEDULER: Final = "DPMSolverMultistepScheduler"
BETAS: Final = "squaredcos_cap_v2"
AIM: Final = "v_prediction"


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is made to speak, where its files are silent as its makers do."""

    guidance: float
    steps: int
    """A frame is made from noise in so many steps."""
    noises: int
    """Its diffusion head was taught so many levels of noise."""
    loudness_db: float
    """A recording is heard this loud, beside a full scale."""


def read_manner(folder: Path) -> Manner:
    """Raise a Trouble for a way to draw frames that no VibeVoice has."""
    drawn, read = read_config_if_there(folder, "generation_config.json"), _read_extractor(folder)
    noise = drawn.get("noise_scheduler_config") or {}
    for field, value, known in (
        ("noise_scheduler_class", drawn.get("noise_scheduler_class", SCHEDULER), SCHEDULER),
        ("beta_schedule", noise.get("beta_schedule", BETAS), BETAS),
        ("prediction_type", noise.get("prediction_type", AIM), AIM),
    ):
        if value != known:
            raise refuse_fact(folder, "generation_config.json", field, value)
    return Manner(
        guidance=float(drawn.get("guidance_scale") or 1.3),
        steps=int(drawn.get("num_diffusion_steps") or 10),
        noises=int(noise.get("num_train_timesteps", 1000)),
        loudness_db=float(read.get("target_dB_FS", -25)),
    )


def read_limits(folder: Path, beside: Mapping[str, Path]) -> VoiceLimits:
    """Read the limits from config.json and from what says how sound is read."""
    config = read_config_if_there(folder, "config.json")
    text, sound = config.get("text_config") or {}, config.get("audio_config") or {}
    rate, hop = int(_read_extractor(folder).get("sampling_rate", RATE)), math.prod(sound.get("downsampling_ratios") or RATIOS)
    rows_most = min(int(text.get("max_position_embeddings", 65_536)), FRAMES_MOST)
    if not RATES[0] <= rate / hop <= RATES[1]:
        raise refuse_fact(folder, "config.json", "downsampling_ratios", hop)
    if rows_most * hop / rate < 2 * LONGEST_LEAST_S:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", rows_most)
    return VoiceLimits(
        name="VibeVoice",
        speakers=SPEAKERS,
        speakers_a_part=1,
        languages=LANGUAGES,
        rows_most=rows_most,
        delay=0,
        rate=rate,
        frame_rate=rate / hop,
        part_least_s=0.0,
        part_aim_s=20.0,
        part_most_s=30.0,
        nonverbals=frozenset(),
        needs_transcript=False,
        settings={"guidance": read_manner(folder).guidance},
    )


def describe(path: Path, catalog: Mapping[str, Model]) -> Model:
    """Describe a local folder as a row like the catalog's."""
    judge_folder(path)
    text = read_config(path, "config.json").get("text_config") or {}
    part, (eight, whole) = safetensors.describe_part("model", "speech", path), _count_eight(path)
    heads, hidden = int(text.get("num_attention_heads", 12)), int(text.get("hidden_size", 1536))
    few, width = int(text.get("num_key_value_heads") or heads), int(text.get("head_dim") or hidden // heads)
    return Model(
        "",
        "speech",
        "vibevoice",
        "",
        (replace(part, linear=(part.linear or 0) - whole, eight=eight),),
        Attention(heads, few, width, text_tokens=TOKENS, keys=KEYS, masked=True),
        cache_bytes=16 * int(text.get("num_hidden_layers", 28)) * few * width * KEYS,
    )


def _count_eight(path: Path) -> tuple[int, int]:
    """Count the parameters of the towers' linear layers that are packed, which are the widest ones, and of those that are not."""
    shapes = (each for file in safetensors.list_weights(path) for each in safetensors.read_header(file).items())
    sizes = [math.prod(entry.shape) for name, entry in shapes if name.startswith(TOWERS) and len(entry.shape) == 2]
    deep = sum(each for each in sizes if each == max(sizes))
    return deep, sum(sizes) - deep


def _read_extractor(folder: Path) -> dict[str, Any]:
    """Read how sound is prepared: a file of its own, or a part of the processor's."""
    inner = read_config_if_there(folder, "processor_config.json").get("feature_extractor")
    return inner if isinstance(inner, dict) else read_config_if_there(folder, "preprocessor_config.json")
