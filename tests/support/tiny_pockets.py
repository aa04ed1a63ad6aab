"""Save tiny Pocket TTS and Phonon models with random weights, as transformers saves them and as their repositories lie on the hub."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final, Literal

import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteFallback, Fuse, Sequence
from tokenizers.decoders import Metaspace as Joined
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace
from transformers import (
    GenerationConfig,
    GradiumPhononTTSConfig,
    GradiumPhononTTSForConditionalGeneration,
    PocketTTSAudioTokenizerConfig,
    PocketTTSAudioTokenizerModel,
    PocketTTSConfig,
    PocketTTSForConditionalGeneration,
)

Kind = Literal["phonon", "pocket"]
LATENT: Final = 8
VOICE_WIDTH: Final = {"phonon": 12, "pocket": LATENT}
SPECIAL: Final = ("<unk>", "<s>", "</s>", "<pad>", "<|audio_bos|>", "<|audio_prompt|>", "<|audio_latent|>", "<|audio_prompt_bos|>")
LETTERS: Final = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?'é"
WORDS: Final = ("▁the", "▁and", "ing", "▁He", "llo")


def save_pocket(folder: Path, kind: Kind = "pocket", *, codec: Path | None = None, flow: str = "lsd", **more: Any) -> Path:
    """Save one that speaks noise, as transformers saves it. `codec`: where its codec goes; by default into folder/"codec". `more`: of its
    config."""
    torch.manual_seed(0)
    vocabulary = _make_tokenizer(folder)
    sizes: dict[str, Any] = {
        "vocab_size": vocabulary, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
        "latent_dim": LATENT, "max_position_embeddings": 2048, "pad_token_id": 3, "audio_bos_token_id": 4, "audio_prompt_token_id": 5,
        "audio_latent_token_id": 6,
        "flow_head_config": {
            "hidden_size": 16, "num_hidden_layers": 2, "latent_dim": LATENT, "condition_dim": 32, "frequency_embedding_size": 16,
            "flow_type": flow,
        },
        **more,
    }  # fmt: skip
    model: Any
    if kind == "phonon":
        model = GradiumPhononTTSForConditionalGeneration(GradiumPhononTTSConfig(**sizes, audio_prompt_dim=VOICE_WIDTH["phonon"]))
    else:
        model = PocketTTSForConditionalGeneration(PocketTTSConfig(**sizes, audio_prompt_bos_token_id=7))
    for name, weight in model.named_parameters():
        if weight.ndim > 1 and not name.startswith("loss_"):
            torch.nn.init.normal_(weight, std=0.25)
        elif name.endswith(("bias", "bos_latent")):
            torch.nn.init.normal_(weight, std=0.1)
    model.latent_mean.normal_(0, 0.1)
    model.latent_std.uniform_(0.5, 1.5)
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=0.5, num_flow_steps=2, eos_threshold=1.2, min_frames_before_eos=4, return_dict_in_generate=True
    )
    model.eval().save_pretrained(folder)
    values = {"processor_class": "PocketTTSProcessor", "frames_after_eos": 3, "frames_after_eos_short_text": 5, "short_text_max_words": 3}
    (folder / "processor_config.json").write_text(json.dumps(values), "utf-8")
    decoder_only: dict[str, Any] = {"encoder_config": None} if kind == "phonon" else {}
    sound = PocketTTSAudioTokenizerConfig(
        hidden_size=32,
        num_filters=4,
        num_hidden_layers=1,
        intermediate_size=64,
        num_attention_heads=2,
        num_key_value_heads=2,
        upsample_groups=32,
        latent_dim=LATENT,
        sliding_window=20,
        **decoder_only,
    )
    made: Any = PocketTTSAudioTokenizerModel(sound).eval()
    for module in made.modules():
        if isinstance(module, torch.nn.Conv1d | torch.nn.ConvTranspose1d):  # so that a frame has its full reach
            torch.nn.init.normal_(module.weight, std=(module.in_channels * module.kernel_size[0] / module.stride[0]) ** -0.5)
    made.save_pretrained(codec or folder / "codec")
    return folder


def save_as_on_the_hub(folder: Path, kind: Kind, beside: Path) -> Path:
    """Save one whose codec is another repository, with two tokenizers, of which the usual one is the makers' own, and with a template that must
    not run. What the makers' own program reads lies beside: settings, and weights of a codec."""
    save_pocket(folder, kind, codec=beside)
    if kind == "phonon":
        weights = load_file(folder / "model.safetensors")
        learnt = "flow_lm.condition_provider.conditioners.speaker_wavs.learnt_padding"
        save_file({**weights, "mimi.decoder.weight": torch.ones(3, 3), learnt: torch.ones(1, 1, 4)}, folder / "model.safetensors")
        about = json.loads((folder / "config.json").read_text("utf-8"))
        about |= {
            "flow_lm": {"d_model": 32, "ldim": 8},
            "mimi": {"sample_rate": 24_000, "ratios": [6, 5, 4]},
            "fuser": None,
            "conditioners": [],
        }
        (folder / "config.json").write_text(json.dumps(about), "utf-8")
    shutil.move(folder / "tokenizer.json", folder / "tokenizer.5.0.0.json")
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    (folder / "chat_template.jinja").write_text("{% for a in range(9999999999) %}{% endfor %}", "utf-8")
    about = json.loads((folder / "tokenizer_config.json").read_text("utf-8")) | {"fast_tokenizer_files": ["tokenizer.5.0.0.json"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), "utf-8")
    about = json.loads((folder / "processor_config.json").read_text("utf-8"))
    about["audio_tokenizer"] = {
        "audio_tokenizer_class": "PocketTTSAudioTokenizerModel",
        "audio_tokenizer_name_or_path": "somebody/elsewhere",
    }
    (folder / "processor_config.json").write_text(json.dumps(about), "utf-8")
    return folder


