"""Speak with packed weights: how far the rows of a trained voice move, what is held, and whole requests."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import DiaConfig, DiaForConditionalGeneration

from app.compat.attention.seam import applied
from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import Plan, Precision, Quantised
from app.engine.jobs.control import Control
from app.engine.jobs.events import Sound, Stopped
from app.engine.jobs.request import SpeechRequest
from app.engine.models import catalog
from app.engine.models.loading.packed_linears import BITS, Bits, Int4Linear, Int8Linear, pack_linear
from app.engine.models.voice_limits import read_limits
from app.engine.session.packed_weights_check import unpack
from app.engine.speech.families.dia import linears
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.linears import KEPT_WHOLE, pack_voice, runs_once
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.families.dia.voice_prompt import compose_text
from app.engine.speech.run import loader
from app.engine.speech.sound import sound
from app.engine.speech.text.turns import Turn
from tests.support import speech_fixtures
from tests.support.separate_memory import separate_memory
from tests.support.speech_fixtures import dia_of, find_result, run

folders, plan = speech_fixtures.folders, speech_fixtures.plan

STARTER = Path(catalog.BY_ID["starter-voice"].path)
SAID = Turn(1, "The green boat is near the house."), Turn(2, "Yes, I can see it from here.")
ROWS = 80


def load(folder: Path, plan: Plan, quantised: Quantised = "none") -> loader.Speaker:
    return loader.load(folder, replace(plan, quantised=quantised))


def decode(voice: loader.Speaker, plan: Plan, rows: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows that this voice makes, or those given, and its log probabilities of each code."""
    dia, found = dia_of(voice), list[torch.Tensor]()
    text = dia.tokenizer(compose_text(SAID, read_limits(STARTER)), return_tensors="pt").input_ids[0]
    with applied(plan):
        decoding = Decoding(dia.model, "cpu", PartInput(text, None, Sampling(guidance=1, temperature=0.7), 1, ROWS + 20))
        for _ in range(ROWS):
            if rows is None:
                decoding.step()
            else:
                found.append(decoding.compute_logits()[0].float().log_softmax(-1))
                decoding.append(rows[decoding.length])
    return decoding.rows, torch.stack(found) if found else torch.empty(0)


def in_bfloat16(plan: Plan) -> loader.Speaker:
    voice = load(STARTER, plan)
    dia_of(voice).model.to(torch.bfloat16)
    return voice


WAYS: dict[str, tuple[Callable[[Plan], Any], float, float]] = {
    "bfloat16": (in_bfloat16, 0.002, 0.95),
    "int8": (lambda plan: load(STARTER, plan, "int8"), 0.002, 0.965),  # the plan says 97 of 100
    "int4": (lambda plan: load(STARTER, plan, "int4"), 0.1, 0.75),
}
"""Each row says how the trained voice is held, how many nats its choice may cost, and what share of rows must have the same best code."""


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_trained_voice_says_nearly_the_same(way: str, plan: Plan) -> None:
    make, most_nats, least_same = WAYS[way]
    plain = load(STARTER, plan)
    rows, _ = decode(plain, plan)
    (_, right), (_, found) = decode(plain, plan, rows), decode(make(plan), plan, rows)
    lost = float((right.exp() * (right - found)).sum(-1).mean())
    same = float((right.argmax(-1) == found.argmax(-1)).float().mean())
    print(f"\n{way}: {lost:.5f} nats lost a code, the same best code in {same:.1%}")
    assert 0 < lost < most_nats and same > least_same


def count_bytes(rows: int, columns: int, bits: Bits) -> int:
    held = pack_linear(torch.zeros(rows, columns), bits, "cpu", torch.float32)
    return sum(each.nbytes for each in held.buffers())


@pytest.mark.parametrize("quantised", ["int8", "int4"])
def test_dia_takes_the_memory_that_was_counted(quantised: Quantised) -> None:
    with torch.device("meta"):
        dia = DiaForConditionalGeneration(DiaConfig())
    packed = {name for name, each in dia.named_modules() if isinstance(each, torch.nn.Linear)} - {KEPT_WHOLE}
    held = sum(each.numel() * 2 for name, each in dia.named_parameters() if name.removesuffix(".weight") not in packed)
    shapes = Counter((*dia.get_parameter(f"{name}.weight").shape, 8 if runs_once(name) else BITS[quantised]) for name in packed)
    held += sum(count * count_bytes(*shape) for shape, count in shapes.items())
    halves = Precision("model", "speech", "bfloat16", "bfloat16", "cpu")
    assert part_bytes(catalog.BY_ID["dia-1.6b"].parts[0], halves, quantised) == pytest.approx(held, rel=0.01)


