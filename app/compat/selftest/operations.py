"""Questions about torch besides attention: products, convolutions, memory, threads. Each compares with numpy in float64."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np
import psutil
import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.seam import read_split_sums, set_split_sums, switch_cudnn
from app.compat.attention.tile_size import ask_free
from app.compat.planning.types import HALVES, Convolution, Dtype
from app.compat.selftest.reference import NARROW, Array, error, make

Measured = tuple[float, float]
"""It holds the largest error, and seconds."""
Made = Callable[..., Tensor]
LARGE: Final = (256, 1024, 240_000)
"""A product of these rows, sum and columns is past the size at which an M1 left a band of NaN: (rows + 2 sums) x columns of float32 are
more than 2 GiB."""
TOO_MUCH_BYTES: Final = 512 << 20
KEPT_TOO_MUCH: Final = 3
"""An allocator may keep some memory; one that keeps every size holds many times what was alive at once."""


def _random(dtype: Dtype) -> Made:
    """Return a function that makes tensors with reproducible content."""
    generator = torch.Generator().manual_seed(0)
    return lambda *size: torch.randn(*size, generator=generator).to(getattr(torch, dtype))


def _compare(right: Array, run: Callable[[], Tensor]) -> Measured:
    began_s = time.perf_counter()
    return error(run(), right), time.perf_counter() - began_s  # reading the result waits for the device


def linear(dtype: Dtype, device: str) -> Measured:
    """Test linear layers over few rows and many; in half precision also with sums that only float32 holds on the way."""
    made, cast = _random(dtype), getattr(torch, dtype)
    cases = [(made(64, 256), made(64, 256))]
    if dtype in HALVES:
        random = torch.Generator().manual_seed(0)
        rows, weight = (0.5 + torch.rand(count, 4096, generator=random) for count in (64, 256))
        rows[:, 2048:] *= -1  # the first half of each sum exceeds float16, the whole is small
        cases += [(few.to(cast), weight.to(cast)) for few in (40 * rows[:2], 40 * rows)]
    found = [_multiply(rows, weight, device) for rows, weight in cases]
    return max(worst for worst, _ in found), sum(elapsed_s for _, elapsed_s in found)


def _multiply(rows: Tensor, weight: Tensor, device: str) -> Measured:
    return _compare(rows.double().numpy() @ weight.double().numpy().T, lambda: F.linear(rows.to(device), weight.to(device)))


def convolution(dtype: Dtype, device: str) -> Measured:
    made = _random(dtype)
    picture, kernel = made(1, 16, 32, 32), made(16, 16, 3, 3)
    return _compare(convolved(picture, kernel), lambda: F.conv2d(picture.to(device), kernel.to(device)))


@contextmanager
def convolving_by(way: Convolution) -> Iterator[None]:
    """Let the card's library compute convolutions for a while, or torch itself."""
    before = torch.backends.cudnn.enabled
    switch_cudnn(way == "library")
    try:
        yield
    finally:
        switch_cudnn(before)


@contextmanager
def summing_whole() -> Iterator[None]:
    """Let no card round parts of a sum, as the seam does."""
    before = read_split_sums()
    set_split_sums((False, False))
    try:
        yield
    finally:
        set_split_sums(before)


def is_library_right(device: str, most: float) -> bool:
    """Return whether the card's library computes a convolution in float32 with at most this error. Without code for the card it raises."""
    with convolving_by("library"), suppress(RuntimeError):
        return convolution("float32", device)[0] <= most
    return False


def arithmetic(dtype: Dtype, device: str) -> Measured:
    """Test a linear layer and a convolution, which models use besides attention."""
    first, second = linear(dtype, device), convolution(dtype, device)
    return max(first[0], second[0]), first[1] + second[1]


def convolved(picture: Tensor, kernel: Tensor) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(picture.double().numpy(), kernel.shape[-2:], axis=(-2, -1))
    result: Array = np.einsum("bchwij,ocij->bohw", windows, kernel.double().numpy())
    return result


