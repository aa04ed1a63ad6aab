"""Ways of attention: what was measured goes before the rule, a size by hand before both, and nothing that the plan forbids is taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.base.paths import home
from app.compat.attention import measure
from app.compat.attention.compose import compose
from app.compat.attention.measure import chosen, is_short, operations, quickest, reduced
from app.compat.machine.pretended import machine
from app.compat.machine.verdicts import Subject, Verdict, learn, load
from app.compat.planning.attention_calls import DIA, SIZES
from app.compat.planning.decide import decide
from app.compat.planning.quickest_way import (
    OWN,
    Shape,
    Way,
    choose_by_rule,
    has_choice,
    parse_shape,
    parse_way,
    round_up_lengths,
    way_subject,
    way_words,
)
from app.compat.planning.types import AUTO, Choice, Chunk, Need, Plan
from app.engine.models import catalog, on_disk
from app.engine.models.model import Model, describe_need
from app.engine.models.on_disk import Located
from app.engine.models.picture_families import FAMILIES, list_calls
from app.engine.session import idle_measuring
from app.engine.session.session import Session
from tests.support.plans import plan

STEP = Shape(2, 16, 4, 1, 3072, 128, False, False, "float32")
PICTURE = Shape(2, 8, 8, 4096, 4096, 40, False, False, "bfloat16")
CLIP = Shape(2, 16, 4, 512, 512, 128, False, True, "bfloat16")


@pytest.mark.parametrize("shape", [STEP, PICTURE, CLIP, PICTURE._replace(masked=True, causal=True)])
def test_a_verdict_names_its_shape(shape: Shape) -> None:
    assert parse_shape(way_subject(shape)) == shape


@pytest.mark.parametrize(
    "other",
    [
        Subject("path", "gqa/native/float32"),
        Subject("way", ""),
        Subject("way", "2x8 float32"),
        Subject("way", "axbxcxdxexf float32"),
        Subject("way", "1x1x1x1x1x1"),
    ],
)
def test_what_is_no_shape_is_passed_by(other: Subject) -> None:
    assert parse_shape(other) is None


def test_ways_as_words() -> None:
    assert [parse_way(way_words(way)) for way in (OWN, Way("folded", 64))] == [OWN, Way("folded", 64)]
    assert [parse_way(each) for each in ("", "own", "own x", "flash 0")] == [None] * 4


def test_a_growing_cache_is_measured_once_an_octave() -> None:
    assert {round_up_lengths(STEP._replace(keys=keys)).keys for keys in range(1025, 2049)} == {2048}
    assert round_up_lengths(STEP).queries == 1


@pytest.mark.parametrize(
    ("shape", "folds", "way"),
    [
        (STEP, True, OWN),
        (STEP, False, Way("torch")),
        (STEP._replace(dtype="bfloat16"), True, Way("folded")),
        (STEP._replace(kv_heads=16, dtype="bfloat16"), True, OWN),
        (STEP._replace(keys=1024), True, OWN),
        (STEP._replace(keys=1023), True, Way("folded")),
        (STEP._replace(queries=2), True, OWN),
        (STEP._replace(queries=3), True, Way("folded")),
        (STEP._replace(kv_heads=16), True, Way("torch")),
        (STEP._replace(kv_heads=16, dtype="bfloat16", keys=512), True, OWN),
        (STEP._replace(kv_heads=16, dtype="bfloat16", keys=511), True, Way("torch")),
        (STEP._replace(kv_heads=16, dtype="bfloat16", keys=512, queries=8), True, OWN),
        (STEP._replace(kv_heads=16, dtype="bfloat16", keys=512, queries=9), True, Way("torch")),
        (CLIP._replace(queries=256), True, Way("folded", 64)),
        (CLIP._replace(queries=255), True, Way("native")),
        (CLIP._replace(queries=127), True, Way("folded")),
        (STEP._replace(keys=64), True, Way("native")),
        (STEP._replace(keys=256), True, Way("native")),
        (STEP._replace(keys=257), True, Way("folded")),
        (STEP._replace(keys=64, dtype="bfloat16"), True, Way("folded")),
        (STEP._replace(keys=64, queries=2), True, Way("folded")),
        (STEP._replace(keys=64, masked=True), True, Way("folded")),
        (STEP._replace(kv_heads=16, keys=256), True, Way("torch")),
        (PICTURE, True, Way("torch")),
        (PICTURE._replace(dtype="float32"), True, Way("torch")),
        (CLIP, True, Way("folded", 64)),
        (CLIP._replace(queries=128, keys=128), True, Way("native")),
        (CLIP._replace(masked=True, causal=False), True, Way("folded")),
    ],
)
def test_the_rule(shape: Shape, folds: bool, way: Way) -> None:
    assert choose_by_rule(shape, folds, native=True, fast_bfloat16=True) == way


@pytest.mark.parametrize("shape", [STEP._replace(keys=64), CLIP._replace(queries=128, keys=128)])
def test_groups_are_folded_where_torchs_own_are_wrong(shape: Shape) -> None:
    assert choose_by_rule(shape, folds=True, native=False, fast_bfloat16=True) == Way("folded")


def test_bfloat16_is_left_to_torch_where_a_processor_has_no_products_of_it() -> None:
    shape = STEP._replace(kv_heads=16, dtype="bfloat16")
    assert choose_by_rule(shape, True, True, fast_bfloat16=False) == Way("torch")


@pytest.mark.parametrize(
    ("shape", "choice"),
    [
        (STEP._replace(keys=64), True), (STEP._replace(kv_heads=16, keys=512), True), (STEP._replace(kv_heads=16, keys=511), False),
        (Shape(1, 1, 1, 512, 1024, 64, False, False, "float32"), False), (Shape(1, 1, 1, 512, 1025, 64, False, False, "float32"), True),
    ],
)  # fmt: skip
def test_what_matters_has_a_choice(shape: Shape, choice: bool) -> None:
    assert has_choice(shape) is choice


def paths(which: Plan, shape: Shape, chunk: int | None = None) -> list[str]:
    seen: list[str] = []
    query, key, value, mask = measure.made(shape, "cpu")
    compose(which, read_chunk_q=lambda: chunk or AUTO, observe=lambda path, *_: seen.append(path))(
        query, key, value, mask, is_causal=shape.causal
    )
    return seen


def test_what_was_measured_goes_before_the_rule_and_a_size_by_hand_before_both() -> None:
    shape = PICTURE._replace(queries=1500, keys=1500)
    told = plan(dtype="bfloat16", ways=((round_up_lengths(shape), OWN),))
    assert paths(plan(), shape) == ["as torch"]
    assert "own arithmetic" in paths(told, shape)[0]
    assert "own arithmetic" in paths(told, shape._replace(queries=1030, keys=2000))[0], "the same octave"
    assert paths(told, shape._replace(queries=600)) == ["as torch"], "another one"
    assert paths(told, shape, 100)[0].startswith("chunked 100")
    assert paths(replace(told, ways=((round_up_lengths(shape), Way("torch", 300)),)), shape) == ["chunked 300"]


def test_what_was_measured_goes_before_the_shortest_path_of_a_step_too() -> None:
    """Else each way of a step were measured by the same arithmetic, and that were taken whatever was found."""
    assert paths(plan(), STEP) == ["folded, own arithmetic"]
    for way, path in ((OWN, "folded, own arithmetic"), (Way("folded"), "folded"), (Way("native"), "as torch")):
        assert paths(plan(ways=((round_up_lengths(STEP), way),)), STEP) == [path]
        assert paths(plan(ways=((round_up_lengths(STEP._replace(keys=700)), way),)), STEP) == ["folded, own arithmetic"], (
            "of another octave"
        )


@pytest.mark.slow
@pytest.mark.parametrize("way", [OWN, Way("own", 256), Way("torch", 256), Way("torch")])
@pytest.mark.parametrize("keys", [None, 512])
def test_what_memory_once_did_not_allow_bounds_every_way(way: Way, keys: int | None) -> None:
    shape = PICTURE._replace(queries=1024, keys=1024, dtype="float32")
    sizes: list[int] = []
    query, key, value, _mask = measure.made(shape, "cpu")
    told = plan(ways=((round_up_lengths(shape), way),), chunk_most=32, chunk_k=keys)
    chunks: tuple[Chunk, ...] = (AUTO, 512, 16)
    for asked in chunks:
        compose(told, read_chunk_q=lambda: asked, observe=lambda path, scores, rows, queries: sizes.append(rows))(query, key, value)  # noqa: B023
    assert max(sizes[:2]) <= 32 and sizes[2] <= 16


def decided(way: Way, kind: str = "cpu", **choice: Any) -> Plan:
    verdict = Verdict(way_subject(round_up_lengths(CLIP)), passed=True, words=way_words(way))
    return decide(machine(kind), Need(heads=16, kv_heads=4), Choice(**choice), {verdict.subject: verdict})


def test_a_plan_holds_what_was_measured_and_says_so() -> None:
    told = decided(Way("native"))
    assert told.ways == ((round_up_lengths(CLIP), Way("native")),)
    assert next(each for each in told.because if each.field == "ways").source == "measured here"
    assert decide(machine("cpu")).ways == ()


@pytest.mark.parametrize("choice", [{"kernels": ()}, {"gqa": "expanded"}])
def test_whoever_chooses_by_hand_is_taken_at_his_word(choice: dict[str, Any]) -> None:
    assert decided(Way("folded"), **choice).ways == ()


def test_nothing_that_a_plan_forbids_is_taken() -> None:
    """A Mac's plan folds because native groups are wrong there: having been quick does not make them right."""
    mac = decided(Way("native"), "m2-16gb")
    assert mac.gqa != "native" and mac.ways == ()
    assert decided(OWN, "m2-16gb").ways == ((round_up_lengths(CLIP), OWN),)


