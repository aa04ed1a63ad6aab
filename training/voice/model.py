"""Make the starter's Dia and DAC with their initial weights, and lay out codes for Dia. Trains nothing."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import DacConfig, DacModel, DiaConfig, DiaForConditionalGeneration
from transformers.models.dia import DiaDecoderConfig, DiaEncoderConfig

from . import codec

EOS, PAD, BOS = codec.CODES, codec.CODES + 1, codec.CODES + 2
ROWS = codec.CODES + 8
DELAY = (0, 1, 2, 3)
IGNORED = -100
WIDTH, TEXT_WIDTH = 192, 128
FIRST_LOUDNESS, BRANCH_SCALE = 6.0, 0.5


def dia() -> DiaForConditionalGeneration:
    """Make a small Dia of the real class, with weights initialised for its width (the class's default is for a width of 1000)."""
    text = DiaEncoderConfig(
        max_position_embeddings=1024,
        num_hidden_layers=4,
        hidden_size=TEXT_WIDTH,
        num_attention_heads=8,
        num_key_value_heads=8,
        head_dim=16,
        intermediate_size=384,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    sound = DiaDecoderConfig(
        max_position_embeddings=2048,
        num_hidden_layers=4,
        hidden_size=WIDTH,
        intermediate_size=576,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=48,
        cross_num_attention_heads=4,
        cross_head_dim=48,
        cross_num_key_value_heads=4,
        cross_hidden_size=TEXT_WIDTH,
        vocab_size=ROWS,
        num_channels=codec.CHANNELS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        bos_token_id=BOS,
    )
    model = DiaForConditionalGeneration(DiaConfig(encoder_config=text, decoder_config=sound, delay_pattern=list(DELAY)))
    for name, weight in model.named_parameters():
        if weight.ndim < 2:
            continue
        if "encoder.embed" in name:
            nn.init.normal_(weight, std=0.5)
        elif "embed" in name:
            nn.init.normal_(weight, std=0.15)
        elif "logits" in name:
            nn.init.normal_(weight, std=0.01)
        else:
            scale = (
                1 / math.sqrt(16 if "encoder" in name else 48)
                if "q_proj" in name
                else 0.5
                if ("o_proj" in name or "down_proj" in name)
                else 1.0
            )
            nn.init.normal_(weight, std=scale / math.sqrt(weight.shape[1]))
    model.set_attn_implementation("eager")  # at these lengths faster on a CPU than the fused kernels, backward above all
    return model


def dac() -> DacModel:
    """Make a small DAC of the real class: 16 kHz, 40 frames a second, four codebooks. Its encoder is initialised for its width: with
    the class's default a sound comes out a thousand times too faint to learn from."""
    model = DacModel(
        DacConfig(
            encoder_hidden_size=16,
            downsampling_ratios=[4, 10, 10],
            decoder_hidden_size=256,
            n_codebooks=codec.CHANNELS,
            codebook_size=codec.CODES,
            codebook_dim=2 * codec.FEATURES + 2,
            sampling_rate=codec.RATE_HZ,
        )
    )
    for name, part in model.encoder.named_modules():
        if isinstance(part, nn.Conv1d):
            scale = FIRST_LOUDNESS if name == "conv1" else BRANCH_SCALE if "res_unit" in name and name.endswith("conv2") else 1.0
            nn.init.normal_(part.weight, std=scale / math.sqrt(part.weight[0].numel()))
    return model


def text_ids(text: str) -> list[int]:
    """Return the ids as DiaTokenizer does: bytes, with one id for each speaker's tag."""
    ids: list[int] = []
    data = text.encode()
    while data:
        tag = {b"[S1]": 1, b"[S2]": 2}.get(data[:4])
        ids.append(tag if tag is not None else data[0])
        data = data[4:] if tag is not None else data[1:]
    return ids


def delayed(codes: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Convert (frames, channels) to (rows, channels): BOS before, EOS after, each channel delayed, PAD for the rest."""
    laid = np.full((rows, codec.CHANNELS), PAD, np.int64)
    for channel, late in enumerate(DELAY):
        laid[: late + 1, channel] = BOS
        laid[late + 1 : late + 1 + len(codes), channel] = codes[:, channel]
        if late + 1 + len(codes) < rows:
            laid[late + 1 + len(codes), channel] = EOS
    return laid


def waves(place: Tensor) -> Tensor:
    """Encode a position in the text as sines and cosines of periods 12 to 384 characters: the helper heads' target."""
    periods = 12.0 * 2.0 ** torch.arange(6)
    angle = place[..., None] * (2 * math.pi / periods)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)