def long_sound(dtype: Dtype, device: str) -> Measured:
    sound = torch.linspace(-1, 1, 66_000).reshape(1, 1, -1)
    kernel = torch.tensor([[[0.5, 1.0, -0.25]]])
    right = np.correlate(sound.double().numpy()[0, 0], kernel.double().numpy()[0, 0])[None, None]
    return _compare(right, lambda: F.conv1d(sound.to(device), kernel.to(device)))


def ignored_addend(dtype: Dtype, device: str) -> Measured:
    """Test that with beta 0 the addend's content is ignored."""
    made = make(NARROW, dtype, device)
    query, key = made.query.flatten(0, 1), made.key.flatten(0, 1)
    dirt = torch.full((query.shape[0], query.shape[1], key.shape[1]), math.nan, dtype=query.dtype, device=device)
    right = query.double().cpu().numpy() @ key.double().cpu().numpy().swapaxes(-1, -2)
    return _compare(right, lambda: torch.baddbmm(dirt, query, key.transpose(-1, -2), beta=0))


def expanded_rows(dtype: Dtype, device: str) -> Measured:
    """Test a linear layer whose input shows the same rows several times."""
    made = _random(dtype)
    rows, weight = made(1, 49, 64), made(64, 64)
    right = np.broadcast_to(rows.double().numpy() @ weight.double().numpy().T, (5, 49, 64))
    return _compare(np.asarray(right), lambda: F.linear(rows.to(device).expand(5, -1, -1), weight.to(device)))


def repeated_linear(dtype: Dtype, device: str) -> Measured:
    """Test a linear layer over rows of a batch, twice: each call may give other numbers."""
    made = _random(dtype)
    rows, weight = made(2, 13, 1024), made(1024, 1024)
    right = rows.double().numpy() @ weight.double().numpy().T
    given = rows.to(device), weight.to(device)
    first, second = (_compare(right, lambda: F.linear(*given)) for _ in range(2))
    return max(first[0], second[0]), first[1] + second[1]


def large_product(dtype: Dtype, device: str) -> Measured:
    """Test a product of matrices that take 1.2 GB, of which every number is 1. It is asked where twice of that is free."""
    rows, summed, columns = LARGE
    like: dict[str, Any] = {"dtype": getattr(torch, dtype), "device": device}
    right = torch.ones(1, **like)
    if ask_free(right.device) < 2 * right.element_size() * (rows + summed) * columns:
        raise MemoryError
    began_s = time.perf_counter()
    made = torch.full((rows, summed), 1 / summed, **like) @ right.expand(summed, columns).contiguous()
    least, most = float(made.amin()), float(made.amax())  # either is NaN if any number is
    off = max(1 - least, most - 1)
    return (off if math.isfinite(off) else math.inf), time.perf_counter() - began_s


def weight_in_weight(dtype: Dtype, device: str) -> Measured:
    """Test a convolution whose weight is part of a larger tensor."""
    made = _random(dtype)
    picture, kernels = made(2, 8, 16, 16), made(4, 8, 3, 3, 3)
    return _compare(convolved(picture, kernels[:, :, 1]), lambda: F.conv2d(picture.to(device), kernels.to(device)[:, :, 1]))


def half_of_channels(dtype: Dtype, device: str) -> Measured:
    """Test a convolution over half of a tensor's channels."""
    made = _random(dtype)
    picture, kernel = made(2, 16, 16, 16), made(8, 8, 3, 3)
    return _compare(convolved(picture[:, 8:], kernel), lambda: F.conv2d(picture.to(device).chunk(2, dim=1)[1], kernel.to(device)))


def product_in_place(dtype: Dtype, device: str) -> Measured:
    """Test a product that is written into the middle of a tensor."""
    made = _random(dtype)
    left, right = made(16, 32), made(32, 16)
    out = torch.zeros(2, 16, 16, dtype=left.dtype, device=device)
    return _compare(left.double().numpy() @ right.double().numpy(), lambda: torch.mm(left.to(device), right.to(device), out=out[1]))


