"""Run maintenance tasks in the engine: the self-test, and measuring chunk sizes at a model's own attention."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from app.base.paths import Home
from app.base.sentence import say
from app.compat.attention.seam import applied
from app.compat.machine.chunk_curve import KNEE, ROUNDS, SIZES, Curve, Point, keep_curve
from app.compat.machine.hardware import Hardware
from app.compat.machine.meter import read
from app.compat.machine.verdicts import Subject, Verdict, learn
from app.compat.planning.fallbacks import CHUNK_FALLBACK
from app.compat.selftest import run
from app.engine.jobs.control import Control, Dial
from app.engine.jobs.events import Event, Finished, Note, Step, Stopped
from app.engine.models.chosen import read_choice
from app.engine.models.model import Model
from app.engine.models.planned import find_need, make_plan
from app.engine.session.machine_check import questions


def self_test(hardware: Hardware, home: Home, verdicts: dict[Subject, Verdict], control: Control) -> Iterator[Event]:
    began = time.monotonic()
    found: dict[Subject, Verdict] = {}
    for done, total, _ in run.steps(hardware, found, questions):
        elapsed = time.monotonic() - began
        if control.stopped:
            verdicts.update(learn(home.verdicts, hardware, *found.values()))
            yield Stopped((), elapsed)
            return
        eta_s = elapsed / done * (total - done) if done else None
        yield Step(done, total, done / elapsed if elapsed else 0.0, "measurements", eta_s, read())
    stored = learn(home.verdicts, hardware, *found.values())
    verdicts.clear()
    verdicts.update(stored)
    paths = [verdict for subject, verdict in found.items() if subject.matters]
    yield Note(
        say(
            "selftest.result",
            "Self-test: {passed} of {total} {total:path|paths} correct on this machine.",
            passed=sum(each.passed for each in paths),
            total=len(paths),
        )
    )
    yield Finished((), time.monotonic() - began, 0.0, "", read().highest_bytes)


def tune(model: Model, hardware: Hardware, home: Home, verdicts: dict[Subject, Verdict], control: Control) -> Iterator[Event]:
    """Time one attention call of the model at each size, several rounds in turn, and keep the medians. The knee is
    offered on the Machine tab, never applied automatically: it would override the measured variants of all calls."""
    need = find_need(home, hardware, model)
    # Measure every size, also those that memory once did not allow.
    others = {name: each for name, each in verdicts.items() if name != Subject.fallback(model.id, CHUNK_FALLBACK)}
    plan = make_plan(home, hardware, model, read_choice(home), others)
    device = "cpu" if hardware.pretended else plan.device
    rows = need.batch, need.heads, need.queries, need.head_dim
    dtype = getattr(torch, plan.dtype)
    query, key, value = (torch.randn(rows, generator=torch.Generator().manual_seed(seed)).to(device, dtype) for seed in range(3))
    sizes = [size for size in SIZES if size < 2 * need.queries] or SIZES[:1]
    times: dict[int, list[float]] = {size: [] for size in sizes}
    # Not monotonic(): on Windows it may stand still for 15 ms, longer than several calls.
    began, done, total = time.perf_counter(), 0, ROUNDS * len(sizes)
    dial = Dial()
    with applied(plan, lambda: dial.chunk):
        for _ in range(ROUNDS):
            for size in sizes:
                if control.stopped:
                    yield Stopped((), time.perf_counter() - began)
                    return
                dial.chunk = size
                start = time.perf_counter()
                F.scaled_dot_product_attention(query, key, value)
                _synchronise(device)
                times[size].append(time.perf_counter() - start)
                done += 1
                elapsed = time.perf_counter() - began
                yield Step(done, total, done / elapsed, "measurements", elapsed / done * (total - done), read())
    points = tuple(Point(size, statistics.median(times[size])) for size in sizes)
    fastest = min(point.seconds for point in points)
    knee = min(point.chunk for point in points if point.seconds <= fastest * KNEE)
    keep_curve(home, Curve(model.id, points, knee), hardware.pretended)
    yield Note(say("tune.knee", "A chunk size of {chunk} suits this machine best: larger ones gain little or nothing.", chunk=knee))
    yield Finished((), time.perf_counter() - began, done / (time.perf_counter() - began), "measurements", read().highest_bytes)


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()
