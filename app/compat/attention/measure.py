"""Time contenders for an attention shape in turns, measure errors against float64, and find the fastest exact way."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from app.compat.attention.compose import compose
from app.compat.attention.dispatch import Observe, ignore
from app.compat.machine.processor import multiplies_bfloat16
from app.compat.machine.verdicts import Verdict
from app.compat.planning.attention_fields import allows_way
from app.compat.planning.metal import plan_for
from app.compat.planning.quickest_way import Shape, Way, choose_by_rule, round_up_lengths, way_subject, way_words
from app.compat.planning.types import AUTO, Plan

Given = tuple[Tensor, Tensor, Tensor, Tensor | None]
Contender = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]

BETWEEN_BYTES: Final = 128 << 20
ROUNDS: Final = 7
HOPELESS: Final = 1.3
"""A contender this many times slower than the fastest in the first round gets no second one."""
BETTER: Final = 0.95
"""A way replaces the rule's only if its best and median times are clearly faster: timings on a busy machine are
noisy."""
NO_COARSER: Final = 1.2
ROUNDING: Final = {"float64": 1e-14, "float32": 1e-6}
"""Errors up to these always pass; in half precision only torch's own error sets the limit."""
CALL_OPERATIONS: Final = 8_000_000_000
"""A measured call is reduced to so many operations, about 0.1 s on two cores: a user's request waits for at most two calls."""
LONGEST_CALL: Final = 2 * CALL_OPERATIONS
"""Calls longer than this even when reduced are not measured, such as a large picture's decoder, run once per
picture."""
KEPT_QUERIES: Final = 1024


def operations(shape: Shape) -> int:
    return 4 * shape.batch * shape.heads * shape.queries * shape.keys * shape.head_dim


def is_short(shape: Shape) -> bool:
    """Return whether it can be measured by calls short enough not to delay anyone."""
    return operations(reduced(shape, CALL_OPERATIONS, torch.get_num_threads())) <= LONGEST_CALL


