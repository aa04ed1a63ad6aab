"""Writes what ships: fp16 safetensors of Dia and its codec, the processor's parts, the table of sounds, and starter.json with all that they do not say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import DacFeatureExtractor, DacModel, DiaTokenizer

from ..voice import codec, model
from . import flite
from .corpus import DELAY

AUDIO_KWARGS: dict[str, Any] = {
    "eos_token_id": model.EOS, "pad_token_id": model.PAD, "bos_token_id": model.BOS, "delay_pattern": list(DELAY), "sampling_rate": codec.RATE_HZ,
}
GENERATION: dict[str, Any] = {"do_sample": True, "temperature": 1.0, "top_p": 0.6, "top_k": 40, "guidance_scale": 1.0, "max_new_tokens": 600}
LONGEST_S = 10.0
SOUNDS_PER_S = 14.0
VOICES = {
    "Ada": "#", "Ben": "$", "Cleo": "%", "Dora": "&", "Emil": "*", "Frank": "/", "Gus": "<", "Hal": ">",
}
"""The ready voices by name, with the sign that names each to the model."""
ABOUT: dict[str, Any] = {
    "name": "Hearth starter voice",
    "speakers": {"[S1]": "Ada (flite's cmu_us_slt)", "[S2]": "Ben (flite's cmu_us_rms)"},
    "licence": "trained on speech made by CMU Flite 2.2 with its voices cmu_us_slt, cmu_us_rms and cmu_us_awb (CMU, free for any use with their notice); see MODEL.md",
}


def write(checkpoint: Path, decoder: Path, encoder: Path, letters: Path, folder: Path) -> None:
    """`checkpoint` is what train.fit saved, `decoder` and `encoder` are what vocoder.fit_* saved, `letters` what letters.build wrote."""
    weights = torch.load(checkpoint, weights_only=True, map_location="cpu")["average"]
    dia = model.dia(DELAY)
    dia.load_state_dict(weights)
    dia.generation_config.update(**GENERATION, bos_token_id=model.BOS, eos_token_id=model.EOS, pad_token_id=model.PAD, decoder_start_token_id=model.BOS)
    dia.half().save_pretrained(folder)
    dac = DacModel.from_pretrained(decoder)
    dac.encoder.load_state_dict(DacModel.from_pretrained(encoder).encoder.state_dict())
    dac.half().save_pretrained(folder / "codec")
    DiaTokenizer().save_pretrained(folder)
    DacFeatureExtractor(feature_size=1, sampling_rate=codec.RATE_HZ, hop_length=codec.HOP).save_pretrained(folder)
    shutil.copyfile(letters, folder / "sounds.gz")
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)  # save_pretrained leaves them to their owner alone
    describe(folder, {})


def describe(folder: Path, measured: dict[str, Any]) -> None:
    """Writes starter.json; `measured` are the scores of the weights beside it."""
    about = {
        **ABOUT, "sampling_rate_hz": codec.RATE_HZ, "frames_per_s": codec.FRAMES_PER_S, "channels": len(DELAY), "longest_s": LONGEST_S,
        "own_voices": [], "sounds": "sounds.gz", "bytes_per_s": SOUNDS_PER_S, "audio_kwargs": AUDIO_KWARGS, "generation": GENERATION,
        "voices": {name: [mark, flite.VOICES[mark].base, flite.VOICES[mark].shift] for name, mark in VOICES.items()}, "scores": measured,
    }
    (folder / "starter.json").write_text(json.dumps(about, indent=1) + "\n")
