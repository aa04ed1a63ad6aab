"""Write models of full size as folders, with random weights, so that a bench needs no download: Dia 1.6B, SD 1.5, SDXL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from transformers.initialization import no_init_weights

BLOCK: Final = 1_000_003
"""Random numbers that all weights repeat. Being prime, it gives no two rows of a matrix the same ones."""
SPREAD: Final = 0.02
LETTERS: Final = [chr(code) for code in range(33, 127)]


def write_voice(folder: Path, dtype: torch.dtype, layers: int | None = None) -> Path:
    """Write Dia 1.6B, with so many decoder layers, and its codec, which is small and whole."""
    config = transformers.DiaConfig()
    if layers is not None:
        config.decoder_config.num_hidden_layers = layers
        config.encoder_config.num_hidden_layers = min(layers, config.encoder_config.num_hidden_layers)
    _make(transformers.DiaForConditionalGeneration, dtype, config).save_pretrained(folder)
    transformers.DiaTokenizer().save_pretrained(folder)
    codec = transformers.DacConfig(sampling_rate=44100)
    _make(transformers.DacModel, torch.float32, codec).save_pretrained(folder / "codec")
    return folder


def _make(kind: Any, dtype: torch.dtype, *config: Any) -> Any:
    """Make a model of this dtype in memory of its own, without the libraries' slow initialisation."""
    with _default_dtype(dtype), no_init_weights():
        model = kind(*config)
    return draw(model.eval())


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@torch.no_grad()
def draw(model: torch.nn.Module) -> torch.nn.Module:
    """Fill matrices with random numbers, and vectors (norms, biases) with ones and zeros, as a fresh layer has them."""
    block = torch.randn(BLOCK, generator=torch.Generator().manual_seed(0)) * SPREAD
    for name, weight in model.named_parameters():
        if weight.ndim < 2:
            weight.fill_(0.0 if name.endswith("bias") else 1.0)
            continue
        for part in weight.view(-1).split(BLOCK):
            part.copy_(block[: len(part)])
    return model.requires_grad_(False)