def reduced(shape: Shape, most: int, at_once: int) -> Shape:
    """Reduce heads, then queries, until a call is at most `most` operations. Keys stay: they decide what fits in a
    cache."""

    def less(count: int, least: int, shape: Shape) -> int:
        return min(count, max(min(count, least), count * most // operations(shape)))

    batch = less(shape.batch, 1, shape)
    few = shape._replace(batch=batch)
    kv_heads = less(shape.kv_heads, 2 * at_once, few)
    few = few._replace(heads=kv_heads * shape.groups, kv_heads=kv_heads)
    return few._replace(queries=less(shape.queries, KEPT_QUERIES, few))


def made(shape: Shape, device: str, deviation: float = 1.0) -> Given:
    """Create tensors in their dtype directly, so that no temporary copy counts as the peak."""
    torch.manual_seed(0)
    like: dict[str, Any] = {"dtype": getattr(torch, shape.dtype), "device": device}
    query = torch.empty(shape.batch, shape.heads, shape.queries, shape.head_dim, **like).normal_(std=deviation)
    key = torch.empty(shape.batch, shape.kv_heads, shape.keys, shape.head_dim, **like).normal_(std=deviation)
    value = torch.empty_like(key).normal_()
    mask = torch.ones(shape.batch, 1, 1, shape.keys, dtype=torch.bool, device=device) if shape.masked else None
    return query, key, value, mask


def error(found: Tensor, shape: Shape, given: Given) -> float:
    """Return the relative RMS error against float64, over the first rows of the first head."""
    rows = min(shape.queries, 128)
    query, key, value = (each[0, 0].double().cpu() for each in given[:3])
    scores = query[:rows] @ key.T * shape.head_dim**-0.5
    if shape.causal:
        scores.masked_fill_(torch.arange(shape.keys) > torch.arange(rows)[:, None], -torch.inf)
    right = torch.softmax(scores, -1) @ value
    return float(((found[0, 0, :rows].double().cpu() - right).square().mean() / right.square().mean()).sqrt())


def torchs(shape: Shape) -> Contender:
    """torch's unmodified attention."""
    return lambda query, key, value, mask: F.scaled_dot_product_attention(
        query, key, value, mask, is_causal=shape.causal, enable_gqa=shape.groups > 1
    )


def composed(plan: Plan, shape: Shape, observe: Observe = ignore) -> Contender:
    attend = compose(plan, observe=observe)
    return lambda query, key, value, mask: attend(query, key, value, mask, is_causal=shape.causal, enable_gqa=shape.groups > 1)


def turns(
    run: Mapping[str, Callable[..., Tensor]],
    given: Sequence[Tensor | None],
    device: str,
    always: Collection[str] = (),
    clock: Callable[[], float] = time.perf_counter,
    least_s: float = 0.0,
) -> Iterator[tuple[str, float, Tensor]]:
    """Yield each contender's name, time and result forever, starting each round with another. Of two calls per turn the
    second counts, because the first pays for memory that the previous contender freed. In between other data passes
    through the caches, as a model's weights do between attention calls. `always`: contenders kept however slow. `least_s`: a
    call shorter than this is repeated until so much has passed, and the mean counts, for a clock of long steps."""
    between = torch.zeros(BETWEEN_BYTES, dtype=torch.uint8, device=device)
    order, first = list(run), dict[str, float]()
    done = 0
    while True:
        at = done % len(order)
        for name in order[at:] + order[:at]:
            run[name](*given)
            between.add_(1)
            wait(device)
            start = clock()
            found, calls = run[name](*given), 1
            wait(device)
            while (took := clock() - start) < least_s:
                found, calls = run[name](*given), calls + 1
                wait(device)
            elapsed = took / calls
            first.setdefault(name, elapsed)
            yield name, elapsed, found
        done += 1
        order = [name for name in order if name in always or first[name] <= HOPELESS * min(first.values())]


def wait(device: str) -> None:
    """Synchronise: accelerators return before they are done."""
    if device != "cpu":
        (torch.cuda if device == "cuda" else torch.mps).synchronize()


def candidates(plan: Plan, shape: Shape) -> tuple[Way, ...]:
    by: tuple[Way, ...] = (Way("torch"),) if shape.groups == 1 else (Way("native"), Way("folded"))
    chunks = (Way(way.by, rows) for way in by for rows in (64, 128) if shape.causal and rows < shape.queries)
    return tuple(way for way in (*by, *chunks, Way("own"), Way("own", 256)) if allows_way(plan.kernels, plan.gqa, plan.native_right, way))


def quickest(shape: Shape, plan: Plan, device: str) -> Iterator[Verdict | None]:
    """Yield None after each short piece of work, so that the caller can stop, and finally the verdict."""
    plan, small = plan_for(plan, shape.queries, shape.keys, shape.head_dim), reduced(shape, CALL_OPERATIONS, torch.get_num_threads())
    given = made(small, device)
    fast = multiplies_bfloat16()
    first = choose_by_rule(small, plan.gqa == "folded", plan.native_right, fast) if plan.device == "cpu" else Way("torch")
    ways = {way_words(way): way for way in (first, *candidates(plan, small))}
    run = {
        name: composed(replace(plan, ways=((round_up_lengths(small), way),), chunk_q=AUTO, chunk_k=None), small)
        for name, way in ways.items()
    }
    allowed = max(ROUNDING.get(shape.dtype, 0.0), NO_COARSER * error(torchs(small)(*given), small, given))
    yield None
    times: dict[str, list[float]] = {name: [] for name in ways}
    errors: dict[str, float] = {}
    for name, elapsed, found in turns(run, given, device):
        if name not in errors:
            errors[name] = error(found, small, given)
        times[name].append(elapsed)
        if max(map(len, times.values())) > ROUNDS:
            break
        yield None
    exact = [name for name in times if errors[name] <= allowed]
    if not exact:
        yield Verdict(way_subject(round_up_lengths(shape)), passed=False, error=min(errors.values()))
        return
    best = chosen({name: times[name] for name in exact}, way_words(first))
    yield Verdict(way_subject(round_up_lengths(shape)), passed=True, error=errors[best], elapsed_s=median(times[best]), words=best)


def chosen(times: dict[str, list[float]], ruled: str) -> str:
    """Return the fastest way, or the rule's if it is about as fast."""
    best = min(times, key=lambda name: median(times[name]))
    kept = ruled in times and any(each(times[best]) > BETTER * each(times[ruled]) for each in (min, median))
    return ruled if kept else best