def save_frames(file: Path, seed: int, made_for: str | None = "ext@1", **shape: tuple[int, ...]) -> None:
    """Save a voice of Phonon's, or tensors of other shapes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    made = torch.Generator().manual_seed(seed)
    sizes = shape or {"speaker_wavs": (1, VOICE_WIDTH["phonon"], 9)}
    save_file(
        {name: torch.randn(size, generator=made) for name, size in sizes.items()}, file, {"model_ext": made_for} if made_for else None
    )


def save_brought(folder: Path) -> Path:
    """Save voices as a repository of them has them: four that speak English, one that does not, and lines that are none."""
    lines: list[Any] = [
        {"name": name, "language": "en-us", "voice_id": "x", "filename": f"voices/{name}.safetensors"} for name in ("Zoe", "Max", "Ann")
    ]
    lines += [
        {"name": "Claire", "language": "fr", "filename": "voices/Claire.safetensors"},
        {"name": "Élodie-Rose", "filename": "voices/E.safetensors"},
    ]
    lines += [
        {"name": "Out", "filename": "../../../outside.safetensors"},
        {"name": "Gone", "filename": "voices/gone.safetensors"},
        {"name": 5},
        [],
        "x",
    ]
    for seed, each in enumerate(lines[:5]):
        save_frames(folder / each["filename"], seed)
    (folder / "voices.jsonl").write_text("\n".join([*map(json.dumps, lines), "{", ""]), "utf-8")
    return folder


def _make_tokenizer(folder: Path) -> int:
    """Write the tokenizer; return how many pieces it has."""
    folder.mkdir(parents=True)
    pieces = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS, *WORDS]
    scores = [0.0] * (len(SPECIAL) + 256) + [-8.0] * len(LETTERS) + [-4.0] * len(WORDS)
    tokenizer = Tokenizer(Unigram(list(zip(pieces, scores, strict=True)), 0, True))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.decoder = Sequence([Joined(), ByteFallback(), Fuse()])
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    named = {
        "tokenizer_class": "TokenizersBackend", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
        "padding_side": "left", "model_input_names": ["input_ids", "attention_mask"],
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(named), "utf-8")
    return len(pieces)
