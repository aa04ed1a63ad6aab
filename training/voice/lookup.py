"""Put the k-means codes into DAC, so that its cosine lookup finds what k-means finds and its hidden space starts with the features.

DAC finds the code whose vector has the highest cosine with in_proj(hidden). For vectors (c, -|c|^2 / 2, s), s chosen so that all are equally long, and
a query (x, 1, 0), that is the code nearest to x. Between them the vector holds what the code means to the decoder, which is learned.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import DacModel

from . import codec

LIFT = codec.FEATURES  # the place of the square in a vector; the decoder's own part lies between it and the last place
OWN = slice(codec.FEATURES + 1, 2 * codec.FEATURES + 1)
SQUARE_SCALE = 4.0


def middle_and_scale(books: Tensor) -> tuple[Tensor, Tensor]:
    """Return the middle of the features and their common scale: the first two stages hold all features between them."""
    return books[:2].mean(1).sum(0), books[:2].std()


def scaled(points: Tensor, books: Tensor) -> Tensor:
    """Scale features to DAC's hidden space: the encoder's targets."""
    middle, scale = middle_and_scale(books)
    return (points - middle) / scale


def list_stages(dac: DacModel) -> list[Any]:
    """Return the quantizer's stages, whose parts the types of a list of modules do not tell."""
    return list(dac.quantizer.quantizers)


def lay(dac: DacModel, books: Tensor) -> None:
    """Set the codebooks, and projections that pass features through; the decoder's part starts as the code's vector."""
    middle, scale = middle_and_scale(books)
    size = codec.FEATURES
    with torch.no_grad():
        for stage, (quantizer, book, weights) in enumerate(zip(list_stages(dac), books, codec.STAGE_WEIGHTS, strict=True)):
            seen = weights > 0
            centres = (book - middle * seen if stage < 2 else book) / scale
            rows, ask, answer = quantizer.codebook.weight, quantizer.in_proj, quantizer.out_proj
            rows.zero_()
            rows[:, :size], rows[:, OWN] = centres * weights, centres
            rows[:, LIFT] = -(centres * weights).pow(2).sum(1) / (2 * SQUARE_SCALE)
            for projection in (ask, answer):
                projection.weight[:size] = 0
                projection.bias.zero_()
            ask.weight[:size, :size, 0] = torch.diag(weights)
            answer.weight[:size, :size, 0] = torch.diag(torch.where(seen, 1 / weights, 0.0))
            ask.weight[size:] = 0
            ask.bias[LIFT] = SQUARE_SCALE
            answer.weight[size:, : OWN.start], answer.weight[size:, OWN.stop :] = 0, 0
    level(dac)


def hold(dac: DacModel) -> None:
    """Let training change only the decoder's part of the vectors and its projection."""
    for quantizer in list_stages(dac):
        free = torch.zeros_like(quantizer.codebook.weight)
        free[:, OWN] = 1
        quantizer.codebook.weight.register_hook(lambda slope, free=free: slope * free)
        read = torch.zeros_like(quantizer.out_proj.weight)
        read[codec.FEATURES :, OWN] = 1
        quantizer.out_proj.weight.register_hook(lambda slope, read=read: slope * read)
        heard = torch.ones_like(quantizer.out_proj.bias)
        heard[: codec.FEATURES] = 0
        quantizer.out_proj.bias.register_hook(lambda slope, heard=heard: slope * heard)


def level(dac: DacModel) -> None:
    """Make all vectors of a stage equally long through their last element, which is not read."""
    with torch.no_grad():
        for quantizer in list_stages(dac):
            rows = quantizer.codebook.weight
            lengths = rows[:, :-1].pow(2).sum(1)
            rows[:, -1] = (lengths.max() - lengths).clamp(min=0).sqrt()
