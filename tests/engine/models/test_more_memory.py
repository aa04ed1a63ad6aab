"""More free memory never gives a worse verdict on a model, and no sentence says "needs 10.8, and only 10.8 are free"."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from app.base.paths import Home
from app.compat.machine.hardware import Hardware, as_processor
from app.compat.machine.pretended import MACHINES
from app.compat.planning.memory_formulas import GIB, free_bytes, gib, peak_bytes, too_much
from app.engine.models.catalog import CATALOG
from app.engine.models.forecast import judge
from app.engine.models.model import Model
from app.engine.models.planned import find_need, make_plan

WORSE = ("fits", "tight", "no")
STEP = 0.06
"""Each step adds this share of the memory before, less than any of the plan's thresholds is from the next."""
PC = Hardware(memory_bytes=24 * GIB, ram_bytes=24 * GIB, cores=4, processor="x86_64", torch="2.13.0+cpu", packages=())
ALL = {**MACHINES, "pc-24gb": PC, "pc-24gb-torchao": replace(PC, packages=("torchao", "gguf")), "pc-bf16": replace(PC, fast_bf16=True)}


def verdict(model: Model, hardware: Hardware, home: Home) -> tuple[str, str]:
    plan = make_plan(home, hardware, model, itself=True)
    peak = peak_bytes(find_need(home, hardware, model, itself=True), plan)
    place = as_processor(hardware) if plan.device == "cpu" != hardware.kind else hardware
    fit, _ = judge(peak, free_bytes(place))
    weights = sorted({each.storage for each in plan.precision})
    return fit, f"{fit} with {peak / GIB:.2f}: {plan.quantised}, {plan.offload}, {weights}, tiles of {plan.vae.tile_pixels}, {plan.device}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_more_free_memory_never_gives_a_worse_verdict(name: str, tmp_path: object) -> None:
    hardware, home = ALL[name], Home(tmp_path, tmp_path)  # type: ignore[arg-type]
    most = math.log(hardware.memory_bytes / (GIB // 2)) / math.log(1 + STEP)
    worse = []
    for model in CATALOG:
        best, before = 2, ""
        for step in range(int(most) + 1):
            free = int(GIB / 2 * (1 + STEP) ** step)
            fit, said = verdict(model, replace(hardware, free_bytes=free), home)
            if WORSE.index(fit) > best:
                worse.append(f"{model.id}: {free / GIB:.2f} GiB free, {said}; with less: {before}")
            best, before = WORSE.index(fit), said
    assert not worse, "\n".join(worse)


def test_a_sentence_never_says_that_what_is_free_does_not_do() -> None:
    for beyond in (1, GIB // 50, GIB // 11):
        _, words = judge(int(10.8 * GIB) + beyond, int(10.8 * GIB))
        said = dict(words.values)
        assert words.key == "forecast.no" and float(said["peak"]) > float(said["free"])  # type: ignore[arg-type]
    room = Hardware(free_bytes=int(10.84 * GIB))
    assert too_much(int(10.85 * GIB), room) == {"gib": 10.9, "free": 10.8} and gib(int(10.85 * GIB)) == 10.8