def test_a_measurement_that_wavers_does_not_move_the_rule() -> None:
    assert chosen({"torch 0": [1.0, 1.0, 1.0], "own 0": [0.97, 0.97, 0.97]}, "torch 0") == "torch 0"
    assert chosen({"torch 0": [1.0, 3.0, 3.0], "own 0": [0.99, 1.1, 1.1]}, "torch 0") == "torch 0", "a burst beside it"
    assert chosen({"torch 0": [1.0, 1.1, 1.1], "own 0": [0.8, 0.9, 0.9]}, "torch 0") == "own 0"


def test_the_quickest_is_found_in_short_pieces(one_core: None) -> None:
    told = list(quickest(STEP._replace(keys=700), plan(), "cpu"))
    assert len(told) > 10 and not any(told[:-1])
    verdict = told[-1]
    assert verdict is not None and verdict.passed and verdict.elapsed_s > 0 and verdict.error < 1e-5
    assert verdict.subject == way_subject(round_up_lengths(STEP._replace(keys=700))) and parse_way(verdict.words) is not None


def test_what_is_coarser_than_torch_is_never_the_quickest(monkeypatch: pytest.MonkeyPatch, one_core: None) -> None:
    """Own arithmetic is made instant and wrong: it is not taken."""
    held = measure.composed

    def spoiled(which: Plan, shape: Shape, *rest: Any) -> measure.Contender:
        if which.ways[0][1].by != "own":
            return held(which, shape, *rest)
        return lambda query, key, value, mask: torch.zeros_like(query)

    monkeypatch.setattr(measure, "composed", spoiled)
    *_, verdict = quickest(STEP._replace(keys=700, dtype="bfloat16"), plan(), "cpu")
    assert verdict is not None and verdict.passed and not verdict.words.startswith("own")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_measured_is_short(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)  # whatever this computer has, and tests before this one set
    for call in (*DIA, *(each for size in SIZES for each in list_calls(family, size, size))):
        shape = call.shape("float32")
        few = reduced(shape, measure.CALL_OPERATIONS, 2)
        assert few.keys == shape.keys and few.groups == shape.groups and few.head_dim == shape.head_dim
        assert few.batch * few.heads * few.queries <= shape.batch * shape.heads * shape.queries
        work = 4 * few.batch * few.heads * few.queries * few.keys * few.head_dim
        assert operations(few) == work
        assert is_short(shape) is (work <= measure.LONGEST_CALL)
        assert work <= max(measure.CALL_OPERATIONS, 4 * 4 * few.groups * measure.KEPT_QUERIES * few.keys * few.head_dim)


