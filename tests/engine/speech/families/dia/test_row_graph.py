"""Rows of Dia as a captured graph, recorded on a processor: the same tokens, across the borders of its graphs, ended and resumed alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import DiaForConditionalGeneration

from app.compat.attention.seam import applied
from app.compat.planning.types import Plan
from app.engine.jobs.parts import SPOKEN
from app.engine.models.loading.capture_failed import CaptureFailed
from app.engine.session.run_errors import classify_fault
from app.engine.speech.families.dia.decoder import Decoding, DecodingState, PartInput
from app.engine.speech.families.dia.decoder_layers import DecoderLayers
from app.engine.speech.families.dia.row_graph import BUCKET, WARM_UPS, GraphedRows, round_up
from app.engine.speech.families.dia.sampling import Sampling
from app.engine.speech.run import loader
from app.engine.speech.sound import spoken_parts
from tests.support import recorded_graph, speech_fixtures
from tests.support.recorded_graph import RecordedGraph
from tests.support.speech_fixtures import SHAPES, find_result, run

pytestmark = pytest.mark.long

folders, plan = speech_fixtures.folders, speech_fixtures.plan
WORDS = torch.tensor([1, 72, 105, 32, 116, 104, 101, 114, 101])


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[RecordedGraph]:
    return recorded_graph.put(monkeypatch)


def decode(folder: Path, given: PartInput, plan: Plan, row: str, before: DecodingState | None = None, until: int = 10_000) -> Decoding:
    model = DiaForConditionalGeneration.from_pretrained(folder).eval()
    with applied(plan):
        decoding = Decoding(model, "cpu", given, before, row)  # type: ignore[arg-type]
        while not decoding.done and decoding.made < until:
            decoding.step()
    return decoding


@pytest.mark.parametrize(
    ("name", "prompt_rows", "temperature", "guidance"),
    [
        pytest.param("dia", 0, 0.0, 3.0, marks=pytest.mark.slow),
        pytest.param("dia", BUCKET - 20, 1.3, 3.0, marks=pytest.mark.slow),
        pytest.param("dia", 0, 1.8, 1.0, marks=pytest.mark.slow),
        ("starter", 0, 1.3, 3.0),
        pytest.param("starter", BUCKET - 20, 0.0, 1.0, marks=pytest.mark.slow),
    ],
)
def test_a_graph_makes_the_same_tokens(
    folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph], name: str, prompt_rows: int, temperature: float, guidance: float
) -> None:
    shape, rows = SHAPES[name], BUCKET + 60
    made = torch.Generator().manual_seed(3)
    prompt = torch.randint(0, shape.codes, (prompt_rows, len(shape.delays)), generator=made) if prompt_rows else None
    given = PartInput(WORDS, prompt, Sampling(guidance, temperature), 7, rows)
    graphed, plain = (decode(folders[name], given, plan, row) for row in ("graph", "calls"))
    assert torch.equal(graphed.rows, plain.rows) and graphed.made == plain.made
    assert (graphed.frames, graphed.cut_off) == (plain.frames, plain.cut_off)
    assert len(graphs) == round_up(graphed.length - 1) // BUCKET > 1
    # The first row of all comes with the prompt.
    assert sum(each.replays for each in graphs) == graphed.made - 1


@pytest.mark.slow
def test_resumed_near_a_border_it_makes_the_same_rows(folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph]) -> None:
    given = PartInput(WORDS, None, Sampling(), 7, BUCKET + 30)
    whole = decode(folders["starter"], given, plan, "calls")
    for made in (BUCKET - 2, BUCKET - 1, BUCKET):
        first = decode(folders["starter"], given, plan, "graph", until=made)
        assert torch.equal(decode(folders["starter"], given, plan, "graph", first.get_state(0)).rows, whole.rows)
        assert torch.equal(decode(folders["starter"], given, plan, "calls", first.get_state(0)).rows, whole.rows)


def test_a_part_that_ends_by_itself_ends_alike(folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph]) -> None:
    given = PartInput(WORDS, None, Sampling(), 7, 90)
    ended = []
    for row in ("graph", "calls"):
        first = decode(folders["dia"], given, plan, row, until=40)
        ended.append(decode(folders["dia"], given, plan, row, replace(first.get_state(0), ended=first.length)))
    graphed, plain = ended
    assert torch.equal(graphed.rows, plain.rows) and (graphed.frames, graphed.cut_off) == (plain.frames, plain.cut_off) == (40, False)
    assert graphs


@torch.inference_mode()
@pytest.mark.parametrize("before", [8, BUCKET - 2])
def test_a_row_sees_itself_and_those_before(folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph], before: int) -> None:
    """Memory comes as the last owner left it, perhaps as NaN, which zero times is NaN."""
    model = DiaForConditionalGeneration.from_pretrained(folders["dia"]).eval()
    rows = torch.randint(0, 1024, (before + 4, 9), generator=torch.Generator().manual_seed(0))
    with applied(plan):
        plain, behind = (DecoderLayers(model, "cpu", WORDS, True, 2 * BUCKET) for _ in range(2))
        for memory in behind._memories:
            memory.keys.fill_(torch.nan)
            memory.values.fill_(torch.nan)
        plain(rows[:before])
        behind(rows[:before])
        graphed = GraphedRows(behind, 9, "cpu")
        for row in torch.split(rows[before:], 1):
            torch.testing.assert_close(graphed(row), plain(row), rtol=1e-4, atol=1e-4)
    assert plain.length == behind.length == before + 4


def test_each_capture_is_warmed_up_and_keeps_the_one_before_until_it_is_made(
    folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []
    compute, capturing, pools = DecoderLayers.compute_at, cast(Any, torch.cuda.graph), list[object]()

    def note(self: DecoderLayers, *given: torch.Tensor) -> torch.Tensor:
        happened.append("computed")
        return compute(self, *given)

    def begin(graph: RecordedGraph, pool: object, *others: object) -> object:
        happened.append("capture")
        pools.append(pool)
        assert len(graphs) == 1 or cast(object, graphed[0]._graph) is graphs[-2]
        return capturing(graph, pool, *others)

    graphed: list[GraphedRows] = []
    made = GraphedRows.__init__

    def remember(self: GraphedRows, *given: object) -> None:
        graphed.append(self)
        made(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(DecoderLayers, "compute_at", note)
    monkeypatch.setattr(torch.cuda, "graph", begin)
    monkeypatch.setattr(GraphedRows, "__init__", remember)
    decode(folders["starter"], PartInput(WORDS, None, Sampling(), 7, BUCKET + 5), plan, "graph")
    one = ["computed"] * WARM_UPS + ["capture", "computed"]
    assert happened == one * 2 and len(set(map(id, pools))) == 1 and cast(object, graphed[0]._graph) is graphs[-1]


@pytest.mark.slow
def test_a_capture_that_fails_leaves_what_was_made_to_single_calls(
    folders: dict[str, Path], plan: Plan, graphs: list[RecordedGraph], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    find_result(run(loader.load(folders["dia"], plan), tmp_path / "whole", max_frames=BUCKET + 40))
    speaker = loader.load(folders["dia"], replace(plan, row="graph"))
    recorded = torch.cuda.CUDAGraph

    def second_fails() -> RecordedGraph:
        if len(graphs) == 1:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        return recorded()  # type: ignore[return-value]

    monkeypatch.setattr(torch.cuda, "CUDAGraph", second_fails)
    with pytest.raises(CaptureFailed, match="capturing") as caught:
        run(speaker, tmp_path / "job", max_frames=BUCKET + 40)
    assert classify_fault(caught.value) == "crash", "for which the next plan makes rows by single calls"
    assert speaker.adapt(plan), "the weights stay where they are"
    replays = graphs[0].replays
    find_result(run(speaker, tmp_path / "job", max_frames=BUCKET + 40))
    mended, whole = (spoken_parts.find(SPOKEN.shown(tmp_path / each, 0)) for each in ("job", "whole"))
    assert mended is not None and mended.codes is not None and whole is not None and whole.codes is not None
    assert np.array_equal(mended.codes, whole.codes) and mended.whole
    assert graphs[0].replays == replays == BUCKET - 1 and len(graphs) == 1
