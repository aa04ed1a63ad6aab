"""What from_pretrained is told: attention, dtype, quantisation, device. A plan's word goes over a model's own, and never a device map on Metal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from app.compat.planning.types import Need, Plan, Role
from app.engine.loading import weights_complete
from app.sentence import Sentence, Trouble, say


def add_config_needs(need: Need, config: object) -> Need:
    """The need, with what the model's own config insists on: decide() then says what becomes of it."""
    attention = getattr(config, "_attn_implementation", None) or need.attention
    published = "awq" if read_packing(config).get("quant_method") == "awq" else need.published
    return replace(need, attention=str(attention or ""), published=published)


def read_packing(config: object) -> Mapping[str, Any]:
    """How its weights are packed, from its config; empty for plain ones."""
    told = getattr(config, "quantization_config", None) or {}
    return told if isinstance(told, Mapping) else dict(told.to_dict())


def make_arguments(plan: Plan, config: object, role: Role = "speech") -> dict[str, Any]:
    """The keywords for from_pretrained. `config` is the model's own; where it goes in, it goes in without its packing."""
    import torch

    how = plan.of(role)
    storage, compute = (how.storage, how.compute) if how else (plan.dtype, plan.dtype)
    device = plan.runs_on if plan.runs_on == "cpu" or how is None else how.device
    told: dict[str, Any] = {
        "dtype": getattr(torch, storage),
        "attn_implementation": plan.attention,
        "use_safetensors": True,
        "trust_remote_code": False,
    }
    if plan.quantised == "awq":
        told["dtype"] = torch.float16  # the only one that AWQ's kernels take
    elif plan.quantised != "none":
        told["quantization_config"] = quantisation(plan, getattr(torch, compute))
    if device == "cuda":
        # Elsewhere a model is loaded on the processor and then moved: see mps-device-map.
        told["device_map"] = {"": device}
    if must_unpack_awq(plan, config):
        told["config"] = _drop_packing(config)
    return told


def must_unpack_awq(plan: Plan, config: object) -> bool:
    """Its weights are AWQ's, and this machine does not run AWQ's kernels."""
    return read_packing(config).get("quant_method") == "awq" and plan.quantised != "awq"


def quantisation(plan: Plan, compute: Any) -> Any:
    """The quantiser's own config."""
    import transformers

    small: Any = transformers.BitsAndBytesConfig
    if plan.quantised == "bnb-nf4":
        return small(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute)
    if plan.quantised == "bnb-int8":
        return small(load_in_8bit=True)
    if plan.quantised == "torchao-int8":
        return transformers.TorchAoConfig(import_module("torchao.quantization").Int8WeightOnlyConfig())
    raise Trouble(
        say(
            "loading.gguf", "{kind} weights come as a file of their own and are not made while loading. Choose a model that is published so, or leave it automatic.",
            kind=plan.quantised,
        ),
        cure="automatic",
    )  # fmt: skip


def load(kind: Any, folder: Path, plan: Plan, role: Role = "speech") -> tuple[Any, list[Sentence]]:
    """A transformers model on its device, as planned, and what was strange about its files. `kind` is its class or an AutoModel."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    told = make_arguments(plan, config, role)
    if must_unpack_awq(plan, config):
        from app.engine.loading.awq import unpack_state

        del told["use_safetensors"]  # they were read here already
        model, found = kind.from_pretrained(
            None,
            state_dict=unpack_state(_read_weights(folder), read_packing(config), told["dtype"]),
            output_loading_info=True,
            **told,
        )
    else:
        model, found = kind.from_pretrained(folder, output_loading_info=True, **told)
    strange = weights_complete.check_weights(folder, found["missing_keys"], found["unexpected_keys"], found["mismatched_keys"])
    how = plan.of(role)
    if "device_map" not in told and how is not None and plan.runs_on != "cpu":
        model = model.to(how.device)
    return model.eval(), strange


def _read_weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def _drop_packing(config: Any) -> Any:
    told = config.to_dict()
    told.pop("quantization_config", None)
    return type(config).from_dict(told)
