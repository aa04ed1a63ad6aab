"""What a machine is asked to compute of the starter voice: its encoder, a row of its decoder, its codec, on numbers that are always the same."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from app.engine.speech.families.dia.codec import Codec
from app.engine.speech.families.dia.decoder import Decoding, DecodingState, PartInput
from app.engine.speech.families.dia.sampling import Sampling

ROWS: Final = 12
"""So many rows of speech come before the row in question."""


def _whole(most: int, *size: int) -> Tensor:
    return torch.randint(0, most, size, generator=torch.Generator().manual_seed(0))


def encode_script(voice: Any, device: str, dtype: torch.dtype) -> Tensor:
    words = _whole(voice.config.encoder_config.vocab_size, 2, 64)
    found: Tensor = voice.model.encoder(input_ids=words.to(device)).last_hidden_state
    return found


def decode_row(voice: Any, device: str, dtype: torch.dtype) -> Tensor:
    """Return the logits of the row after the first ones, which come at once, and of the next, which comes alone."""
    config = voice.config.decoder_config
    rows = _whole(config.eos_token_id, ROWS + 1, config.num_channels)
    text = _whole(voice.config.encoder_config.vocab_size, 32)
    begun = DecodingState(rows[:ROWS], torch.Generator().get_state(), ended=None, frames_sent=0)
    decoding = Decoding(voice, device, PartInput(text, None, Sampling(), seed=0, new_rows=2 * ROWS), begun)
    first = decoding.compute_logits()
    decoding.append(rows[ROWS])
    return torch.cat((first, decoding.compute_logits()))


def decode_sound(dac: Any, device: str, dtype: torch.dtype) -> Tensor:
    codes = _whole(dac.config.codebook_size, 16, dac.config.n_codebooks)
    return torch.from_numpy(Codec(dac, device, dtype).decode(codes))


PARTS: Final = (
    ("voice-text", "", "DiaForConditionalGeneration", encode_script),
    ("voice-row", "", "DiaForConditionalGeneration", decode_row),
    ("codec", "codec", "DacModel", decode_sound),
)
"""Each has its name among the verdicts, its folder in the voice's, and its class in transformers."""
