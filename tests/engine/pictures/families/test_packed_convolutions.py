"""Test that packed convolutions compute what plain ones do, take no memory twice, and stay away where they were not measured."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import Any

import pytest
import torch
from diffusers import UNet2DConditionModel
from peft import LoraConfig

from app.base import notices
from app.compat.machine import processor
from app.compat.machine.processor import find_refusal
from app.compat.planning.types import Plan, Precision
from app.engine.models import catalog
from app.engine.pictures.families import packed_convolutions
from app.engine.pictures.families.packed_convolutions import PackedConvolution, pack_convolutions, unpack_convolutions
from tests.support import refused
from tests.support import tiny_pictures as tiny
from tests.support.refused import Lack, take_away

asked_anew = refused.asked_anew
REORDER, CONVOLVE = "_C._nn.mkldnn_reorder_conv2d_weight", "ops.mkldnn._convolution_pointwise"
PLAN = tiny.make_plan(catalog.BY_ID["starter-painter"])
EXACT = Precision("unet", "denoiser", "float32", "float32", "cpu")
HALVES = Precision("unet", "denoiser", "bfloat16", "bfloat16", "cpu")
_of_intel = platform.machine() in ("x86_64", "AMD64")
_why, _why_halves = (find_refusal("convolution", each) if _of_intel else "packs on x86 only" for each in (torch.float32, torch.bfloat16))
packs = pytest.mark.skipif(bool(_why), reason=f"on this processor: {_why}")
packs_halves = pytest.mark.skipif(bool(_why_halves), reason=f"on this processor: {_why_halves}")


def make_unet() -> UNet2DConditionModel:
    torch.manual_seed(0)
    return UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 64),
        layers_per_block=1,
        cross_attention_dim=32,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ).eval()


@torch.no_grad()
def compute(unet: Any, side: int = 16) -> torch.Tensor:
    noise = torch.Generator().manual_seed(1)
    latents, words = (torch.randn(shape, generator=noise).to(unet.dtype) for shape in ((2, 4, side, side), (2, 7, 32)))
    found: torch.Tensor = unet(latents, torch.tensor(500), encoder_hidden_states=words, return_dict=False)[0]
    return found.float()


def list_convolutions(unet: torch.nn.Module) -> list[torch.nn.Conv2d]:
    return [each for each in unet.modules() if isinstance(each, torch.nn.Conv2d)]


@packs
@pytest.mark.parametrize("side", [16, 24])
def test_a_packed_unet_computes_the_same(side: int) -> None:
    unet = make_unet()
    plain = compute(unet, side)
    pack_convolutions(unet, PLAN, EXACT)
    compute(unet)  # packs for another size than the second one asked for
    assert all(isinstance(each, PackedConvolution) and each.weight.is_mkldnn for each in list_convolutions(unet))
    torch.testing.assert_close(compute(unet, side), plain, rtol=0, atol=1e-5 * plain.abs().max().item())
    assert unet.dtype == torch.float32 and unet.device.type == "cpu"


@packs
def test_a_lora_may_be_added_before_and_after_packing_and_leave_again() -> None:
    plain, packed = make_unet(), make_unet()
    pack_convolutions(packed, PLAN, EXACT)
    before = compute(packed)
    for unet in (plain, packed):
        torch.manual_seed(3)
        unet.add_adapter(LoraConfig(r=4, init_lora_weights=False, target_modules=["to_q", "conv1", "conv2"]), "style")
    torch.testing.assert_close(compute(packed), compute(plain), rtol=0, atol=1e-4)
    assert (compute(packed) - before).abs().max() > 0.01
    packed.disable_adapters()
    assert torch.equal(compute(packed), before)


@packs_halves
def test_in_bfloat16_they_are_packed_where_the_processor_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And as exact as plain ones, also with a LoRA that comes after packing and leaves again."""
    monkeypatch.setattr(packed_convolutions, "multiplies_bfloat16", lambda: True)
    exact, plain, packed = make_unet(), make_unet().to(torch.bfloat16), make_unet().to(torch.bfloat16)
    pack_convolutions(packed, PLAN, HALVES)
    before = compute(packed)
    assert all(isinstance(each, PackedConvolution) and each.weight.is_mkldnn for each in list_convolutions(packed))
    assert 0 < (before - compute(exact)).abs().max() < 1.5 * (compute(plain) - compute(exact)).abs().max()
    for unet in (exact, plain, packed):
        torch.manual_seed(3)
        unet.add_adapter(LoraConfig(r=4, init_lora_weights=False, target_modules=["to_q", "conv1", "conv2"]), "style")
    assert (compute(packed) - before).abs().max() > 0.01
    assert (compute(packed) - compute(exact)).abs().max() < 1.5 * (compute(plain) - compute(exact)).abs().max()
    packed.disable_adapters()
    assert torch.equal(compute(packed), before)


