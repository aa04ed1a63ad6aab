"""List the attention samples that torch tests itself with (OpInfo), as shapes and options, without importing its test library here."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

LIST = """
import json, sys, types, unittest
# torch's test library imports expecttest for a base class of test cases, which listing samples does not need.
sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
import torch
from torch.testing._internal.common_methods_invocations import op_db
op = next(each for each in op_db if each.name == "nn.functional.scaled_dot_product_attention")
def told(value):
    return {"shape": list(value.shape), "stride": list(value.stride())} if isinstance(value, torch.Tensor) else value
print(json.dumps([
    [[told(each) for each in (sample.input, *sample.args)], {name: told(value) for name, value in sample.kwargs.items()}]
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=True)
]))
"""


@cache
def samples() -> list[tuple[list[Any], dict[str, Any]]]:
    """Arguments and options of each, as list_anew() found them with torch 2.13; a tensor is told by its shape and strides."""
    return [(given, options) for given, options in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))]


def list_anew() -> list[tuple[list[Any], dict[str, Any]]]:
    """In a process of its own: the import forbids assignments to `torch.backends` for good, and takes seven seconds."""
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", LIST], capture_output=True, text=True, check=True)
    distinct = {json.dumps(each): each for each in json.loads(told.stdout.splitlines()[-1])}
    return [(given, options) for given, options in distinct.values()]
