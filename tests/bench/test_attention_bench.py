"""The bench measures what it says: contenders are right, memory is seen whole, and the figures hold the promises made for this processor."""

from __future__ import annotations

import json
import time
from itertools import chain, count, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from app.__main__ import main
from app.compat.attention.compose import compose
from app.compat.attention.measure import HOPELESS, Contender, error, made, turns
from app.compat.machine.hardware import Hardware, probe
from app.compat.planning.attention_calls import DIA, Call
from app.compat.planning.memory_formulas import WORKSPACE_BYTES
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import Dtype
from app.engine.models.picture_families import FAMILIES
from bench import cases
from bench.attention import MIB, Row, extra_bytes, measure_call, plan_call
from bench.cases import BenchCall, bench_calls, contenders
from bench.report import Remark
from tests.support.combinations import combine
from tests.support.plans import plan

pytestmark = pytest.mark.usefixtures("every_core")
HERE = Hardware(kind="cpu", name="here", memory_bytes=16 << 30, free_bytes=8 << 30, ram_bytes=16 << 30, torch=torch.__version__)
STEP = Shape(2, 16, 4, 1, 3072, 128, False, False, "float32")
SMALL = (
    Shape(2, 8, 2, 1, 700, 32, False, False, "float32"),
    Shape(2, 8, 2, 150, 150, 32, False, True, "float32"),
    Shape(1, 4, 4, 300, 77, 40, False, False, "float32"),
    Shape(1, 4, 4, 200, 200, 64, True, False, "float32"),
)


@pytest.mark.parametrize(("dtype", "shape"), combine(("float32", "float16", "bfloat16"), SMALL))
def test_every_contender_computes_the_same(shape: Shape, dtype: Dtype) -> None:
    shape = shape._replace(dtype=dtype)
    given = made(shape, "cpu")
    errors = {name: error(run(*given), shape, given) for name, run in contenders(plan(), shape).items()}
    assert {"torch", "automatic", "own"} <= set(errors) and ("64" in errors) == (shape.queries > 64)
    assert max(errors.values()) <= max(1e-6, 1.2 * errors["torch"]), errors


def test_an_error_is_seen() -> None:
    given = made(SMALL[0], "cpu")
    right = contenders(plan(), SMALL[0])["torch"](*given)
    assert error(right * 1.01, SMALL[0], given) == pytest.approx(0.01, rel=0.01)


def test_every_call_of_every_model_is_there_once() -> None:
    every = list(bench_calls())
    bare = [each.call._replace(name="") for each in every]
    assert len(set(bare)) == len(bare) and {each.family for each in every} == {"dia", *FAMILIES}
    assert any(each.call.queries == 36864 and each.call.head_dim == 40 for each in every), "SD 1.5 at 1536 pixels"
    assert {call._replace(name="") for call in DIA} <= set(bare)


def test_what_is_too_large_is_measured_in_part_and_said() -> None:
    large = next(each for each in bench_calls(("sd15",), (1536,)) if each.call.queries == 36864 and each.call.keys == 36864)
    part = large.measured("float32", 2)
    assert part.keys == 36864 and part.queries < 36864 and part.heads < 8
    told = list(Row(large.title, "float32", "4 heads, 1024 queries", 1, "64", 1, 1, 0, 0, 1, 1, "as torch").find())
    assert isinstance(told[-1], Remark) and "measured: 4 heads, 1024 queries over all keys" in told[-1].text


@pytest.mark.slow
def test_every_contender_has_its_turn_first_and_the_hopeless_go() -> None:
    order: list[str] = []

    def runner(name: str, loops: int) -> Contender:
        def run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
            order.append(name)
            for _ in range(loops):
                value = value @ value
            return value

        return run

    given = torch.zeros(200, 200)
    run = {"a": runner("a", 1), "b": runner("b", 1), "slow": runner("slow", 200), "kept": runner("kept", 200)}
    list(islice(turns(run, (given, given, given, None), "cpu", ("a", "b", "kept")), 8))
    assert "".join(order[:8]) == "aabbslowslowkeptkept" and HOPELESS < 200
    assert order[8] == "b" and "slow" not in order[8:] and "kept" in order[8:]


@pytest.mark.slow
def test_memory_is_seen_whole() -> None:
    """Scores of 100 MB, by torch's math kernel and tile by tile."""
    shape = Shape(1, 8, 8, 1800, 1800, 16, False, False, "float32")
    assert extra_bytes(shape, "torch", plan()) < 40 * MIB
    assert extra_bytes(shape, "own", plan()) < 40 * MIB
    assert extra_bytes(shape, "own 1024", plan()) > 55 * MIB


