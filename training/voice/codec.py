"""Compute the codec's codes: 40 frames a second of mel cepstrum, pitch and voicing, quantised by k-means. The first of four stages holds
loudness and tone, the others hold the spectrum one after another: voices that differ in pitch share the spectrum's codes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

RATE_HZ = 16000
HOP = 400
FRAMES_PER_S = RATE_HZ / HOP
CHANNELS = 4
CODES = 512
MELS = 64
CEPSTRA = 24
FEATURES = CEPSTRA + 2
LOG_FLOOR = 2e-3
PITCH_WEIGHT = 5.0
VOICING_WEIGHT = 2.0
LOUDNESS_WEIGHT = 0.6
LOWEST_LAG, HIGHEST_LAG = 50, 230
STAGE_WEIGHTS = torch.zeros(CHANNELS, FEATURES)
STAGE_WEIGHTS[0, 0], STAGE_WEIGHTS[0, CEPSTRA:], STAGE_WEIGHTS[1:, :CEPSTRA] = 0.5, 1.0, 1.0
"""Each feature counts so far in each stage; 0: the stage does not hold it."""


def mel_filters(bins: int, mels: int = MELS, rate_hz: int = RATE_HZ) -> Tensor:
    """Return triangular filters (bins, mels), evenly spaced on the mel scale."""
    top = 2595 * math.log10(1 + rate_hz / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, mels + 2) / 2595) - 1)
    bin_hz = torch.linspace(0, rate_hz / 2, bins)[:, None]
    rising = (bin_hz - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bin_hz) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0)


def cosine_basis(mels: int = MELS, kept: int = CEPSTRA) -> Tensor:
    """Return the orthonormal DCT (mels, kept)."""
    place = (torch.arange(mels) + 0.5)[:, None] * torch.arange(kept)[None] * math.pi / mels
    basis = torch.cos(place) * math.sqrt(2 / mels)
    basis[:, 0] /= math.sqrt(2)
    return basis


def log_mel(sound: Tensor, size: int = 1024, hop: int = HOP) -> Tensor:
    """Convert (samples,) or (batch, samples) to (..., frames, mels)."""
    spectrum = torch.stft(sound, size, hop, win_length=min(size, 800), window=torch.hann_window(min(size, 800)), return_complex=True).abs()
    return torch.log(spectrum.transpose(-1, -2) @ mel_filters(size // 2 + 1) + LOG_FLOOR * 25)


def pitch(sound: Tensor, frames: int) -> Tensor:
    """Return (frames, 2): log of the fundamental relative to 150 Hz, and periodicity, by autocorrelation over 50 ms."""
    size = 800
    padded = torch.nn.functional.pad(sound, (size // 2, size // 2 + HOP))
    pieces = padded.unfold(0, size, HOP)[:frames]
    pieces = (pieces - pieces.mean(1, keepdim=True)) * torch.hann_window(size)
    power = torch.fft.rfft(pieces, 2 * size).abs() ** 2
    likeness = torch.fft.irfft(power)[:, :size]
    window_power = torch.fft.rfft(torch.hann_window(size), 2 * size).abs() ** 2
    own = torch.fft.irfft(window_power)[:size]
    likeness = likeness / (likeness[:, :1] + 1e-3) / (own / own[0]).clamp(min=0.05)
    best, lag = (likeness[:, LOWEST_LAG:HIGHEST_LAG] * torch.linspace(1.0, 0.92, HIGHEST_LAG - LOWEST_LAG)).max(1)
    voiced = ((best - 0.3) / 0.4).clamp(0, 1)
    height = torch.log(RATE_HZ / (lag + LOWEST_LAG).float() / 150)
    return torch.stack([height * (voiced > 0.25), voiced], dim=1)


def features(sound: Tensor) -> Tensor:
    """Convert a sound (samples,) to (frames, FEATURES), weighted so that distance means audible distance."""
    frames = math.ceil(len(sound) / HOP)
    cepstra = log_mel(torch.nn.functional.pad(sound, (0, HOP)))[:frames] @ cosine_basis()
    cepstra[:, 0] *= LOUDNESS_WEIGHT
    tone = pitch(sound, frames) * torch.tensor([PITCH_WEIGHT, VOICING_WEIGHT])
    return torch.cat([cepstra, tone], dim=1)


def nearest(points: Tensor, centres: Tensor) -> Tensor:
    return torch.cat([torch.cdist(part, centres).argmin(1) for part in points.split(20000)])


def k_means(points: Tensor, count: int, rounds: int, seed: int) -> Tensor:
    """Run Lloyd's algorithm; an empty cell takes a random point."""
    draw = torch.Generator().manual_seed(seed)
    centres = points[torch.randperm(len(points), generator=draw)[:count]].clone()
    for _ in range(rounds):
        owner = nearest(points, centres)
        sums = torch.zeros_like(centres).index_add_(0, owner, points)
        sizes = torch.bincount(owner, minlength=count)
        centres = sums / sizes.clamp(min=1)[:, None]
        empty = (sizes == 0).nonzero()[:, 0]
        centres[empty] = points[torch.randint(len(points), (len(empty),), generator=draw)]
    return centres


def fit_codebooks(points: Tensor, seed: int, rounds: int = 20) -> Tensor:
    """Return (CHANNELS, CODES, FEATURES): each stage quantises the residual of those before."""
    books, rest = [], points
    for stage, weights in enumerate(STAGE_WEIGHTS):
        seen = weights > 0
        book = torch.zeros(CODES, FEATURES)
        book[:, seen] = k_means(rest[:, seen] * weights[seen], CODES, rounds, seed + stage) / weights[seen]
        books.append(book)
        rest = rest - book[nearest(rest * weights, book * weights)]
    return torch.stack(books)


def quantise(points: Tensor, books: Tensor) -> Tensor:
    """Convert (frames, FEATURES) to codes (frames, CHANNELS)."""
    codes, rest = [], points
    for book, weights in zip(books, STAGE_WEIGHTS, strict=True):
        owner = nearest(rest * weights, book * weights)
        codes.append(owner)
        rest = rest - book[owner]
    return torch.stack(codes, dim=1)
