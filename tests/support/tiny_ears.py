"""Save tiny recognisers with random weights, and put them where a home looks for a downloaded one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import MoonshineConfig, MoonshineForConditionalGeneration, WhisperConfig, WhisperForConditionalGeneration

from app.base.paths import Home
from app.engine.hearing.ears.encoder_decoder import SEVERAL_LANGUAGES
from app.engine.models.catalog import BY_ID
from tests.support.hub import cached

ORDERS: Final = ("endoftext", "startoftranscript", "en", "de", "translate", "transcribe", "nospeech", "notimestamps")


def save_tokenizer(folder: Path) -> Tokenizer:
    """Save one that has a token for each byte, and Whisper's orders after them."""
    letters = sorted(ByteLevel.alphabet())
    tokenizer = Tokenizer(BPE({letter: place for place, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), ByteDecoder()
    tokenizer.add_special_tokens([f"<|{name}|>" for name in ORDERS])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def save_whisper(folder: Path, seed: int = 0, several: bool = False) -> Path:
    """`several`: it hears English and German, and has as many words as a Whisper of several languages."""
    tokenizer = save_tokenizer(folder)
    end = tokenizer.get_vocab_size() - len(ORDERS)
    torch.manual_seed(seed)
    config = WhisperConfig(
        vocab_size=SEVERAL_LANGUAGES if several else tokenizer.get_vocab_size(),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_target_positions=48,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    WhisperForConditionalGeneration(config).save_pretrained(folder)
    named: dict[str, Any] = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**named, "alignment_heads": [[1, 0], [1, 1]]}))
    return folder


def save_moonshine(folder: Path, seed: int = 1) -> Path:
    tokenizer = save_tokenizer(folder)
    end = tokenizer.get_vocab_size() - len(ORDERS)
    torch.manual_seed(seed)
    config = MoonshineConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        intermediate_size=64,
        encoder_num_hidden_layers=1,
        decoder_num_hidden_layers=2,
        encoder_num_attention_heads=2,
        decoder_num_attention_heads=2,
        encoder_num_key_value_heads=2,
        decoder_num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=end + 1,
        decoder_start_token_id=end + 1,
        eos_token_id=end,
    )
    MoonshineForConditionalGeneration(config).save_pretrained(folder)
    return folder


def place_for(home: Home, model: str) -> Path:
    """Return the folder where this recogniser of Hearth's lies once it is downloaded."""
    source = BY_ID[model].source
    assert source is not None
    return cached(home.models, source.repo)


def complete(folder: Path) -> Path:
    """Add the files that only the hub's copy has."""
    for name in ("tokenizer_config.json", "generation_config.json"):
        if not (folder / name).exists():
            (folder / name).write_text("{}")
    return folder