@packs
def test_no_plain_weight_stays_in_memory() -> None:
    unet = make_unet()
    kept = [torch.utils.weak.WeakTensorKeyDictionary({each.weight: True}) for each in list_convolutions(unet)]
    pack_convolutions(unet, PLAN, EXACT)
    compute(unet)
    assert not any(map(len, kept))


@packs
@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize("path", [REORDER, CONVOLVE])
def test_refused_at_the_start_nothing_is_packed(path: str, lack: Lack, asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    unet = make_unet()
    plain = compute(unet)
    take_away(monkeypatch, path, lack)
    pack_convolutions(unet, PLAN, EXACT)
    assert not any(isinstance(each, PackedConvolution) for each in list_convolutions(unet))
    assert torch.equal(compute(unet), plain)
    (told,) = notices.take_all()
    assert told.key == "processor.plain-order" and path in str(told)


@pytest.mark.slow
@packs
@pytest.mark.parametrize("lack", ["missing", "refused"])
@pytest.mark.parametrize(("path", "steps"), [(REORDER, 0), (CONVOLVE, 0), (CONVOLVE, 1)])
def test_refused_in_the_middle_they_are_plain_again(
    path: str, steps: int, lack: Lack, asked_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first step, at which they pack themselves, and after it; with a LoRA that is added to their weights later."""
    plain, unet = make_unet(), make_unet()
    pack_convolutions(unet, PLAN, EXACT)
    for _ in range(steps):
        compute(unet)
    take_away(monkeypatch, path, lack)
    right = compute(plain)
    torch.testing.assert_close(compute(unet), right, rtol=0, atol=1e-5 * right.abs().max().item())
    assert {type(each) for each in list_convolutions(unet)} == {torch.nn.Conv2d}
    assert {each.weight.layout for each in list_convolutions(unet)} == {torch.strided}
    assert torch.equal(compute(unet), right), "the latents have their order again as well"
    assert [each.key for each in notices.take_all()] == ["processor.plain-order"]
    unpack_convolutions(unet)
    for each in (plain, unet):
        torch.manual_seed(3)
        each.add_adapter(LoraConfig(r=4, init_lora_weights=False, target_modules=["to_q", "conv1", "conv2"]), "style")
    assert torch.equal(compute(unet), compute(plain)) and not torch.equal(compute(unet), right)


@pytest.mark.parametrize(
    ("plan", "how"),
    [
        (replace(PLAN, device="cuda"), EXACT),
        (replace(PLAN, device="cuda", runs_on="cuda"), EXACT),
        (replace(PLAN, offload="model"), EXACT),
        (replace(PLAN, quantised="torchao-int8"), EXACT),
        (PLAN, replace(EXACT, storage="float16")),
        (PLAN, HALVES),
    ],
)
def test_elsewhere_the_convolutions_stay_as_they_are(plan: Plan, how: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of them on a processor that does not multiply bfloat16 itself."""
    monkeypatch.setattr(packed_convolutions, "multiplies_bfloat16", lambda: how != HALVES)
    monkeypatch.setattr(processor, "find_refusal", lambda *_: "")
    unet = make_unet()
    pack_convolutions(unet, plan, how)
    assert not any(isinstance(each, PackedConvolution) for each in list_convolutions(unet))
    assert not unet._forward_pre_hooks
