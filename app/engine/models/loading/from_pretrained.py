"""Call from_pretrained as the plan says: attention, dtype, quantisation, device. The plan overrides the model's own config. transformers is
given a config and tensors, never a folder: it would follow what else lies there to other files, other models and the hub."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import safe_open

from app.base.bounded_json import read_json
from app.base.sentence import Sentence
from app.compat.planning.types import Plan, Role
from app.engine.models.loading import quantise, weights_complete
from app.engine.models.loading.awq import unpack_state
from app.engine.models.loading.packed_linears import BITS
from app.engine.models.model_folder import choose_weights

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
    arguments: dict[str, Any] = {"dtype": getattr(torch, storage), "attn_implementation": plan.attention}
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
    """Load a transformers model onto its device; also return notes about its files. `kind` is its class."""
    config = read_config(kind, folder)
    arguments = make_arguments(plan, config, role)
    packed = must_unpack_awq(plan, config)
    with _in_one_thread() if "device_map" in arguments else nullcontext(), open_weights(folder) as weights:
        if packed:
            whole = {name: tensor[...] for name, tensor in weights.items()}
            weights = unpack_state(whole, read_packing(config), arguments["dtype"])
        model, found = kind.from_pretrained(None, state_dict=weights, output_loading_info=True, **{"config": config, **arguments})
    notes = weights_complete.check_weights(folder, found["missing_keys"], found["unexpected_keys"], found["mismatched_keys"])
    how = plan.of(role)
    if "device_map" not in arguments and how is not None and plan.runs_on != "cpu":
        model = model.to(how.device)
    return model.eval(), notes


_STEERING: Final = frozenset(
    {
        "attn_implementation",
        "auto_map",
        "experts_implementation",
        "fusion_config",
        "name_or_path",
        "transformers_weights",
        "trust_remote_code",
    }
)
"""These settings say nothing of a model, but where a library should look for code, kernels or weights."""


def read_config(kind: Any, folder: Path) -> Any:
    """Return the config of a part as its class in transformers has it; what would steer the library is left out."""
    wanted = kind.config_class
    values = read_json(folder / "config.json")
    values = values.get(wanted.base_config_key) or values  # CLIP's text encoder may lie there with the config of all CLIP
    quantise.check_packing(folder, values)
    try:
        return wanted.from_dict(_drop_steering(values))
    except StrictDataclassError as fault:  # a value of another type; it is no ValueError
        raise ValueError(" ".join(str(fault).split())) from fault


def _drop_steering(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    return {name: _drop_steering(value) for name, value in values.items() if not name.startswith("_") and name not in _STEERING}


@contextmanager
def open_weights(folder: Path) -> Iterator[dict[str, Any]]:
    """Open a part's weights by name, as slices that are read when they are needed."""
    reading = {"backend": "pread"} if sys.platform == "win32" else {}  # as transformers does: there a mapped file counts as memory
    with ExitStack() as opened:
        files = [opened.enter_context(safe_open(path, "pt", **reading)) for path in choose_weights(folder)]
        yield {name: file.get_slice(name) for file in files for name in file.keys()}  # noqa: SIM118 - no mapping


@contextmanager
def open_file(file: Path, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Open those of a file's weights whose names begin so, as slices, by the rest of their names."""
    reading = {"backend": "pread"} if sys.platform == "win32" else {}
    with safe_open(file, "pt", **reading) as opened:
        yield {name[len(prefix) :]: opened.get_slice(name) for name in opened.keys() if name.startswith(prefix)}  # noqa: SIM118 - no mapping


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


def _drop_packing(config: Any) -> Any:
    values = config.to_dict()
    values.pop("quantization_config", None)
    return type(config).from_dict(values)
