"""Trains the free voice's DAC for a while, on a processor or a card: the decoder as a vocoder of the fixed codes, the encoder to find the features."""

from __future__ import annotations

from pathlib import Path

import torch

from ..voice import codec, lookup, model
from ..voice.vocoder import PITCH_SHARE, Sounds, other, unlike
from .clock import clock

CROP_FRAMES = 24
CROPS = {"cpu": 8, "cuda": 48}


def pace(share: float, step: int) -> float:
    """The rate at a share of the time: a quick start, then full for half of the time, then falling."""
    return max(0.0, min(1.0, (step + 1) / 30, 2.0 * (1 - share)))


def fit_decoder(data: Path, out: Path, seconds: float, rate: float = 7e-4, seed: int = 1, device: str = "cpu") -> None:
    """What the codes mean to the decoder begins as the k-means centres and learns along. `out` is there when all is done."""
    torch.manual_seed(seed)
    sounds, now_s = Sounds(data, seed), clock(device)
    dac = model.dac(len(sounds.books))
    lookup.lay(dac, sounds.books)
    dac.to(device)
    lookup.hold(dac)
    weights = list(dac.decoder.parameters())
    for quantizer in dac.quantizer.quantizers:
        weights += [*quantizer.codebook.parameters(), *quantizer.out_proj.parameters()]
    stepper = torch.optim.AdamW(weights, lr=rate, betas=(0.8, 0.98), weight_decay=0.0)
    part, begun, told, step, share = out.with_suffix(".part"), now_s(), 0.0, 0, 0.0
    while share < 1:
        stepper.param_groups[0]["lr"] = rate * pace(share, step)
        true, codes = (each.to(device) for each in sounds.crops(CROP_FRAMES, CROPS[device]))
        with torch.autocast(device, torch.bfloat16):
            made = dac.decode(audio_codes=codes).audio_values
        loss = unlike(made.float(), true)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        step, share = step + 1, (now_s() - begun) / seconds
        if step % 50 == 1:
            told = 0.7 * told + 0.3 * float(loss.detach()) if step > 1 else float(loss.detach())
            print(f"decoder step {step} {now_s() - begun:.0f}s loss {told:.3f}", flush=True)
        if step % 500 == 0 or share >= 1:
            lookup.level(dac)
            dac.save_pretrained(part)
    part.rename(out)


def fit_encoder(data: Path, out: Path, seconds: float, rate: float = 2e-3, seed: int = 2, device: str = "cpu") -> None:
    """The encoder learns the features of a sound; which codes they are is then a matter of lookup. `out` is there when all is done."""
    torch.manual_seed(seed)
    sounds, now_s = Sounds(data, seed), clock(device)
    dac = model.dac(len(sounds.books))
    lookup.lay(dac, sounds.books)
    dac.to(device)
    weights = list(dac.encoder.parameters())
    importance = torch.ones(codec.FEATURES, 1, device=device)
    importance[codec.CEPSTRA :] = PITCH_SHARE
    stepper = torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    part, begun, told, step, share = out.with_suffix(".part"), now_s(), 0.0, 0, 0.0
    while share < 1:
        stepper.param_groups[0]["lr"] = rate * pace(share, step)
        sound = other(sounds.crops(CROP_FRAMES, CROPS[device])[0], sounds.rng)
        wanted = torch.stack([lookup.scaled(codec.features(one), sounds.books).T for one in sound]).to(device)
        found = dac.encoder(sound.to(device)[:, None])[:, : codec.FEATURES]
        loss = ((found - wanted).pow(2) * importance).sum(1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 5.0)
        stepper.step()
        stepper.zero_grad(set_to_none=True)
        step, share = step + 1, (now_s() - begun) / seconds
        if step % 50 == 1:
            told = 0.7 * told + 0.3 * float(loss.detach()) if step > 1 else float(loss.detach())
            print(f"encoder step {step} {now_s() - begun:.0f}s loss {told:.3f}", flush=True)
        if step % 500 == 0 or share >= 1:
            dac.save_pretrained(part)
    part.rename(out)
