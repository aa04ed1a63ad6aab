"""Speak with a kernel in torch's place: which products it makes, and that the rows are those of torch's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.compat.kernels import few_lines
from app.compat.planning.types import Dtype, Plan, Precision, Quantised
from app.engine.models import catalog
from app.engine.models.loading.packed_linears import FewLinesLinear, Int4Linear, Int8Linear
from app.engine.models.pretended_device import use_real_device
from app.engine.session.packed_weights_check import unpack
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.linears import KEPT_WHOLE, StoredLinear, runs_once
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.run import loader
from tests.support import speech_fixtures, stand_in_kernels
from tests.support.separate_memory import separate_memory
from tests.support.speech_fixtures import dia_of

folders, plan = speech_fixtures.folders, speech_fixtures.plan
STARTER = Path(catalog.BY_ID["starter-voice"].path)
LAYERS = (StoredLinear, Int8Linear, Int4Linear)
TEXT = torch.randint(32, 120, (64,), generator=torch.Generator().manual_seed(0))


def on_card(
    quantised: Quantised = "none", stored: Dtype = "float16", linear: Dtype | None = "float16", device: str = "cuda", **how: Any
) -> Plan:
    """A plan of an old card's: float32, with weights in float16 or packed, multiplied by the kernel."""
    parts = (Precision("model", "speech", stored, "float32", device, linear), Precision("codec", "codec", "float32", "float32", "cpu"))
    return replace(speech_fixtures.PLAIN, device=device, runs_on=device, precision=parts, quantised=quantised, product="kernel", **how)


@contextmanager
def rounded(plan: Plan, weights: Quantised, halves: torch.dtype) -> Iterator[Any]:
    """Load the starter voice on the processor with the numbers that its weights are rounded to."""
    plain = dia_of(loader.load(STARTER, plan)).model
    for name, module in plain.named_modules():
        if isinstance(module, torch.nn.Linear):
            its = "none" if name == KEPT_WHOLE else "int8" if runs_once(name) and weights != "none" else weights
            module.weight.copy_(module.weight.to(halves) if its == "none" else unpack(its, module.weight, halves))
    yield plain


