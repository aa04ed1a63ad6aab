"""Trains the starter's DAC: first the decoder as a vocoder of the fixed codes, then the encoder to find those codes in a sound."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import DacModel

from . import codec, model

CROP_FRAMES, CROPS = 24, 8
STFT_SIZES = (1024, 512, 256, 128)
COSINE_SHARPNESS = 20.0


class Sounds:
    """The sound and the codes that corpus.write kept for the codec."""

    def __init__(self, path: Path, seed: int) -> None:
        with np.load(path) as held:
            self.books = torch.from_numpy(held["books"])
            self.sound = np.split(held["sound"], np.cumsum(held["lengths"])[:-1])
            self.codes = np.split(held["codes"], np.cumsum(held["frames"])[:-1])
        self.rng = np.random.default_rng(seed)

    def crops(self, frames: int = CROP_FRAMES, count: int = CROPS) -> tuple[Tensor, Tensor]:
        """(count, frames * HOP) of sound and (count, CHANNELS, frames) of codes; now and then the quiet edges of a clip."""
        sounds, codes = [], []
        for _ in range(count):
            number = int(self.rng.integers(len(self.codes)))
            start = int(self.rng.integers(0, max(1, len(self.codes[number]) - frames)))
            piece = self.sound[number][start * codec.HOP : (start + frames) * codec.HOP].astype(np.float32) / 32768
            part = self.codes[number][start : start + frames].astype(np.int64)
            if len(part) < frames:
                part = np.concatenate([part, np.repeat(part[-1:], frames - len(part), axis=0)])
            sounds.append(np.pad(piece, (0, frames * codec.HOP - len(piece))))
            codes.append(part.T)
        return torch.from_numpy(np.stack(sounds)), torch.from_numpy(np.stack(codes))


def unlike(made: Tensor, true: Tensor) -> Tensor:
    """How different two sounds are: spectra at four resolutions, linear and in logarithm, and the log mel spectrum."""
    total = (codec.log_mel(made, hop=200) - codec.log_mel(true, hop=200)).abs().mean() * 2
    for size in STFT_SIZES:
        window = torch.hann_window(size)
        ours, theirs = (
            torch.stft(sound, size, size // 4, window=window, return_complex=True).abs().clamp(min=1e-4 * size**0.5) for sound in (made, true)
        )
        total = total + (ours.log() - theirs.log()).abs().mean() / len(STFT_SIZES)
        total = total + (ours - theirs).norm() / theirs.norm() / len(STFT_SIZES)
    return total


def fit_decoder(data: Path, out: Path, steps: int, rate: float = 6e-4, seed: int = 1, resume: bool = False) -> None:
    """The codebooks begin as the k-means centres and learn along; `resume` goes on from what `out` holds and keeps its codebooks,
    which its encoder was made for."""
    torch.manual_seed(seed)
    sounds, dac = Sounds(data, seed), DacModel.from_pretrained(out) if resume else model.dac()
    with torch.no_grad():
        for quantizer, book in zip(dac.quantizer.quantizers, () if resume else sounds.books, strict=not resume):
            quantizer.codebook.weight.copy_(book / sounds.books[0].std())
    weights = list(dac.decoder.parameters())
    for quantizer in () if resume else dac.quantizer.quantizers:
        weights += [*quantizer.codebook.parameters(), *quantizer.out_proj.parameters()]
    stepper = torch.optim.AdamW(weights, lr=rate, betas=(0.8, 0.98), weight_decay=0.0)
    begun, told = time.monotonic(), 0.0
    for step in range(steps):
        stepper.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 30, 2.0 * (steps - step) / steps)
        true, codes = sounds.crops()
        with torch.autocast("cpu", torch.bfloat16):
            made = dac.decode(audio_codes=codes).audio_values
        loss = unlike(made.float(), true)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        told = 0.97 * told + 0.03 * float(loss.detach()) if step else float(loss.detach())
        if step % 25 == 24:
            print(f"decoder step {step + 1} {time.monotonic() - begun:.0f}s loss {told:.3f}", flush=True)
        if step % 100 == 99 or step == steps - 1:
            dac.save_pretrained(out)


def fit_encoder(data: Path, out: Path, steps: int, rate: float = 1.5e-3, seed: int = 2) -> None:
    """Each stage must find, by the cosine that DAC uses, the code that k-means found, given the right codes of the stages before."""
    torch.manual_seed(seed)
    sounds, dac = Sounds(data, seed), DacModel.from_pretrained(out)
    stages = dac.quantizer.quantizers
    weights = [*dac.encoder.parameters(), *(weight for stage in stages for weight in stage.in_proj.parameters())]
    stepper = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    begun, told, right = time.monotonic(), 0.0, 0.0
    for step in range(steps):
        stepper.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 30, 2.0 * (steps - step) / steps)
        sound, codes = sounds.crops(frames=40, count=12)
        rest, loss = dac.encoder(sound[:, None]), torch.zeros(())
        for number, stage in enumerate(stages):
            query = functional.normalize(stage.in_proj(rest), dim=1)
            likeness = COSINE_SHARPNESS * torch.einsum("bdt,kd->bkt", query, functional.normalize(stage.codebook.weight.detach(), dim=1))
            loss = loss + functional.cross_entropy(likeness, codes[:, number]) * (1.0, 0.6, 0.4, 0.3)[number]
            if number == 0:
                right = 0.97 * right + 0.03 * float((likeness.argmax(1) == codes[:, 0]).float().mean())
            rest = rest - stage.out_proj(stage.codebook(codes[:, number]).transpose(1, 2)).detach()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        told = 0.97 * told + 0.03 * float(loss.detach()) if step else float(loss.detach())
        if step % 25 == 24:
            print(f"encoder step {step + 1} {time.monotonic() - begun:.0f}s loss {told:.3f} first code right {right:.2f}", flush=True)
        if step % 100 == 99 or step == steps - 1:
            dac.save_pretrained(out)