def test_each_plain_weight_goes_before_the_next_is_packed(folders: dict[str, Path], plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """And they are read from the file as it holds them, not copied into another dtype first."""
    halves = tuple(replace(each, storage="bfloat16") if each.role == "speech" else each for each in plan.precision)
    plain: list[weakref.ref[torch.nn.Module]] = []
    alive: list[int] = []

    def pack(weight: torch.Tensor, *how: Any) -> torch.nn.Module:
        assert weight.dtype == torch.float32
        alive.append(sum(each() is not None for each in plain))
        return pack_linear(weight, *how)

    def note(model: Any, *how: Any) -> None:
        plain.extend(weakref.ref(each) for each in model.modules() if isinstance(each, torch.nn.Linear))
        pack_voice(model, *how)

    monkeypatch.setattr(linears, "pack_linear", pack)
    monkeypatch.setattr("app.engine.speech.families.dia.voice.pack_voice", note)
    model = dia_of(loader.load(folders["dia"], replace(plan, precision=halves, quantised="int8"))).model
    assert len(alive) > 20 and alive == sorted(alive, reverse=True) and alive[-1] == 2, "the last one, and the layer of the answer"
    assert {each.weight.dtype for each in model.modules() if isinstance(each, torch.nn.Embedding)} == {torch.bfloat16}


def test_no_weight_is_kept_beside_its_packed_one(folders: dict[str, Path], plan: Plan) -> None:
    model = dia_of(load(folders["dia"], plan, "int8")).model
    assert [name for name, each in model.named_modules() if isinstance(each, torch.nn.Linear)] == [KEPT_WHOLE]
    packed = sum(each.numel() for each in model.buffers() if each.dtype == torch.int8)
    assert packed == catalog.find(str(folders["dia"])).parts[0].linear


@pytest.mark.slow
@pytest.mark.parametrize("quantised", ["int8", "int4"])
def test_a_request_is_spoken_stopped_and_resumed(quantised: Quantised, folders: dict[str, Path], plan: Plan, tmp_path: Path) -> None:
    """What was heard before the stop stays. What follows may differ: the kernels round many lines at once otherwise than one by one."""
    voice, control, job = load(folders["dia"], plan, quantised), Control(), tmp_path / "job"
    with applied(plan) as seam:
        for event in voice.run(SpeechRequest(text=speech_fixtures.LONG, seed=5, max_frames=60), control, seam, job):
            if isinstance(event, Sound):
                control.stop()
    assert isinstance(event, Stopped)
    before, _ = sound.read(Path(event.files[0]))
    after, _ = sound.read(find_result(run(voice, job, text=speech_fixtures.LONG)))
    heard = np.flatnonzero(before)[-1] - voice.limits.rate // 20  # its end was faded out
    assert heard > 20_000 and len(after) > len(before)
    assert np.corrcoef(before[:heard], after[:heard])[0, 1] > 0.9999, "each file has a loudness of its own"
    assert not voice.adapt(replace(plan, quantised="none")) and voice.adapt(replace(plan, quantised=quantised))


class MetalKernels:
    """What torch's kernels for Metal do, in operations that a simulated device has. Each takes its lines in the dtype of the scales."""

    @staticmethod
    def _weight_int8pack_mm(lines: torch.Tensor, numbers: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        assert lines.dtype == scales.dtype and lines.is_contiguous() and lines.ndim == 2
        assert numbers.shape[0] % 32 == numbers.shape[1] % 32 == 0
        return torch.nn.functional.linear(lines, numbers.to(lines.dtype)) * scales

    @staticmethod
    def _convert_weight_to_int4pack(pairs: torch.Tensor, tiles: int) -> torch.Tensor:
        return pairs << 4 | pairs >> 4

    @staticmethod
    def _weight_int4pack_mm(lines: torch.Tensor, packed: torch.Tensor, group: int, scales: torch.Tensor) -> torch.Tensor:
        assert lines.dtype == scales.dtype and lines.is_contiguous() and lines.ndim == 2
        numbers = torch.stack((packed & 15, packed >> 4), -1).flatten(1).to(lines.dtype) - 8
        step, eight = scales.transpose(0, 1).repeat_interleave(group, 1).unbind(-1)
        return torch.nn.functional.linear(lines, numbers * step + eight)


@pytest.mark.parametrize("quantised", ["int8", "int4"])
def test_on_a_mac_all_of_it_lies_and_computes_there(quantised: Quantised, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_weight_int8pack_mm", "_convert_weight_to_int4pack", "_weight_int4pack_mm"):
        monkeypatch.setattr(torch.ops.aten, name, getattr(MetalKernels, name))
    monkeypatch.setenv("HF_DEACTIVATE_ASYNC_LOAD", "1")  # a pretended memory is known to one thread
    parts = (Precision("model", "speech", "float32", "float32", "mps"), Precision("codec", "codec", "float32", "float32", "cpu"))
    mac = replace(speech_fixtures.PLAIN, device="mps", runs_on="mps", precision=parts, quantised=quantised)
    plain = dia_of(loader.load(STARTER, plan)).model
    for name, module in plain.named_modules():
        if isinstance(module, torch.nn.Linear) and name != KEPT_WHOLE:
            module.weight.copy_(unpack("int8" if runs_once(name) else quantised, module.weight, torch.float32))
    text = torch.randint(32, 120, (64,), generator=torch.Generator().manual_seed(0))
    right = Decoding(plain, "cpu", PartInput(text, None, Sampling(), 1, 20)).compute_logits()
    with separate_memory("mps") as memory:
        model = dia_of(loader.load(STARTER, mac)).model
        packed = {type(each) for name, each in model.named_modules() if name.endswith(("qkv_proj", "gate_up_proj")) and "decoder" in name}
        assert packed == {{"int8": Int8Linear, "int4": Int4Linear}[quantised]}
        held = sum(each.nbytes for each in (*model.parameters(), *model.buffers()))
        assert memory.sent_bytes < 1.1 * held, "weights are packed before they go there"
        assert {each.device.type for each in (*model.parameters(), *model.buffers())} == {"mps"}
        decoding = Decoding(model, "mps", PartInput(text, None, Sampling(), 1, 20))
        memory.sent_bytes = 0
        found = decoding.compute_logits().cpu()
        assert memory.sent_bytes == decoding.rows.shape[1] * 8, "a row's codes, no weights"
    assert float((found - right).abs().max()) < 1e-4 * float(right.abs().max())
