"""Multiply few lines on this card by Hearth's kernels: right in every shape, what the self-test says, and rows of full-size Dia before and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from transformers import DiaConfig, DiaForConditionalGeneration

from app.compat.attention.seam import applied
from app.compat.kernels.few_lines import BITS, multiply
from app.compat.kernels.source import GROUP, MOST_LINES, STEP
from app.compat.machine.hardware import probe
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.product_field import ALL, Weights, quicker_subject, right_subject
from app.compat.planning.types import Dtype, Plan, Product
from app.compat.selftest import run
from app.engine.models.loading.packed_linears import scales_dtype
from app.engine.session import few_lines_check
from app.engine.session.few_lines_check import hold, mean
from app.engine.speech.families.dia.decoder_layers import DecoderLayers
from app.engine.speech.families.dia.linears import KEPT_WHOLE, StoredLinears, pack_voice, runs_once
from app.engine.speech.families.dia.row_graph import GraphedRows

pytestmark = pytest.mark.card
DEVICE: Final = "cuda"
OFF: Final = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.5e-2}
OLD: Final = 10
"""A GTX 1060 has so many processors; 19 GB/s of memory serve each, where an H100's 132 have 23."""
BEHIND: Final = (100, 3000)
"""So many rows stand before those that are measured."""
SHAPES: Final = 12
"""So many random ones are drawn for each dtype, kind of weight and number of lines."""
WAYS: Final[tuple[tuple[Weights, Product], ...]] = (("half", "torch"), ("half", "kernel"), ("int8", "kernel"), ("int4", "kernel"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("weights", ALL)
def test_random_shapes_are_those_of_float64(weights: Weights, dtype: Dtype) -> None:
    """Nothing but the products is written, and two runs are equal."""
    lines_dtype, made = getattr(torch, dtype), torch.Generator().manual_seed(0)

    def draw(least: int, most: int) -> int:
        return int(torch.randint(least, most, (1,), generator=made))

    unit, worst = GROUP if weights == "int4" else STEP, 0.0
    for count in range(1, MOST_LINES + 1):
        for _ in range(SHAPES):
            rows, columns = draw(1, 600), unit * draw(1, 2048 // unit)
            weight, given = torch.randn(rows, columns, generator=made) / 8, torch.randn(count, columns, generator=made).to(lines_dtype)
            right = given.double() @ mean(weight, weights, scales_dtype(DEVICE, lines_dtype)).T
            held, scales = hold(weight, weights, DEVICE, lines_dtype)
            first, second = (multiply(BITS[weights], given.to(DEVICE), held, scales) for _ in range(2))
            assert first is not None and second is not None and torch.equal(first, second)
            worst = max(worst, float((first.double().cpu() - right).norm() / right.norm()))
    print(f"| {weights} | {dtype} | {MOST_LINES * SHAPES} shapes | off {worst:.1e} |")
    assert worst < OFF[dtype]


def test_the_self_test_finds_them_right_and_the_plan_takes_what_is_quicker() -> None:
    hardware = probe()
    began_s = time.perf_counter()
    found: dict[Subject, Verdict] = run.run(hardware, lambda *_: None, few_lines_check.questions, isolated=False)
    print(f"| {hardware.name} | {len(found)} questions | {time.perf_counter() - began_s:.0f} s |")
    for subject, verdict in sorted(found.items()):
        print(
            f"| {subject} | {'yes' if verdict.passed else 'no'} | {verdict.error:.2g} | {verdict.elapsed_s * 1e3:.2f} ms | {verdict.words}"
        )
    assert all(verdict.passed for subject, verdict in found.items() if subject.kind == "path")
    for weights in ALL:
        assert right_subject("kernel", weights, "float32") in found and quicker_subject("kernel", weights, "float32") in found


@torch.inference_mode()
def test_weights_come_as_fast_as_an_old_cards_memory_gives_them() -> None:
    """With so many rows that each of this card's processors has what one of an OLD card's would have."""
    grown = torch.cuda.get_device_properties().multi_processor_count // OLD
    for rows, columns, _ in few_lines_check.TIMED[1:]:
        half = torch.empty(rows * grown, columns, dtype=torch.float16, device=DEVICE).normal_(0, 0.02)
        numbers = torch.randint(-127, 128, half.shape, dtype=torch.int8, device=DEVICE)
        pairs = numbers.view(torch.uint8)[:, ::2].contiguous()
        scales = torch.ones(len(half), dtype=torch.float16, device=DEVICE)
        groups = torch.ones(columns // GROUP, len(half), 2, dtype=torch.float16, device=DEVICE)
        lines, weights = torch.ones(2, columns, device=DEVICE), {16: (half, None), 8: (numbers, scales), 4: (pairs, groups)}
        found = {"torch, float16": half.nbytes / time_s(partial(F.linear, lines.half(), half))}
        for bits, (weight, its) in weights.items():
            size = weight.nbytes + (0 if its is None else its.nbytes)
            found[f"kernel, {bits} bits"] = size / time_s(partial(multiply, bits, lines, weight, its))  # type: ignore[arg-type]
        print(f"| {rows} x {columns}, rows times {grown} | " + " | ".join(f"{name}: {each / 1e9:.0f} GB/s" for name, each in found.items()))
        assert found["kernel, 16 bits"] > 0.9 * found["torch, float16"], "one pass over the weights, for both lines"
        assert found["kernel, 8 bits"] > 0.5 * found["torch, float16"]


def time_s(call: Callable[[], object]) -> float:
    """Return the card's seconds for a call: without a graph it would wait for the processor between calls."""
    call()
    graph, took = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for _ in range(3):
            call()
    for _ in range(9):
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        began.record()
        graph.replay()
        ended.record()
        ended.synchronize()
        took.append(began.elapsed_time(ended) / 3e3)
    return median(took)


def make_dia() -> Any:
    """Make Dia 1.6B's shape in float16, random, with attention that does not harden into a choice of one key; on the processor, as if read."""
    with torch.device(DEVICE):
        kind: Any = DiaForConditionalGeneration
        voice = kind(DiaConfig()).to(torch.float16).eval().requires_grad_(False)
    made = torch.Generator(DEVICE).manual_seed(0)
    for name, weight in voice.named_parameters():
        if weight.ndim > 1:
            weight.normal_(
                0, (0.1 if name.endswith(("q_proj.weight", "k_proj.weight")) else 0.5) * weight[0].numel() ** -0.5, generator=made
            )
    return voice.to("cpu")


def load(voice: Any, weights: Weights, product: Product) -> Any:
    """Put it on the card as an old one would have it: float32, weights in float16 or packed."""
    if weights == "half":
        StoredLinears(voice, DEVICE, torch.float16, torch.float32, product).keep(1 << 40)
    else:
        pack_voice(voice, 8 if weights == "int8" else 4, DEVICE, torch.float16, torch.float32, product)
    return voice


def count_launches(make_row: Callable[[Tensor], Tensor], codes: Tensor) -> int:
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        make_row(codes)
        torch.cuda.synchronize()
    return sum(each.count for each in seen.key_averages() if each.device_type.name == "CUDA")


def count_bytes(model: Any) -> int:
    """Return the bytes of weights that each row reads, of layers that are multiplied."""
    found = 0
    for name, module in model.named_modules():
        if "encoder" in name.split(".") or runs_once(name):
            continue
        if name == KEPT_WHOLE or name.endswith("_proj"):
            found += sum(each.nbytes for each in (*module.parameters(recurse=False), *module.buffers(recurse=False)))
    return found


@torch.inference_mode()
def measure(model: Any, plan: Plan, behind: int, graphed: bool) -> tuple[float, int, Tensor]:
    """Return milliseconds a row, launches of a row, and the logits of the third."""
    config = model.config.decoder_config
    codes = torch.randint(0, 1024, (behind + 40, config.num_channels), generator=torch.Generator().manual_seed(1))
    with applied(plan):
        layers = DecoderLayers(model, DEVICE, torch.arange(32, 120), True, 3328)
        layers(codes[:behind].to(DEVICE))
        rows: Callable[[Tensor], Tensor] = (
            GraphedRows(layers, config.num_channels, DEVICE) if graphed else lambda row: layers(row.to(DEVICE))
        )
        took, third = [], torch.empty(0)
        for index in range(behind, behind + 30):
            began_s = time.perf_counter()
            made = rows(codes[index : index + 1]).float().cpu()
            took.append(time.perf_counter() - began_s)
            third = made if index == behind + 2 else third
        launches = 0 if graphed else count_launches(rows, codes[-1:])
    return 1e3 * median(took[5:]), launches, third


def test_rows_of_dia_before_and_after() -> None:
    hardware, right = probe(), dict[int, Tensor]()
    plan = replace(decide(hardware), dtype="float32", runs_on=DEVICE)
    for weights, product in WAYS:
        model = load(make_dia(), weights, product)
        for behind in BEHIND:
            calls_ms, launches, logits = measure(model, plan, behind, graphed=False)
            graph_ms, _, replayed = measure(model, plan, behind, graphed=True)
            if weights == "half":
                right.setdefault(behind, logits)
            off = float((logits - right[behind]).norm() / right[behind].norm())
            print(
                f"| {hardware.name} | {behind} | {weights}, {product} | {launches} launches | {count_bytes(model) / 1e6:.0f} MB of weights "
                f"| {calls_ms:.2f} ms a row, as a graph {graph_ms:.2f} | logits off {off:.1e} |"
            )
            assert off < {"half": 1e-2, "int8": 5e-2, "int4": 1.0}[weights]
            assert float((replayed - logits).norm() / logits.norm()) < 1e-3
        del model
        torch.cuda.empty_cache()
