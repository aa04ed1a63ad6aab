"""Walk over tests/machines: reports of real and of simulated machines. Each is read, planned for every model, and kept up to date; one more
file needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.base.trouble import Trouble
from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES, find_machine
from app.compat.machine.report_file import read_report
from app.compat.machine.verdicts import Subject, Verdicts, load, read_given
from app.compat.planning.attention_fields import FLAGS
from app.compat.planning.decide import DECIDED_FIELDS, decide
from app.compat.planning.types import Need, Plan
from app.engine.models.catalog import CATALOG
from app.engine.models.model import describe_need
from tests.support.places import TOP

FILES = sorted((TOP / "tests" / "compat" / "machine" / "reports").glob("*.json"))
LISTED = [file for file in FILES if file.stem in MACHINES]
MOST_BYTES = 40_000
RENEW = "Renew it: python3 start.py doctor --selftest --json --pretend {name} --home NEW_FOLDER > tests/compat/machine/reports/{name}.json"
NEEDS = {"no model": Need()} | {model.id: describe_need(model) for model in CATALOG}


def read(file: Path) -> tuple[Hardware, Verdicts]:
    """Read a file anew, as the next start would."""
    read_report.cache_clear()
    hardware = find_machine(str(file))
    return hardware, load(TOP / "nowhere", hardware)


def plan_all(file: Path) -> dict[str, Plan | str]:
    """Return each model's plan, or the words of its Trouble."""
    hardware, verdicts = read(file)
    found: dict[str, Plan | str] = {}
    for name, need in NEEDS.items():
        try:
            found[name] = decide(hardware, need, verdicts=verdicts)
        except Trouble as trouble:
            found[name] = str(trouble)
    return found


def list_options(plan: Plan) -> Iterator[Subject]:
    """Yield what a plan uses, as the self-test names it: for each of Metal's kernels by itself."""
    for dtype in {plan.dtype, *(part.compute for part in plan.precision)}:
        yield Subject.path(f"dtype/{dtype}", dtype)
    if any(part.linear == "float16" for part in plan.precision):
        yield Subject.path("linear/float16", "float16")
    for each in (plan, *plan.others):
        scores = "float32" if each.score_dtype == "float32" else "kernel"
        options = [f"gqa/{each.gqa}", f"score_dtype/{scores}"]
        if not each.kernels or each.path in (None, "graph"):  # Metal's other kernels keep no scores
            options.append(f"chunk_k/{each.chunk_k or 'automatic'}")
        options += [f"kernels/{name}" for name in each.kernels or ("own",)]
        options += [f"{flag}/{'yes' if getattr(each, flag) else 'no'}" for flag in FLAGS]
        for option in options:
            yield Subject.path(option, each.dtype)
            if each.kernels:  # own arithmetic has no kernel's defects
                yield Subject.path(option, each.dtype, each.path or "")


def test_those_of_the_list_are_there() -> None:
    assert {file.stem for file in LISTED} == set(MACHINES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_model_gets_a_plan_or_a_plain_word_on_it(file: Path) -> None:
    hardware, verdicts = read(file)
    assert (hardware.pretended, hardware.report) == (file.name, str(file)) and verdicts == read_given(hardware) != {}
    plans = plan_all(file)
    wrong = {subject for subject, each in verdicts.items() if not each.passed}
    for name, plan in plans.items():
        if isinstance(plan, str):
            assert hardware.name in plan or hardware.torch in plan, plan
            continue
        assert [each.field for each in plan.because] == list(DECIDED_FIELDS) and all(str(each.sentence) for each in plan.because), name
        assert not wrong & set(list_options(plan)), name
    assert any(isinstance(each, Plan) for each in plans.values()) or len({*plans.values()}) == 1, (
        "a machine that runs nothing says one thing"
    )
    assert plan_all(file) == plans
    assert file.stat().st_size < MOST_BYTES
    lines = file.read_text("utf-8").splitlines()
    assert sum('"subject"' in line for line in lines) == len(json.loads("".join(lines))["verdicts"]), "one line for each verdict"


@pytest.mark.parametrize("file", LISTED, ids=lambda file: file.stem)
def test_those_of_the_list_are_up_to_date(file: Path) -> None:
    from app.engine.session.machine_check import questions

    hardware, verdicts = read(file)
    listed = MACHINES[file.stem]
    assert replace(hardware, pretended=file.stem, report="") == listed, RENEW.format(name=file.stem)
    asked = {each.subject for each in questions(listed)}
    kinds = {each.kind for each in asked}
    assert asked == {each for each in verdicts if each.kind in kinds}, RENEW.format(name=file.stem)
