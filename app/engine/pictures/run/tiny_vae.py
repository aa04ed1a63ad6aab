"""Decode with a tiny VAE that lies beside the model, in a fraction of the time and nearly right: for Quicker's "much"."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import diffusers
import torch

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models import model_folder

FOLDER: Final = "taesd"
"""This folder, as diffusers saves an AutoencoderTiny, lies in the model's folder or beside its file."""


def find(model: Path) -> Path | None:
    folder = (model if model.is_dir() else model.parent) / FOLDER
    config = folder / "config.json"
    return folder if (model_folder.holds(model, config) if model.is_dir() else config.is_file()) else None


class TinyVae:
    """Loaded at its first picture; a few megabytes in float32, which every device computes rightly."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._vae: Any = None

    def decode(self, latents: torch.Tensor, own: Any) -> torch.Tensor:
        """Return the picture, in -1..1, of latents for the model's `own` VAE, in tiles as that is planned; a tiny one takes them as the denoiser makes
        them."""
        vae = self._load(latents.device)
        shift = getattr(own.config, "shift_factor", None) or 0.0
        scaled = (latents.float() - shift) * own.config.scaling_factor
        larger = 2 ** (len(own.config.block_out_channels) - 1)
        if vae.config.latent_channels != latents.shape[1] or 2 ** (len(vae.config.num_decoder_blocks) - 1) != larger:
            raise self._explain("it belongs to another family of models")
        vae.use_tiling = own.use_tiling  # whole, it takes a kilobyte a pixel: 1 GiB for 1,024 x 1,024
        if own.use_tiling:
            vae.tile_sample_min_size, vae.tile_latent_min_size = own.tile_sample_min_size, own.tile_latent_min_size
        image: torch.Tensor = vae.decode(scaled, return_dict=False)[0]
        return image

    def _load(self, device: torch.device) -> Any:
        if self._vae is None:
            model_folder.check_part(self.folder, self.folder)
            try:
                kind: Any = diffusers.AutoencoderTiny
                self._vae = kind.from_pretrained(self.folder, dtype=torch.float32, local_files_only=True, use_safetensors=True)
            except (OSError, ValueError, KeyError, RuntimeError, TypeError) as fault:
                raise self._explain((str(fault).splitlines() or [type(fault).__name__])[0]) from fault
        return self._vae.to(device)

    def _explain(self, fault: str) -> Trouble:
        return Trouble(
            say(
                "tiny-vae.broken",
                "The tiny VAE in {folder} cannot be used: {fault}. Remove that folder, or do not set Quicker to Much.",
                folder=str(self.folder),
                fault=fault,
            )
        )
