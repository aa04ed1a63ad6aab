"""The questions about captured graphs: where they are asked, a wrong graph found, and what counts as quicker."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from transformers import DiaForConditionalGeneration

from app.compat.machine.hardware import probe
from app.compat.machine.pretended import MACHINES
from app.compat.selftest.operations import Measured
from app.compat.selftest.probes import careful_plan
from app.engine.session import machine_check
from app.engine.speech.families.dia import row_graph_check
from app.engine.speech.families.dia.decoder_layers import DecoderLayers
from app.engine.speech.families.dia.row_graph import GraphedRows
from app.engine.speech.families.dia.row_graph_check import QUICKER, WITHIN, compare, time_beside_calls
from tests.support import recorded_graph, speech_fixtures

folders = speech_fixtures.folders


def test_they_are_asked_of_nvidia_cards() -> None:
    for name, machine in MACHINES.items():
        asked = {str(each.subject) for each in row_graph_check.questions(replace(machine, pretended=""))}
        dtypes = ("bfloat16", "float16", "float32") if machine.kind == "cuda" else ()
        assert asked == {f"{what}/{dtype}" for dtype in dtypes for what in ("path:row/graph", "quicker:graph")}, name
        assert not row_graph_check.questions(machine), "a pretended card has no graphs"
    card = replace(MACHINES["t4"], pretended="")
    assert {each.subject for each in row_graph_check.questions(card)} <= {each.subject for each in machine_check.questions(card)}


@pytest.fixture
def ask(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> partial[Measured]:
    """Ask this processor, with recorded graphs and a small voice."""
    recorded_graph.put(monkeypatch)
    voice = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    plan = careful_plan(replace(probe(), pretended=""))
    return partial(row_graph_check._ask, make=lambda *_: voice, plan=plan, dtype="float32", device="cpu")


@torch.inference_mode()
def test_a_right_graph_passes_and_a_wrong_one_is_found(ask: partial[Measured], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(compare)[0] < WITHIN["float32"]
    compute = DecoderLayers.compute_at
    # A number read while capturing stays what it was then.
    frozen = lambda self, codes, position, mask: compute(self, codes, torch.full_like(position, int(position)), mask)  # noqa: E731
    monkeypatch.setattr(DecoderLayers, "compute_at", frozen)
    assert ask(compare)[0] > WITHIN["bfloat16"]


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize(("slow", "quicker"), [("calls", True), ("graph", False)])
def test_quicker_is_what_takes_less_time(ask: partial[Measured], monkeypatch: pytest.MonkeyPatch, slow: str, quicker: bool) -> None:
    slowed = {"calls": DecoderLayers, "graph": GraphedRows}[slow]
    call = slowed.__call__

    def wait(self: object, codes: torch.Tensor) -> torch.Tensor:
        time.sleep(0.1)
        return call(self, codes)

    monkeypatch.setattr(slowed, "__call__", wait)
    share, seconds = ask(time_beside_calls)
    assert (share <= QUICKER) == quicker and (seconds > 0.1) == (slow == "graph")
