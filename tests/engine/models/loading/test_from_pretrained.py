"""Load tiny Llamas that require FlashAttention 2 or AWQ on machines that have neither."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig
from transformers.models.llama import LlamaConfig, LlamaForCausalLM

from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, ModelPart, Need, Plan
from app.engine.models.detect import read_config_needs
from app.engine.models.loading import awq
from app.engine.models.loading.from_pretrained import load, make_arguments
from app.engine.models.planned import add_config_needs
from tests.support.combinations import combine

WORDS = torch.tensor([[1, 5, 9, 33, 2, 60]])
GROUP = 32
NEED = Need("llama", "speech", heads=4, kv_heads=2, head_dim=16, parts=(ModelPart("model", "speech", 100_000_000),))
ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""AutoAWQ packs in this order: nibble i holds output ORDER[i]."""


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    LlamaForCausalLM(shape).save_pretrained(tmp_path)
    return tmp_path


def insist(folder: Path, **told: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))


def pack(numbers: Tensor) -> Tensor:
    """Pack (rows, outputs) of 0..15 into (rows, outputs / 8), as AutoAWQ does."""
    packed = torch.zeros(numbers.shape[0], numbers.shape[1] // 8, dtype=torch.int32)
    for nibble, place in enumerate(ORDER):
        packed |= numbers[:, place::8].to(torch.int32) << (4 * nibble)
    return packed


def in_awq(folder: Path) -> dict[str, Tensor]:
    """Pack every linear layer except the head, and return the weights as rounded to four bits."""
    [file] = folder.glob("*.safetensors")
    state, rounded = {}, {}
    for name, weight in load_file(file).items():
        rounded[name] = weight
        if "_proj" not in name:
            state[name] = weight
            continue
        inputs = weight.T.reshape(-1, GROUP, weight.shape[0])
        low, high = inputs.amin(1, keepdim=True), inputs.amax(1, keepdim=True)
        scale = ((high - low) / 15).half().float()
        zero = (-low / scale).round().clamp(0, 15)
        numbers = (inputs / scale + zero).round().clamp(0, 15)
        rounded[name] = ((numbers - zero) * scale).flatten(0, 1).T.contiguous()
        stem = name.removesuffix(".weight")
        state[f"{stem}.qweight"] = pack(numbers.flatten(0, 1))
        state[f"{stem}.qzeros"] = pack(zero.squeeze(1))
        state[f"{stem}.scales"] = scale.squeeze(1).half()
    save_file(state, file, metadata={"format": "pt"})
    insist(folder, quantization_config={"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True})
    return rounded


def said(plan: Plan, field: str) -> str:
    return next(str(each.sentence) for each in plan.because if each.field == field)


@pytest.mark.parametrize(
    ("key", "name"), combine(("attn_implementation", "_attn_implementation"), ("gtx-1060", "t4", "rtx-3060", "m1-8gb", "cpu"))
)
def test_a_model_that_insists_on_flash_attention_is_overruled(llama: Path, name: str, key: str) -> None:
    with torch.no_grad():
        wanted = LlamaForCausalLM.from_pretrained(llama)(WORDS).logits
    insist(llama, **{key: "flash_attention_2"})
    with pytest.raises(ImportError, match="FlashAttention2"):
        LlamaForCausalLM.from_pretrained(llama)  # what happens without the plan
    plan = decide(MACHINES[name], add_config_needs(NEED, read_config_needs(llama)))
    model, _ = load(LlamaForCausalLM, llama, plan)
    assert model.config._attn_implementation == plan.attention == "sdpa"
    with torch.no_grad():
        heard = model(WORDS).logits.float()
    assert (heard - wanted).abs().max() < (0.02 if plan.dtype != "float32" or name == "gtx-1060" else 1e-5)
    below = (MACHINES[name].capability or (9, 0)) < (8, 0)
    assert ("compute capability 8.0" in said(plan, "attention")) == below, said(plan, "attention")
    [rejected] = [each for each in plan.rejected if each.field == "attention"]
    assert rejected.option == "flash_attention_2" and len(rejected.objections) == 1 + below


@pytest.mark.parametrize("name", ["gtx-1060", "gtx-1660", "t4", "m2-16gb", "cpu"])
def test_a_model_in_awq_falls_back_where_its_kernels_do_not_run(llama: Path, name: str) -> None:
    rounded = in_awq(llama)
    with pytest.raises(ImportError, match="AWQ"):
        LlamaForCausalLM.from_pretrained(llama)
    plan = decide(MACHINES[name], add_config_needs(NEED, read_config_needs(llama)))
    assert plan.quantised == "none"
    assert next(each for each in plan.rejected if each.option == "awq").objections[0].sentence.key == "quantised.awq-sm80"
    assert "AWQ" in said(plan, "quantised"), said(plan, "quantised")
    model, _ = load(LlamaForCausalLM, llama, plan)
    for key, weight in model.state_dict().items():
        assert torch.allclose(weight.float(), rounded[key].to(weight.dtype).float(), atol=1e-6), key
    reference = LlamaForCausalLM(model.config).eval()
    reference.load_state_dict(rounded)
    with torch.no_grad():
        assert (model(WORDS).logits.float() - reference.float()(WORDS).logits).abs().max() < 0.02


def test_awq_stays_where_its_kernels_run(llama: Path) -> None:
    in_awq(llama)
    config = AutoConfig.from_pretrained(llama)
    plan = decide(MACHINES["rtx-3060"], add_config_needs(NEED, read_config_needs(llama)))
    assert plan.quantised == "awq"
    told = make_arguments(plan, config)
    assert told["dtype"] == torch.float16 and "config" not in told and "quantization_config" not in told


def test_awq_of_another_form_is_refused_with_a_way_out(llama: Path) -> None:
    in_awq(llama)
    insist(llama, quantization_config={"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemv"})
    plan = decide(MACHINES["t4"], add_config_needs(NEED, read_config_needs(llama)))
    with pytest.raises(Trouble, match=r"gemv.*without AWQ"):
        load(LlamaForCausalLM, llama, plan)


def test_unpacking_undoes_packing() -> None:
    numbers = torch.randint(0, 16, (5, 24), generator=torch.Generator().manual_seed(1))
    assert torch.equal(awq.unpack_nibbles(pack(numbers)), numbers.to(torch.int32))


REAL: tuple[tuple[str, Callable[[Hardware], Hardware], str | None], ...] = (
    ("rtx-3060", lambda machine: replace(machine, pretended=""), "cuda"),
    ("rtx-3060", lambda machine: machine, None),
    ("m3-max-64gb", lambda machine: replace(machine, pretended=""), None),
    ("cpu", lambda machine: replace(machine, pretended=""), None),
)


@pytest.mark.parametrize(("name", "made", "device"), REAL)
def test_only_a_real_card_gets_a_device_map(llama: Path, name: str, made: Callable[[Hardware], Hardware], device: str | None) -> None:
    told = make_arguments(decide(made(MACHINES[name]), NEED), AutoConfig.from_pretrained(llama))
    assert told.get("device_map") == (None if device is None else {"": device})


def test_quantisers_are_told_what_to_compute_in(llama: Path) -> None:
    config = AutoConfig.from_pretrained(llama)
    four = make_arguments(decide(MACHINES["gtx-1660"], NEED, Choice(quantised="bnb-nf4")), config)["quantization_config"]
    assert four.load_in_4bit and four.bnb_4bit_quant_type == "nf4" and four.bnb_4bit_compute_dtype == torch.float32
    eight = make_arguments(decide(MACHINES["cpu"], NEED, Choice(quantised="bnb-int8")), config)["quantization_config"]
    assert eight.load_in_8bit
    with pytest.raises(Trouble, match="separate file"):
        picture = Need("p", "picture", parts=(ModelPart("unet", "denoiser", 100_000_000),), published="gguf")
        make_arguments(decide(MACHINES["t4"], picture, Choice(quantised="gguf")), config)


def test_weights_are_kept_narrower_than_they_are_computed_with_on_pascal(llama: Path) -> None:
    large = replace(NEED, parts=(ModelPart("model", "speech", 1_600_000_000),))
    told = make_arguments(decide(MACHINES["gtx-1060"], large), AutoConfig.from_pretrained(llama))
    assert told["dtype"] == torch.float16


@pytest.mark.parametrize(
    ("name", "kind", "layer"), [("cpu", "bnb-int8", "Linear8bitLt"), ("t4", "bnb-nf4", "Linear4bit"), ("cpu", "torchao-int8", "Linear")]
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "awq"])
def test_smaller_weights_are_made_while_loading(llama: Path, name: str, kind: str, layer: str, packed: bool) -> None:
    pytest.importorskip("torchao" if kind.startswith("torchao") else "bitsandbytes", reason="not one of Hearth's own dependencies")
    with torch.no_grad():
        wanted = LlamaForCausalLM.from_pretrained(llama)(WORDS).logits
    if packed:
        in_awq(llama)
    plan = decide(MACHINES[name], add_config_needs(NEED, read_config_needs(llama)), Choice(quantised=kind))  # type: ignore[arg-type]
    model, _ = load(LlamaForCausalLM, llama, plan)
    assert type(model.model.layers[0].mlp.up_proj).__name__ == layer
    with torch.no_grad():
        assert (model(WORDS).logits.float() - wanted).abs().max() < 0.2 * wanted.abs().max()
