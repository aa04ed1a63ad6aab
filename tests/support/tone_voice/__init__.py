"""A family of voices that is none of Hearth's: one speaker, 24 kHz, no guidance, no codec's weights; it hums each text as long as it would last."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from app.engine.models.voice_families import VoiceFamily

ROW = VoiceFamily("tone", "tests.support.tone_voice")
WIDTH, HEADS, PITCHES = 32, 2, 24


def save_tone(folder: Path, seconds_most: float = 6.0) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "tone", "sampling_rate": 24_000, "hop_length": 480, "seconds_most": seconds_most})
    )
    made = torch.Generator().manual_seed(0)
    shapes = {"letters": (256, WIDTH), "rows": (PITCHES, WIDTH), "pitch": (PITCHES, WIDTH)}
    save_file({name: torch.randn(shape, generator=made) for name, shape in shapes.items()}, folder / "model.safetensors")
    return folder
