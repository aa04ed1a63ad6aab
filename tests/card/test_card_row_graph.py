"""Capture rows of full-size Dia as CUDA graphs on this card: the plain way's logits, less time, and how much memory it takes."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest
import torch
from transformers import DiaForConditionalGeneration

from app.compat.attention.seam import applied
from app.compat.machine.hardware import probe
from app.compat.machine.verdicts import Subject, Verdict
from app.compat.planning.decide import decide
from app.compat.planning.types import Choice, Dtype
from app.compat.selftest import run
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.speech.families.dia import row_graph_check
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.row_graph import BUCKET
from app.engine.speech.families.dia.sampling import Sampling
from tests.card import full_size
from tests.card.old_cards import alone, off

pytestmark = pytest.mark.card
WITHIN = {"float32": 1e-4, "float16": 3e-2}
ROWS = BUCKET + 24
"""So many lie across the border of the first graph."""
MOST_MIB = 128
"""The pool of all graphs, and caches that are longer by less than one bucket, may take so much more than single calls."""


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_size.voice(tmp_path_factory.mktemp("voice"))


def speak(model: object, plan: object, row: str, forced: torch.Tensor | None) -> tuple[list[torch.Tensor], torch.Tensor, float, int]:
    """Return logits, rows, seconds a row, and the most bytes that torch held beyond the weights."""
    given = PartInput(torch.randint(32, 120, (200,)), None, Sampling(), 3, ROWS)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    logits, took = [], []
    with applied(plan):  # type: ignore[arg-type]
        decoding = Decoding(model, full_size.DEVICE, given, None, row)  # type: ignore[arg-type]
        for index in range(ROWS - 20):
            began_s = time.perf_counter()
            with torch.inference_mode():
                logits.append(decoding.compute_logits().float().cpu())
            took.append(time.perf_counter() - began_s)
            decoding.append(torch.randint(0, 1024, (9,)) if forced is None else forced[index])
    return logits, decoding.rows[1:].clone(), median(took[8:]), torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_graph_makes_the_rows_of_single_calls_sooner(dtype: Dtype, voice: Path) -> None:
    hardware = probe()
    plan = decide(hardware, describe_need(BY_ID["dia-1.6b"]), Choice(dtype=dtype, quantised="none", offload="none"))
    model = DiaForConditionalGeneration.from_pretrained(voice, dtype=getattr(torch, dtype)).to(full_size.DEVICE).eval()  # type: ignore[arg-type]
    with alone():
        torch.manual_seed(0)
        right, rows, plain_s, plain_bytes = speak(model, plan, "calls", None)
        torch.manual_seed(0)
        found, _, graph_s, graph_bytes = speak(model, plan, "graph", rows)
    worst = max(off(one, other) for one, other in zip(found, right, strict=True))
    print(
        f"| {hardware.name} | {dtype} | call by call {1000 * plain_s:.2f} ms a row | captured graph {1000 * graph_s:.2f} ms, {graph_s / plain_s:.2f} "
        f"| {(graph_bytes - plain_bytes) >> 20} MiB more | logits off {worst:.1e} |"
    )
    assert worst < WITHIN[dtype]
    assert graph_s < plain_s
    assert graph_bytes - plain_bytes < MOST_MIB << 20


def test_the_self_test_finds_graphs_right_and_the_plan_takes_them_where_they_are_quicker() -> None:
    hardware = probe()
    verdicts: dict[Subject, Verdict] = run.run(hardware, lambda *_: None, row_graph_check.questions)
    for subject, verdict in verdicts.items():
        print(subject, verdict.passed, verdict.error, verdict.words)
    need = describe_need(BY_ID["dia-1.6b"])
    dtype = decide(hardware, need).dtype
    right, quicker = verdicts[Subject.path("row/graph", dtype)], verdicts[Subject.quicker("graph", dtype)]
    assert right.passed, right
    plan = decide(hardware, need, Choice(offload="none", quantised="none"), verdicts)
    assert plan.row == ("graph" if quicker.passed else "calls")
