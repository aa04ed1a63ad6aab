"""Save tiny Dia models with random weights, in the shapes of Dia 1.6B and of the starter voice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import DacConfig, DacModel, DiaConfig, DiaForConditionalGeneration, DiaTokenizer
from transformers.models.dia.configuration_dia import DiaDecoderConfig, DiaEncoderConfig


@dataclass(frozen=True)
class Shape:
    delays: tuple[int, ...]
    ratios: tuple[int, ...]
    rate: int
    codes: int


DIA = Shape((0, 8, 9, 10, 11, 12, 13, 14, 15), (2, 4, 8, 8), 44100, 1024)
STARTER = Shape((0, 1, 2, 3), (4, 10, 10), 16000, 256)


def save_voice(folder: Path, shape: Shape = DIA, *, seed: int = 0) -> Path:
    """Save a Dia that speaks noise, with its codec in folder/"codec"."""
    torch.manual_seed(seed)
    encoder = DiaEncoderConfig(
        max_position_embeddings=1024,
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
    )
    decoder = DiaDecoderConfig(
        max_position_embeddings=3072,
        num_hidden_layers=2,
        hidden_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        cross_num_attention_heads=4,
        cross_num_key_value_heads=4,
        cross_head_dim=16,
        cross_hidden_size=32,
        intermediate_size=96,
        vocab_size=shape.codes + 4,
        num_channels=len(shape.delays),
        eos_token_id=shape.codes,
        pad_token_id=shape.codes + 1,
        bos_token_id=shape.codes + 2,
    )
    config = DiaConfig(encoder_config=encoder, decoder_config=decoder, delay_pattern=list(shape.delays))
    model = DiaForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:  # so that all earlier rows matter, not only the last
            torch.nn.init.normal_(parameter, std=0.25)
    model.save_pretrained(folder)
    DiaTokenizer().save_pretrained(folder)
    sound = DacConfig(  # type: ignore[call-arg]
        encoder_hidden_size=4,
        downsampling_ratios=list(shape.ratios),
        decoder_hidden_size=32,
        upsampling_ratios=list(reversed(shape.ratios)),
        n_codebooks=len(shape.delays),
        codebook_size=shape.codes,
        codebook_dim=8,
        sampling_rate=shape.rate,
        hidden_size=32,
    )
    codec = DacModel(sound).eval()
    for module in codec.modules():
        if isinstance(module, torch.nn.Conv1d | torch.nn.ConvTranspose1d):  # so that a frame has its full reach
            torch.nn.init.normal_(module.weight, std=(module.in_channels * module.kernel_size[0] / module.stride[0]) ** -0.5 * 0.7)
    codec.save_pretrained(folder / "codec")
    return folder
