"""Time Z-Image's full-size blocks in float16 beside float32 and bfloat16, and UNets channels last beside the usual order, and compare what they make."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import diffusers
import pytest
import torch

from app.engine.pictures.families.placement import scale_layers
from bench.full_size import PIPELINES
from tests.card.old_cards import off

pytestmark = pytest.mark.card
DEVICE: Final = "cuda"
ROUNDS: Final = 7
BLOCKS: Final = 4
"""Z-Image has thirty."""
WITHIN: Final = 1e-2
LARGE: Final = 64.0
"""Weights of the feed-forward layers are multiplied by it, so that float16 overflows as it does with the published ones."""


def time_in_turn(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median milliseconds of each way, forwards and backwards by turns."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for number in range(ROUNDS):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            ways[name]()
            ended.record()
            ended.synchronize()
            took[name].append(began.elapsed_time(ended))
    return {name: sorted(each)[ROUNDS // 2] for name, each in took.items()}


@torch.inference_mode()
def test_z_image_in_float16_is_as_near_as_float16_is_and_quicker_than_float32() -> None:
    """At 1,024 pixels; float32 without TensorFloat-32, which cards before Ampere lack."""
    torch.manual_seed(0)
    kind: Any = diffusers.ZImageTransformer2DModel
    with torch.device(DEVICE):
        model = kind(n_layers=BLOCKS, n_refiner_layers=1).eval()
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            weight.normal_(0, weight[0].numel() ** -0.5)
        if any(each in name for each in ("w1.", "w2.", "w3.")):
            weight.mul_(LARGE)
    picture, text = torch.randn(16, 1, 128, 128, device=DEVICE), torch.randn(77, 2560, device=DEVICE)

    def run(its: Any) -> torch.Tensor:
        found: torch.Tensor = its(
            [picture.to(its.dtype)], torch.tensor([0.4], device=DEVICE, dtype=its.dtype), [text.to(its.dtype)], return_dict=False
        )[0][0]
        return found

    plain, half, brain = copy.deepcopy(model).half(), copy.deepcopy(model).half(), copy.deepcopy(model).bfloat16()
    scale_layers(half)
    precise, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, False
    try:
        right, found, before = run(model), run(half), run(plain)
        ways = {"float32": model, "float16, scaled": half, "float16, as it is": plain, "bfloat16": brain}
        took = time_in_turn({name: partial(run, its) for name, its in ways.items()})
    finally:
        torch.backends.cuda.matmul.allow_tf32 = precise
    print(
        f"| {torch.cuda.get_device_name()} | {BLOCKS} blocks, 1,024 px | " + " | ".join(f"{name} {ms:.1f} ms" for name, ms in took.items())
    )
    print(f"| off from float32: scaled {off(found, right):.1e}, as it is {off(before, right):.1e}, bfloat16 {off(run(brain), right):.1e} |")
    assert off(found, right) < WITHIN and not before.isfinite().all()
    assert took["float16, scaled"] < took["float32"]


@torch.inference_mode()
@pytest.mark.parametrize(("family", "size"), [("sd15", 512), ("sdxl", 1024)])
def test_channels_last_changes_no_picture(family: str, size: int) -> None:
    torch.manual_seed(0)
    with torch.device(DEVICE):
        unet = PIPELINES[family]().unet.half().eval()
        for weight in unet.parameters():
            if weight.ndim > 1:
                weight.normal_(0, weight[0].numel() ** -0.5)
        words = torch.randn(2, 77, unet.config.cross_attention_dim, dtype=torch.float16)
        latents = torch.randn(2, 4, size // 8, size // 8, dtype=torch.float16)
        more = {"text_embeds": torch.randn(2, 1280).half(), "time_ids": torch.ones(2, 6).half()} if family == "sdxl" else None
    last = copy.deepcopy(unet).to(memory_format=torch.channels_last)

    def run(its: Any, given: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = its(given, 500, words, added_cond_kwargs=more, return_dict=False)[0]
        return found

    ordered = latents.to(memory_format=torch.channels_last)
    distance = off(run(last, ordered), run(unet, latents))
    took = time_in_turn({"usual": lambda: run(unet, latents), "channels last": lambda: run(last, ordered)})
    print(
        f"| {torch.cuda.get_device_name()} | {family}, {size} px, float16, two rows | usual {took['usual']:.1f} ms | channels last "
        f"{took['channels last']:.1f} ms | {took['channels last'] / took['usual']:.2f} | off {distance:.1e} |"
    )
    assert distance < WITHIN