@pytest.mark.parametrize("model", [each for each in catalog.CATALOG if not each.starter], ids=lambda each: each.id)
def test_calls_hold_the_catalogs_widest_attention(model: Model) -> None:
    asked = describe_need(model)
    calls = idle_measuring.list_calls(model, "calls")
    widest = max(calls, key=lambda call: (call.head_dim <= 160) * call.heads * call.queries * call.keys)
    assert (widest.heads, widest.head_dim) == (asked.heads, asked.head_dim)
    if model.kind == "picture":
        assert (widest.batch, widest.queries, widest.keys) == (asked.batch, asked.queries, asked.keys)
    assert any(call.kv_heads == asked.kv_heads for call in calls)


def test_a_graphs_steps_are_measured_under_their_mask() -> None:
    calls, graph = (idle_measuring.list_calls(catalog.find("dia-1.6b"), row) for row in ("calls", "graph"))
    added = graph[len(calls) :]
    assert graph[: len(calls)] == calls and not any(call.masked for call in calls)
    assert [(call.keys, call.queries, call.kv_heads, call.masked) for call in added] == [
        (keys, 1, 4, True) for keys in (64, 256, 1024, 3072)
    ]


def test_idle_time_measures_each_shape_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, known = home(tmp_path).create(), dict[Subject, Verdict]()
    here = replace(machine("cpu"), pretended="")
    monkeypatch.setattr(idle_measuring, "THREADS", torch.get_num_threads())
    monkeypatch.setattr(idle_measuring, "list_calls", lambda model, row: DIA[-4:])
    monkeypatch.setattr(on_disk, "locate", lambda home, model: Located(tmp_path, {}) if model.id == "dia-1.6b" else None)
    monkeypatch.setattr(
        idle_measuring,
        "quickest",
        lambda shape, plan, device: iter([None, Verdict(way_subject(round_up_lengths(shape)), True, words="own 0")]),
    )
    assert len(list(idle_measuring.measure_while_idle(place, here, known))) == 2 * len(known) > 0
    assert all(has_choice(shape) for shape in map(parse_shape, known) if shape is not None)
    assert list(idle_measuring.measure_while_idle(place, here, known)) == [], "not again"
    assert list(idle_measuring.measure_while_idle(place, here, dict(learn(place.verdicts, here, next(iter(known.values())))))) == []
    assert list(idle_measuring.measure_while_idle(place, machine("m2-16gb"), {})) == [], "a pretended machine measures nothing"


