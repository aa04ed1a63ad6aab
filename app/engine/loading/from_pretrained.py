"""Call from_pretrained as the plan says: attention, dtype, quantisation, device. The plan overrides the model's own config."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from safetensors.torch import load_file

from app.compat.planning.types import Plan, Role
from app.engine.loading import quantise, weights_complete
from app.engine.loading.awq import unpack_state
from app.engine.loading.packed_linears import BITS
from app.sentence import Sentence

_NO_THREADS: Final = "HF_DEACTIVATE_ASYNC_LOAD"


def read_packing(config: object) -> Mapping[str, Any]:
    """Return the config's quantization_config; empty for unpacked weights."""
    packing = getattr(config, "quantization_config", None) or {}
    return packing if isinstance(packing, Mapping) else dict(packing.to_dict())


def make_arguments(plan: Plan, config: object, role: Role = "speech") -> dict[str, Any]:
    """Return the keyword arguments for from_pretrained; `config` is the model's own."""
    how = plan.of(role)
    storage, compute = (how.storage, how.compute) if how else (plan.dtype, plan.dtype)
    device = plan.runs_on if plan.runs_on == "cpu" or how is None else how.device
    arguments: dict[str, Any] = {
        "dtype": getattr(torch, storage),
        "attn_implementation": plan.attention,
        "use_safetensors": True,
        "trust_remote_code": False,
    }
    if plan.quantised == "awq":
        arguments["dtype"] = torch.float16  # AWQ's kernels take no other
    elif plan.quantised != "none" and plan.quantised not in BITS:
        arguments["quantization_config"] = quantise.make_config("transformers", plan.quantised, getattr(torch, compute))
    if device == "cuda":
        # On other devices the model is loaded on the CPU and moved: see the quirk mps-device-map.
        arguments["device_map"] = {"": device}
    if must_unpack_awq(plan, config):
        arguments["config"] = _drop_packing(config)
    return arguments


def must_unpack_awq(plan: Plan, config: object) -> bool:
    """Tell whether the weights are packed by AWQ and the plan does not run AWQ's kernels."""
    return read_packing(config).get("quant_method") == "awq" and plan.quantised != "awq"


def load(kind: Any, folder: Path, plan: Plan, role: Role = "speech") -> tuple[Any, list[Sentence]]:
    """Load a transformers model onto its device; also return notes about its files. `kind` is its class or an AutoModel."""
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
    arguments = make_arguments(plan, config, role)
    if must_unpack_awq(plan, config):
        del arguments["use_safetensors"]  # the weights are passed in
        model, found = kind.from_pretrained(
            None,
            state_dict=unpack_state(_read_weights(folder), read_packing(config), arguments["dtype"]),
            output_loading_info=True,
            **arguments,
        )
    else:
        with _in_one_thread() if "device_map" in arguments else nullcontext():
            model, found = kind.from_pretrained(folder, output_loading_info=True, **arguments)
    notes = weights_complete.check_weights(folder, found["missing_keys"], found["unexpected_keys"], found["mismatched_keys"])
    how = plan.of(role)
    if "device_map" not in arguments and how is not None and plan.runs_on != "cpu":
        model = model.to(how.device)
    return model.eval(), notes


@contextmanager
def _in_one_thread() -> Iterator[None]:
    """Have transformers load in this thread, which owns the device: its own four would copy weights there all at once."""
    before = os.environ.get(_NO_THREADS)
    os.environ[_NO_THREADS] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NO_THREADS]
        else:
            os.environ[_NO_THREADS] = before


def _read_weights(folder: Path) -> dict[str, Any]:
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


def _drop_packing(config: Any) -> Any:
    values = config.to_dict()
    values.pop("quantization_config", None)
    return type(config).from_dict(values)
