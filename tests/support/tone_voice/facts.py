"""What a folder says of a tone: as a family's facts are, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from app.engine.models import safetensors
from app.engine.models.config_facts import read_config
from app.engine.models.judged_files import judge_folder
from app.engine.models.model import Attention, Model
from app.engine.models.voice_limits import VoiceLimits


def read_limits(folder: Path, beside: Mapping[str, Path]) -> VoiceLimits:
    config = read_config(folder, "config.json")
    rate, most_s = int(config["sampling_rate"]), float(config["seconds_most"])
    frame_rate = rate / int(config["hop_length"])
    return VoiceLimits(
        name="Tone",
        speakers=1,
        speakers_a_part=1,
        languages=("en", "uk"),
        bytes_most=400,
        rows_most=int(5 * most_s * frame_rate),
        delay=0,
        rate=rate,
        frame_rate=frame_rate,
        part_least_s=0.0,
        part_aim_s=0.8 * most_s,
        part_most_s=most_s,
        bytes_per_s=15.0,
        nonverbals=frozenset(),
        carries=False,
        imitates=False,
        settings={"temperature": 1.0},
    )


def describe(path: Path, catalog: Mapping[str, Model]) -> Model:
    judge_folder(path)
    parts = (safetensors.describe_part("model", "speech", path),)
    return Model("", "speech", "tone", "", parts, Attention(2, 2, 16, text_tokens=400, keys=1500), cache_bytes=100_000)
