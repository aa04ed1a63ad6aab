"""Export the shipped files: fp16 safetensors of Dia and its codec, the processor's files, and starter.json with the rest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import DacFeatureExtractor, DacModel, DiaTokenizer

from . import codec, model, ready, speak
from .flite import BASE_NAMES, SPEAKERS, VOICES

GENERATION: dict[str, Any] = {
    "do_sample": True,
    "temperature": 1.0,
    "top_p": 0.6,
    "top_k": 40,
    "guidance_scale": 1.0,
    "max_new_tokens": 420,
}
ABOUT: dict[str, Any] = {
    "name": "Hearth starter voice",
    "edition": "2",
    "speakers": {f"[{speaker}]": f"{name.title()}, from flite's cmu_us_{VOICES[name].base}" for speaker, name in SPEAKERS.items()},
    "licence": f"trained on speech made by CMU Flite 2.2 with its voices {BASE_NAMES} (CMU, free for any use with their notice); see MODEL.md",
}
FORECAST = {"signs_per_s": 14.2, "silence_s": 0.42, "outgrown": 1.5}
"""It was fitted to 173 parts that its eight voices spoke right: they took 0.61 to 1.28 of it."""
LETTERS = "letters.bin"


def write(checkpoint: Path, decoder: Path, encoder: Path, letters: Path, folder: Path) -> None:
    """Export the `checkpoint` that train.fit saved, the `decoder` and `encoder` that vocoder.fit_* saved, and the `letters` of letters.save."""
    weights = torch.load(checkpoint, weights_only=True)["average"]
    dia = model.dia()
    dia.load_state_dict(weights)
    dia.generation_config.update(
        **GENERATION, bos_token_id=model.BOS, eos_token_id=model.EOS, pad_token_id=model.PAD, decoder_start_token_id=model.BOS
    )
    dia.half().save_pretrained(folder)
    dac = DacModel.from_pretrained(decoder)
    dac.encoder.load_state_dict(DacModel.from_pretrained(encoder).encoder.state_dict())
    dac.half().save_pretrained(folder / "codec")
    DiaTokenizer().save_pretrained(folder)
    DacFeatureExtractor(feature_size=1, sampling_rate=codec.RATE_HZ, hop_length=codec.HOP).save_pretrained(folder)
    for path in folder.rglob("*.safetensors"):
        path.chmod(0o644)  # save_pretrained leaves them to their owner alone
    shutil.copyfile(letters, folder / LETTERS)
    describe(folder, {})


def describe(folder: Path, measured: dict[str, Any]) -> None:
    """Write starter.json; `measured` are the scores of the weights beside it."""
    about = {
        **ABOUT,
        "sampling_rate_hz": codec.RATE_HZ,
        "frames_per_s": codec.FRAMES_PER_S,
        "channels": codec.CHANNELS,
        "longest_s": 8.0,
        "clip_most_s": 4.0,
        "part_aim_s": 5.9,
        "part_most_s": 7.2,
        "bytes_per_s": 17.0,
        "signs_per_s_most": speak.SIGNS_PER_S_MOST,
        **FORECAST,
        "own_voices": ["starter-voice"],
        "audio_kwargs": speak.AUDIO_KWARGS,
        "generation": GENERATION,
        "letters": LETTERS,
        **ready.about(),
        "scores": measured,
    }
    (folder / "starter.json").write_text(json.dumps(about, indent=1) + "\n")