def decode_rows(model: Any, device: str, rows: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the logits of some rows after a prompt's, and the rows; those given, if any."""
    decoding, found = Decoding(model, device, PartInput(TEXT, None, Sampling(guidance=3), 1, 40)), list[torch.Tensor]()
    for _ in range(4):
        logits = decoding.compute_logits()
        found.append(logits.float().cpu())
        decoding.append(logits[0].argmax(-1).cpu() if rows is None else rows[decoding.length])
    return torch.stack(found), decoding.rows


@pytest.mark.parametrize("weights", ["none", pytest.param("int8", marks=pytest.mark.slow), "int4"])
def test_on_an_old_card_each_product_of_a_row_is_one_launch(weights: Quantised, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # a pretended memory is known to one thread
    stand_ins = stand_in_kernels.put(monkeypatch)
    with rounded(plan, weights, torch.float16) as plain:
        right, rows = decode_rows(plain, "cpu", None)
    bits = {"none": 16, "int8": 8, "int4": 4}[weights]
    with separate_memory("cuda") as memory:
        model = dia_of(loader.load(STARTER, on_card(weights))).model
        kinds = {type(each) for name, each in model.named_modules() if name.startswith("model.decoder") and isinstance(each, LAYERS)}
        assert kinds == {
            {"none": StoredLinear, "int8": Int8Linear, "int4": Int4Linear}[weights],
            *([Int8Linear] if weights != "none" else []),
        }
        stand_ins.launched.clear()
        memory.sent_bytes = 0
        found, _ = decode_rows(model, "cuda", rows)
        assert memory.sent_bytes < 10_000, "codes, no weights"
    # Lines before a row, as the text's, are multiplied in float16.
    assert float((found - right).abs().max()) < (1e-2 if weights == "none" else 1e-3) * float(right.abs().max())
    rows_made, depth = 4, len(model.model.decoder.layers)
    of_two = rows_made * depth * len(("qkv_proj", "o_proj", "gate_up_proj", "down_proj"))
    assert stand_ins.launched[bits, 2] == of_two + (rows_made if weights == "none" else 0), (
        "the guided and the unguided line, in one launch"
    )
    assert stand_ins.launched[16, 2] == rows_made + (of_two if weights == "none" else 0), "the layer of the answer has halves"
    assert stand_ins.launched[bits, 1] >= rows_made * depth * 2, "the guided line alone hears the text"


def test_a_row_without_guidance_is_one_line(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    stand_ins = stand_in_kernels.put(monkeypatch)
    with separate_memory("cuda"):
        model = dia_of(loader.load(STARTER, on_card("int8"))).model
        stand_ins.launched.clear()
        decoding = Decoding(model, "cuda", PartInput(TEXT, None, Sampling(guidance=1), 1, 40))
        decoding.compute_logits()
    assert {lines for bits, lines in stand_ins.launched if bits == 8} == {1}


def test_weights_that_are_widened_elsewhere_are_multiplied_as_they_are_stored(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where float16 was not seen to be right, torch would widen each layer first; the kernel sums in float32."""
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    stand_ins = stand_in_kernels.put(monkeypatch)
    with rounded(plan, "none", torch.float16) as plain:
        right, rows = decode_rows(plain, "cpu", None)
    with separate_memory("cuda"):
        found, _ = decode_rows(dia_of(loader.load(STARTER, on_card(linear=None))).model, "cuda", rows)
    assert float((found - right).abs().max()) < 1e-4 * float(right.abs().max()) and stand_ins.launched[16, 2] > 8


@pytest.mark.parametrize("product", ["kernel", "lines"])
def test_on_a_mac_the_layers_that_each_row_runs_take_the_way_of_the_plan(product: Any, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")
    stand_ins = stand_in_kernels.put(monkeypatch)
    parts = (Precision("model", "speech", "float16", "float16", "mps"), Precision("codec", "codec", "float32", "float32", "cpu"))
    mac = replace(speech_fixtures.PLAIN, device="mps", runs_on="mps", precision=parts)
    with separate_memory("mps"):
        right, rows = decode_rows(dia_of(loader.load(STARTER, mac)).model, "mps", None)
        assert not stand_ins.launched
        voice = loader.load(STARTER, replace(mac, product=product))
        model = dia_of(voice).model
        kinds = {runs_once(name): type(each) for name, each in model.named_modules() if name.endswith(("o_proj", KEPT_WHOLE))}
        assert kinds == {True: torch.nn.Linear, False: FewLinesLinear}
        found, _ = decode_rows(model, "mps", rows)
        assert not voice.adapt(mac) and voice.adapt(replace(mac, product=product)), "another way of multiplying is another way of holding"
    assert float((found - right).abs().max()) < 2e-2 * float(right.abs().max())
    assert (stand_ins.launched[16, 2] > 8) == (product == "kernel")


@pytest.mark.slow
def test_a_kernel_that_is_gone_when_a_voice_speaks_gives_way_to_torch(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")

    def refuse(*_: object) -> None:
        raise few_lines.KernelRefused("no library")

    monkeypatch.setattr(few_lines, "find_kernel", refuse)
    for weights in ("none", "int8", "int4"):
        with rounded(plan, weights, torch.float16) as plain:
            right, rows = decode_rows(plain, "cpu", None)
        with separate_memory("cuda"):
            found, _ = decode_rows(dia_of(loader.load(STARTER, on_card(weights))).model, "cuda", rows)
        assert float((found - right).abs().max()) < 1e-2 * float(right.abs().max())


def test_on_a_pretended_machine_torch_multiplies() -> None:
    """This processor has no such kernel, whatever the machine's own report says."""
    real = replace(on_card(), runs_on="cpu")
    assert use_real_device(real).product == "torch" and use_real_device(on_card()).product == "kernel"