@pytest.mark.slow
def test_table_and_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    few = (Call("a", 1, 4, 2, 100, 100, 16), Call("b", 1, 4, 4, 8, 30, 16))
    monkeypatch.setattr(cases, "DIA", few)
    given = ["bench", "attention", "--only", "dia", "--seconds", "0", "--dtype", "float32", "--no-memory", "--json"]
    assert main([*given, "--measure", "--home", str(tmp_path)]) == 0
    told = capsys.readouterr()
    values = json.loads(told.out)
    rows = values["tables"]["calls"]
    assert [row["case"] for row in rows] == ["dia a", "dia b"] and [row["hand"] for row in rows] == ["64", None]
    assert all(row["torch_s"] > 0 and row["automatic_s"] > 0 and row["automatic_error"] < 1e-5 for row in rows)
    assert all(row["again_s"] > 0 and row["again_s"] != row["torch_s"] for row in rows) and "torch again / torch" in told.err
    assert "dia a, float32" in told.err and "automatic / torch at most" in told.err
    assert values["command"] == "hearth bench attention --only dia --seconds 0 --dtype float32 --no-memory --measure"
    assert "way:1x4x2x128x128x16 float32" in next((tmp_path / "verdicts").glob("*.json")).read_text("utf-8")


def test_beside_others_the_processors_own_time_of_few_contenders_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    read = chain((0.0, 0.1), count(3.0, 3.0))  # one step, and then three seconds a call
    monkeypatch.setattr("bench.attention.time", SimpleNamespace(perf_counter=time.perf_counter, process_time=lambda: next(read)))
    call = BenchCall("dia", 0, Call("a", 1, 16, 16, 2048, 2048, 16))
    row = measure_call(call, "float32", plan(), device="cpu", seconds=0, deviation=1.0, memory=False, busy=True)
    assert (row.torch_s, row.again_s, row.automatic_s, row.hand, row.own_s, row.own_beside_best) == (3.0, 3.0, 3.0, "", None, None)
    assert row.part == "" and call.call.queries**2 * 16 * 16 * 4 <= cases.FEW_OPERATIONS < cases.OPERATIONS


def test_a_processors_time_of_long_steps_is_taken_over_ten_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, where most calls end in the step in which they began."""
    read = count()
    monkeypatch.setattr("bench.attention.time", SimpleNamespace(perf_counter=time.perf_counter, process_time=lambda: next(read) // 20 / 64))
    call = BenchCall("dia", 0, Call("a", 1, 2, 2, 16, 16, 16))
    row = measure_call(call, "float32", plan(), device="cpu", seconds=0, deviation=1.0, memory=False, busy=True)
    assert [row.torch_s, row.again_s, row.automatic_s] == pytest.approx([1 / 20 / 64] * 3, rel=0.11)
    assert list(row.find())


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "native"), [("float32", 1.5), ("bfloat16", 4)])
def test_a_step_on_a_quiet_machine(dtype: Dtype, native: float) -> None:
    """A busy neighbour spoils a run of a millisecond: one of four must be undisturbed."""
    case = BenchCall("dia", 0, next(call for call in DIA if call.name == "a step over 3072"))
    runs = [
        measure_call(case, dtype, plan_call(case, dtype, probe(), {}), device="cpu", seconds=3.0, deviation=1.0, memory=False)
        for _ in range(4)
    ]
    assert any(row.torch_s > native * row.automatic_s for row in runs), runs


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_picture_on_a_quiet_machine(dtype: Dtype) -> None:
    case = next(each for each in bench_calls(("sd15",), (512,)) if each.call.queries == 4096 == each.call.keys)
    rows = [
        measure_call(case, dtype, plan_call(case, dtype, HERE, {}), device="cpu", seconds=5.0, deviation=3.0, memory=True) for _ in range(2)
    ]
    assert any(row.beside_torch < 1.03 and row.beside_best < 1.05 and (row.own_beside_best or 2) < 1.3 for row in rows), rows
    assert all(row.automatic_error <= 1.2 * row.torch_error for row in rows)
    assert all((row.extra_bytes or 0) < 64 * MIB for row in rows)


@pytest.mark.parametrize("keys", [1000, 8000])
def test_own_tiles_stay_small(keys: int) -> None:
    """Of the scores of one call no tile holds more than the workspace, however long the keys."""
    sizes: list[int] = []
    held = torch.baddbmm

    def spy(*given: Any, **named: Any) -> torch.Tensor:
        result = held(*given, **named)
        sizes.append(result.numel() * result.element_size())
        return result

    query = torch.randn(1, 8, 600, 16)
    key = torch.randn(1, 8, keys, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "baddbmm", spy)
        compose(plan(kernels=()))(query, key, key)
    assert sizes and max(sizes) <= WORKSPACE_BYTES["cpu"] / 2
