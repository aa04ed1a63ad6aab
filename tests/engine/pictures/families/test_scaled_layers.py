"""Z-Image in float16: as near to float32 as float16 is, however large the numbers inside are, with LoRAs too; what is too large all the same is clipped."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import diffusers
import pytest
import torch
from peft import LoraConfig

from app.engine.pictures.families.placement import scale_layers

WITHIN = 5e-3
"""float16 may be off from float32 by so much of the answer's largest number; it is off by 2.0e-3 to 2.5e-3, with planted numbers or
without."""
LARGE = 24.0
"""The weights of the feed-forward layers are multiplied by it: gated products of up to 3e4, sums of up to 3.4e5."""
LARGE_VALUES = 200.0
"""Those of attention's values and of what is made of them are multiplied by it: sums of up to 2.3e5."""


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def make(large: float, values: float = 1.0) -> Any:
    """A small transformer with random weights, whose blocks make numbers past 65,504 as the published one's do."""
    torch.manual_seed(0)
    kind: Any = diffusers.ZImageTransformer2DModel
    model = kind(
        in_channels=16,
        dim=64,
        n_layers=3,
        n_refiner_layers=1,
        n_heads=4,
        n_kv_heads=4,
        cap_feat_dim=32,
        axes_dims=[4, 4, 8],
        axes_lens=[256, 32, 32],
    ).eval()
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            weight.normal_(0, (2 / weight[0].numel()) ** 0.5)
        if any(each in name for each in ("w1.", "w2.", "w3.")):
            weight.mul_(large)
        if any(each in name for each in ("to_v.", "to_out.")):
            weight.mul_(values)
    return model


def answer(model: Any, added: dict[int, torch.Tensor] | None = None) -> torch.Tensor:
    made, dtype = torch.Generator().manual_seed(1), model.dtype
    picture, text = torch.randn(16, 1, 16, 16, generator=made), torch.randn(7, 32, generator=made)
    found = model(
        [picture.to(dtype)], torch.tensor([0.4], dtype=dtype), [text.to(dtype)], return_dict=False, controlnet_block_samples=added
    )[0][0]
    assert found.dtype == dtype
    return found.float()


def off(found: torch.Tensor, right: torch.Tensor) -> float:
    return float((found - right).abs().max() / right.abs().max())


def largest(model: Any) -> float:
    """The largest number that any of its layers makes, in float32."""
    most = [0.0]
    hooks = [
        each.register_forward_hook(lambda _layer, _given, made: most.append(float(made.abs().max())))
        for each in model.modules()
        if isinstance(each, torch.nn.Linear)
    ]
    answer(model)
    for hook in hooks:
        hook.remove()
    return max(most)


def scaled(model: Any) -> Any:
    half = copy.deepcopy(model).half()
    scale_layers(half)
    return half


@pytest.mark.slow
@pytest.mark.parametrize("factors", [(LARGE, 1.0), (1.0, LARGE_VALUES), (LARGE, LARGE_VALUES)], ids=["gated", "values", "both"])
def test_large_numbers_inside_cost_no_more_than_small_ones(factors: tuple[float, float]) -> None:
    small, large = make(1.0), make(*factors)
    assert largest(small) < 1e3 < 65504 < largest(large)
    assert not answer(copy.deepcopy(large).half()).isfinite().all(), "float16 as it is gives no picture"
    assert off(answer(scaled(small)), answer(small)) < WITHIN
    assert off(answer(scaled(large)), answer(large)) < WITHIN


def test_what_is_already_right_hardly_changes() -> None:
    model = make(1.0)
    assert off(answer(scaled(model)), answer(copy.deepcopy(model).half())) < WITHIN


def test_a_lora_is_scaled_along() -> None:
    """It takes the place of the linear layers, after the layers were scaled, as at a change of LoRAs."""
    model = make(LARGE, LARGE_VALUES)
    half = scaled(model)
    for each in (model, half):
        each.add_adapter(LoraConfig(r=4, lora_alpha=400, init_lora_weights=False, target_modules=["w1", "w2", "w3", "to_v", "to_out.0"]))
    learned = {name: weight for name, weight in model.state_dict().items() if "lora_" in name}
    half.load_state_dict(learned, strict=False)
    plain = make(LARGE, LARGE_VALUES)
    right = answer(model)
    assert off(answer(plain), right) > 3 * WITHIN, "the LoRA does something"
    assert off(answer(half), right) < WITHIN


def test_what_is_too_large_all_the_same_is_clipped() -> None:
    model = make(4 * LARGE)
    found = answer(scaled(model))
    assert found.isfinite().all() and off(found, answer(model)) < 0.5


@pytest.mark.parametrize("place", [0, 2])
def test_what_a_control_model_adds_past_float16_is_clipped(place: int) -> None:
    """It is added after a layer's own clip, and was multiplied by the guide's strength after its own; the last layer's goes to the last norm."""
    model, largest = make(1.0), torch.finfo(torch.float16).max
    for added in (largest, float("inf")):
        half, samples = scaled(model), {place: torch.full((1, 96, 64), added, dtype=torch.float16)}
        half.layers[place].register_forward_hook(lambda _layer, _given, made: made + largest)
        assert answer(half, samples).isfinite().all()


def test_clipping_takes_no_memory_of_its_own() -> None:
    """A control model's block hands on a stack of all that those before it made."""
    half, made = copy.deepcopy(make(1.0)).half(), list[int]()
    for turn in (half.layers[0], half.layers[0].feed_forward, half.layers[0].attention):
        turn.register_forward_hook(lambda _part, _given, found: made.append(found.data_ptr()))
    scale_layers(half)
    for turn in (half.layers[0], half.layers[0].feed_forward, half.layers[0].attention):
        turn.register_forward_hook(lambda _part, _given, found: made.append(found.data_ptr()))
    answer(half)
    assert made[::2] == made[1::2]


def test_without_norms_of_queries_attention_is_not_scaled() -> None:
    """Its softmax would change; larger scores round more."""
    model = make(1.0)
    for block in model.modules():
        if type(block).__name__ == "ZImageTransformerBlock":
            block.attention.norm_q = block.attention.norm_k = None
    assert off(answer(scaled(model)), answer(model)) < 2 * WITHIN


def test_other_transformers_stay_as_they_are() -> None:
    other = torch.nn.Sequential(torch.nn.Linear(4, 4))
    scale_layers(other)
    assert not any(each._forward_hooks or each._forward_pre_hooks for each in other.modules())
