"""What a folder says of a Pocket TTS or a Phonon: its limits, the settings that it speaks with, its parts. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from app.engine.models import safetensors
from app.engine.models.config_facts import read_config, read_config_if_there, refuse_fact
from app.engine.models.judged_files import judge_folder
from app.engine.models.model import Attention, Model
from app.engine.models.voice_limits import LONGEST_LEAST_S, RATES, VoiceLimits, clip_key, name_main
from app.engine.speech.families.pocket.voices_brought import FRAMES_MOST, list_brought

PHONON: Final = "gradium_phonon_tts"
NAMES: Final = {PHONON: "Phonon", "pocket_tts": "Pocket TTS"}
SPEAKERS: Final = 4
KEYS: Final = 512
"""A voice of 10 seconds, a part of 16, and its text take so many."""
TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class Manner:
    """The settings that a voice speaks with, from its files; what they leave out is as its makers set it."""

    temperature: float
    steps: int
    """A frame is made from noise in so many steps."""
    threshold: float
    """A part ends where the model says so louder than this."""
    least: int
    """No part ends after fewer frames."""
    after: int
    """So many frames are made after the model said that a part ends."""
    after_short: int
    """So many are made where the text is short."""
    short_words: int
    """A text of at most so many words is short."""
    made_for: frozenset[str]
    """A voice that says what it is made for has to name one of these; empty: it takes any."""


def read_manner(folder: Path) -> Manner:
    config, drawn, read = (
        read_config_if_there(folder, name) for name in ("config.json", "generation_config.json", "processor_config.json")
    )
    temperature = float(drawn.get("temperature", 0.3)) if drawn.get("do_sample", True) else 0.0
    return Manner(
        temperature=temperature,
        steps=int(drawn.get("num_flow_steps", 1)),
        threshold=float(drawn.get("eos_threshold", config.get("eos_threshold", -4.0))),
        least=int(drawn.get("min_frames_before_eos", 6)),
        after=int(read.get("frames_after_eos", 2)),
        after_short=int(read.get("frames_after_eos_short_text", 4)),
        short_words=int(read.get("short_text_max_words", 4)),
        made_for=frozenset(map(str, config.get("embeddings_ext") or ())),
    )


def read_limits(folder: Path, beside: Mapping[str, Path]) -> VoiceLimits:
    """Read the limits from config.json and the codec's config.json."""
    codec = folder / "codec" if (folder / "codec").is_dir() else beside.get("codec", folder / "codec")
    config, sound = read_config_if_there(folder, "config.json"), read_config_if_there(codec, "config.json")
    rate, hop = (
        int(sound.get("sampling_rate", 24_000)),
        math.prod(sound.get("upsampling_ratios") or (6, 5, 4)) * int(sound.get("latent_stride", 16)),
    )
    rows_most = min(int(config.get("max_position_embeddings", 8192)), FRAMES_MOST)
    if not RATES[0] <= rate / hop <= RATES[1]:
        raise refuse_fact(codec, "config.json", "sampling_rate", rate)
    if rows_most * hop / rate < 2 * LONGEST_LEAST_S:
        raise refuse_fact(folder, "config.json", "max_position_embeddings", rows_most)
    hears = config.get("model_type") != PHONON and bool(sound) and sound.get("encoder_config", {}) is not None
    languages = tuple(map(str, config.get("languages") or ["en"]))
    brought = list_brought(folder, beside, languages, find_frame_width(config))
    speakers = min(SPEAKERS, len(brought)) if brought else SPEAKERS if hears else 1
    return VoiceLimits(
        name=NAMES.get(str(config.get("model_type")), "Pocket TTS"),
        speakers=speakers,
        speakers_a_part=1,
        languages=languages,
        figures=name_main(languages[0]) if len(languages) == 1 else "",
        rows_most=rows_most,
        delay=0,
        rate=rate,
        frame_rate=rate / hop,
        part_least_s=0.0,
        part_aim_s=10.0,
        part_most_s=16.0,
        nonverbals=frozenset(),
        carries=hears and not brought,
        ready={clip_key(file): name for name, file in brought.items()},
        brought=brought,
        usual=tuple(islice(brought, speakers)) if brought else (),
        imitates=hears,
        needs_transcript=False,
        settings={"temperature": read_manner(folder).temperature},
    )


def find_frame_width(config: Mapping[str, Any]) -> int:
    """Return how many numbers a frame of a voice has: as many as the codec's, but of a Phonon, whose voices another model has heard, its own."""
    if config.get("model_type") == PHONON:
        return int(config.get("audio_prompt_dim", 512))
    return int(config.get("latent_dim", 32))


def describe(path: Path, catalog: Mapping[str, Model]) -> Model:
    """Describe a local folder as a row like the catalog's."""
    judge_folder(path, ("codec", "voices", "embeddings"))
    config, codec = read_config(path, "config.json"), path / "codec"
    parts = [safetensors.describe_part("model", "speech", path)]
    if codec.is_dir():
        parts.append(safetensors.describe_part("codec", "codec", codec))
    heads = int(config.get("num_attention_heads", 16))
    few, width = config.get("num_key_value_heads") or heads, config.get("head_dim") or int(config.get("hidden_size", 1024)) // heads
    cache_bytes = 8 * int(config.get("num_hidden_layers", 6)) * few * width * KEYS
    return Model(
        "",
        "speech",
        str(config["model_type"]),
        "",
        tuple(parts),
        Attention(heads, few, width, text_tokens=TOKENS, keys=KEYS, masked=True),
        cache_bytes=cache_bytes,
    )