def number_in_list(dtype: Dtype, device: str) -> Measured:
    """Test arithmetic with one number of a list that is on the processor."""
    numbers = torch.arange(1.0, 9.0, dtype=getattr(torch, dtype))
    ones = torch.ones(2, 3, dtype=numbers.dtype, device=device)
    return _compare(np.full((2, 3), 6.0), lambda: ones + numbers[4])


def two_threads(dtype: Dtype, device: str) -> Measured:
    """Let two threads use the device at once; count wrong sums."""
    began_s = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda _: [int(torch.arange(1000, device=device).sum()) for _ in range(200)], range(2))
        wrong = sum(each != 499_500 for its in found for each in its)
    return float(wrong), time.perf_counter() - began_s


def small_model(dtype: Dtype, device: str) -> Measured:
    """Test a chain of the layers that picture models are made of."""
    made = _random(dtype)
    picture, kernel, weight = made(1, 4, 18, 18), made(16, 4, 3, 3) / 4, made(16, 16) / 4

    def run() -> Tensor:
        grown = F.interpolate(F.silu(F.group_norm(F.conv2d(picture.to(device), kernel.to(device)), 4)), scale_factor=2.0)
        tokens = F.layer_norm(grown.flatten(2).transpose(1, 2), (16,))
        return F.linear(F.gelu(torch.softmax(tokens @ tokens.transpose(1, 2) / 4, -1) @ tokens), weight.to(device))

    seen = _normed(convolved(picture, kernel).reshape(1, 4, -1)).reshape(1, 16, 16, 16)
    grown = (seen / (1 + np.exp(-seen))).repeat(2, -1).repeat(2, -2)
    tokens = _normed(grown.reshape(1, 16, -1).swapaxes(1, 2))
    scores = tokens @ tokens.swapaxes(1, 2) / 4
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = weights / weights.sum(-1, keepdims=True) @ tokens
    curved = mixed * (1 + np.vectorize(math.erf)(mixed / math.sqrt(2))) / 2
    return _compare(curved @ weight.double().numpy().T, run)


def _normed(numbers: Array) -> Array:
    result: Array = (numbers - numbers.mean(-1, keepdims=True)) / np.sqrt(numbers.var(-1, keepdims=True) + 1e-5)
    return result


def more_than_fits(dtype: Dtype, device: str) -> Measured:
    """Ask for more memory than the card has free; one whose driver gives it all the same takes the computer's."""
    began_s = time.perf_counter()
    free_bytes, _ = torch.cuda.mem_get_info()
    try:
        torch.empty(free_bytes + TOO_MUCH_BYTES, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        return 0.0, time.perf_counter() - began_s
    return 1.0, time.perf_counter() - began_s


def growing_sizes(dtype: Dtype, device: str) -> Measured:
    """Cast tensors, each longer than the last, as a growing cache of keys is; measure what memory keeps."""
    return _kept(lambda step: torch.ones((16 + step) << 14, dtype=torch.float16, device=device).float(), device, 6 * (80 << 14))


def repeated_attention(dtype: Dtype, device: str) -> Measured:
    """Repeat one attention; measure what memory keeps."""
    query = torch.ones(1, 4, 512, 40, dtype=getattr(torch, dtype), device=device)
    return _kept(lambda _: F.scaled_dot_product_attention(query, query, query), device, 3 * 4 * 512 * 512 * query.element_size())


def _kept(run: Callable[[int], Tensor], device: str, alive_bytes: int) -> Measured:
    """Return how many times more memory stays than was alive at once, less what an allocator may keep."""
    began_s = time.perf_counter()
    run(0)
    before = held_bytes(device)
    for step in range(64):
        run(step)
    return max(0.0, (held_bytes(device) - before) / alive_bytes - KEPT_TOO_MUCH), time.perf_counter() - began_s


def held_bytes(device: str) -> int:
    """Return the memory that the device's driver, or on a processor the system, counts for this process."""
    if device == "mps":
        torch.mps.synchronize()
        return int(torch.mps.driver_allocated_memory())
    if device == "cuda":
        return int(torch.cuda.memory_reserved())
    return int(psutil.Process().memory_info().rss)