def test_a_second_start_uses_what_the_first_measured_and_another_torch_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, here = home(tmp_path).create(), replace(machine("cpu"), pretended="")
    monkeypatch.setattr(idle_measuring, "THREADS", torch.get_num_threads())
    monkeypatch.setattr(idle_measuring, "list_calls", lambda model, row: DIA[-4:])
    monkeypatch.setattr(on_disk, "locate", lambda home, model: Located(tmp_path, {}) if model.id == "dia-1.6b" else None)
    monkeypatch.setattr(
        idle_measuring, "quickest", lambda shape, plan, device: iter([Verdict(way_subject(round_up_lengths(shape)), True, words="own 0")])
    )
    dia = describe_need(next(each for each in catalog.CATALOG if each.id == "dia-1.6b"))
    for facts, before in ((here, 0), (here, 3), (replace(here, torch="2.99.0"), 0), (replace(here, name="another processor"), 0)):
        known = load(place.verdicts, facts)
        assert len(known) == before == len(decide(facts, dia, verdicts=known).ways)
        assert len(list(idle_measuring.measure_while_idle(place, facts, known))) == 3 - before
        assert len(decide(facts, dia, verdicts=known).ways) == 3


def test_a_session_starts_with_what_is_known(tmp_path: Path) -> None:
    found = Verdict(way_subject(round_up_lengths(CLIP)), passed=True, words=way_words(OWN))
    place = home(tmp_path).create()
    first = Session(place)
    assert first.verdicts == {}
    learn(place.verdicts, first.hardware, found)
    assert Session(place).verdicts == {found.subject: found}


def test_what_would_keep_an_order_waiting_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder of FLUX at 1024 pixels: one head of width 512 over 16,384 keys, a second and more a call."""
    long = list_calls("flux", 1024, 1024)[-1]
    short = DIA[-1]
    asked: list[Shape] = []
    monkeypatch.setattr(idle_measuring, "THREADS", torch.get_num_threads())
    monkeypatch.setattr(idle_measuring, "list_calls", lambda model, row: (long, short))
    monkeypatch.setattr(on_disk, "locate", lambda home, model: Located(tmp_path, {}) if model.id == "dia-1.6b" else None)
    monkeypatch.setattr(idle_measuring, "quickest", lambda shape, plan, device: asked.append(shape) or iter(()))
    list(idle_measuring.measure_while_idle(home(tmp_path).create(), replace(machine("cpu"), pretended=""), {}))
    assert long.head_dim == 512 and asked and {each.head_dim for each in asked} == {short.head_dim}
