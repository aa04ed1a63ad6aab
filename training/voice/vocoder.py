"""Train the starter's DAC: its decoder as a vocoder of the fixed codes, its encoder to find the codes' features in a sound."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate
from transformers import DacModel

from . import codec, lookup, model

CROP_FRAMES, CROPS = 24, 8
STFT_SIZES = (1024, 512, 256, 128)
DECODER_STEPS, POLISH_STEPS, ENCODER_STEPS = 600, 7500, 2500
HEARD_FRAMES, HEARD_CROPS = 24, 8
PITCH_SHARE = 3.0


class Sounds:
    """The sound and codes that corpus.write_sounds wrote for the codec."""

    def __init__(self, path: Path, seed: int) -> None:
        with np.load(path) as held:
            self.books = torch.from_numpy(held["books"])
            self.sound = np.split(held["sound"], np.cumsum(held["lengths"])[:-1])
            self.codes = np.split(held["codes"], np.cumsum(held["frames"])[:-1])
        self.rng = np.random.default_rng(seed)

    def crops(self, frames: int = CROP_FRAMES, count: int = CROPS) -> tuple[Tensor, Tensor]:
        """Return sound (count, frames * HOP) and codes (count, CHANNELS, frames), sometimes from the quiet edges of a clip."""
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
    """Return the distance of two sounds: linear and log spectra at four resolutions, and the log mel spectrum."""
    total = (codec.log_mel(made, hop=200) - codec.log_mel(true, hop=200)).abs().mean() * 2
    for size in STFT_SIZES:
        window = torch.hann_window(size)
        ours, theirs = (
            torch.stft(sound, size, size // 4, window=window, return_complex=True).abs().clamp(min=1e-4 * size**0.5)
            for sound in (made, true)
        )
        total = total + (ours.log() - theirs.log()).abs().mean() / len(STFT_SIZES)
        total = total + (ours - theirs).norm() / theirs.norm() / len(STFT_SIZES)
    return total


def fit_decoder(data: Path, out: Path, steps: int = DECODER_STEPS, rate: float = 7e-4, seed: int = 1, trained: Path | None = None) -> None:
    """Train the decoder, whose code vectors start as the k-means centres, or continue from `trained`. `out` exists once it is done."""
    torch.manual_seed(seed)
    sounds = Sounds(data, seed)
    dac = DacModel.from_pretrained(trained) if trained else model.dac()
    if trained is None:
        lookup.lay(dac, sounds.books)
    lookup.hold(dac)
    weights = list(dac.decoder.parameters())
    for quantizer in lookup.list_stages(dac):
        weights += [*quantizer.codebook.parameters(), *quantizer.out_proj.parameters()]
    stepper = torch.optim.AdamW(weights, lr=rate, betas=(0.8, 0.98), weight_decay=0.0)
    part, begun, mean_loss = out.with_suffix(".part"), time.monotonic(), 0.0
    for step in range(steps):
        stepper.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 30, 2.0 * (steps - step) / steps)
        true, codes = sounds.crops()
        made = dac.decode(audio_codes=codes).audio_values
        loss = unlike(made, true)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        mean_loss = 0.97 * mean_loss + 0.03 * float(loss.detach()) if step else float(loss.detach())
        if step % 25 == 24:
            print(f"decoder step {step + 1} {time.monotonic() - begun:.0f}s loss {mean_loss:.3f}", flush=True)
        if step % 100 == 99 or step == steps - 1:
            lookup.level(dac)
            dac.save_pretrained(part)
    part.rename(out)


def other(sound: Tensor, rng: np.random.Generator) -> Tensor:
    """Vary the sounds as other people and rooms would: pitch, loudness, noise."""
    if rng.random() < 0.5:
        sound = interpolate(sound[:, None], scale_factor=float(rng.uniform(0.8, 1.25)), mode="linear")[:, 0]
        sound = sound[:, : sound.shape[1] // codec.HOP * codec.HOP]
    loud = torch.from_numpy(10 ** rng.uniform(-0.4, 0.3, (len(sound), 1))).float()
    noise = torch.from_numpy(10 ** rng.uniform(-4.5, -2.3, (len(sound), 1))).float()
    return (sound * loud + torch.randn_like(sound) * noise).clamp(-1, 1)


def fit_encoder(data: Path, out: Path, steps: int = ENCODER_STEPS, rate: float = 2e-3, seed: int = 2) -> None:
    """Train the encoder to find the features of a sound; codes follow by lookup. `out` exists once it is done."""
    torch.manual_seed(seed)
    sounds, dac = Sounds(data, seed), model.dac()
    lookup.lay(dac, sounds.books)
    weights = list(dac.encoder.parameters())
    importance = torch.ones(codec.FEATURES, 1)
    importance[codec.CEPSTRA :] = PITCH_SHARE
    stepper = torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    part, begun, mean_loss = out.with_suffix(".part"), time.monotonic(), 0.0
    for step in range(steps):
        stepper.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / 30, 2.0 * (steps - step) / steps)
        sound = other(sounds.crops(HEARD_FRAMES, HEARD_CROPS)[0], sounds.rng)
        points = torch.stack([codec.features(one) for one in sound])
        found = dac.encoder(sound[:, None])[:, : codec.FEATURES]
        loss = ((found - lookup.scaled(points, sounds.books).mT).pow(2) * importance).sum(1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        mean_loss = 0.97 * mean_loss + 0.03 * float(loss.detach()) if step else float(loss.detach())
        if step % 25 == 24:
            with torch.no_grad():
                codes = dac.quantizer(dac.encoder(sound[:, None]))[1][:, 0]
            right = float((codes == torch.stack([codec.quantise(one, sounds.books)[:, 0] for one in points])).float().mean())
            print(f"encoder step {step + 1} {time.monotonic() - begun:.0f}s loss {mean_loss:.3f} first code right {right:.2f}", flush=True)
        if step % 100 == 99 or step == steps - 1:
            dac.save_pretrained(part)
    part.rename(out)
