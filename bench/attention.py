"""hearth bench attention: compare Hearth's choice with torch's attention and every fixed chunk: time, error, memory."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final, get_args

from app.base.sentence import say
from app.base.trouble import Trouble
from app.cli.machine_options import read_machine
from app.compat.machine.hardware import Hardware
from app.compat.machine.verdicts import Subject, Verdict, Verdicts, learn
from app.compat.planning.attention_calls import SIZES
from app.compat.planning.decide import decide
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import Choice, Dtype, Need, Plan
from app.engine.models.picture_families import FAMILIES
from bench.numbers import above_zero, from_zero
from bench.report import Column, Found, Measured, Remark, Table

if TYPE_CHECKING:
    from bench.cases import BenchCall

MIB: Final = 1 << 20
LONGEST_ROUNDS: Final = 30
FEWEST_ROUNDS: Final = 5
FEWEST_TICKS: Final = 10
"""A turn by the processor's own time takes so many of its ticks."""
TABLE: Final = Table(
    "calls",
    "",
    ("case", "dtype"),
    (
        Column("torch_s", "torch ms", scale=1e3),
        Column("hand", "by hand"),
        Column("hand_s", "ms", scale=1e3),
        Column("automatic_s", "auto ms", scale=1e3, compared=True),
        Column("beside_torch", "/torch", compared=True),
        Column("again_beside_torch", "again"),
        Column("beside_best", "/best"),
        Column("torch_error", "err torch", ".1e"),
        Column("automatic_error", "err auto", ".1e"),
        Column("extra_bytes", "+MiB", ".1f", 1 / MIB),
        Column("own_beside_best", "own/best"),
        Column("path", "way"),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One attention call. Seconds are medians; errors are relative RMS against float64."""

    case: str
    dtype: Dtype
    part: str
    """This part alone was measured if the whole call is too large; empty: all of it was."""
    torch_s: float
    hand: str
    """No fixed chunk was faster; empty if every chunk size is at least the query length."""
    hand_s: float | None
    automatic_s: float
    torch_error: float
    automatic_error: float
    own_s: float | None
    """No torch kernels were allowed for this time; `own_hand_s` is the fastest fixed chunk of that kind. None: neither was measured."""
    own_hand_s: float | None
    path: str
    again_s: float = 0.0
    """torch was measured a second time; the difference from the first time is noise."""
    extra_bytes: int | None = None
    torch_extra_bytes: int | None = None

    @property
    def beside_torch(self) -> float:
        return self.automatic_s / self.torch_s

    @property
    def again_beside_torch(self) -> float:
        return self.again_s / self.torch_s

    @property
    def beside_best(self) -> float:
        return self.automatic_s / min(self.torch_s, self.hand_s or self.torch_s)

    @property
    def own_beside_best(self) -> float | None:
        return None if self.own_s is None else self.own_s / (self.own_hand_s or self.own_s)

    def find(self) -> Iterator[Found]:
        ratios = ("beside_torch", "again_beside_torch", "beside_best", "own_beside_best")
        yield Measured(TABLE, asdict(self) | {"hand": self.hand or None} | {name: getattr(self, name) for name in ratios})
        if self.part:
            yield Remark(f"    (measured: {self.part} over all keys)")


def measure_call(
    case: BenchCall, dtype: Dtype, plan: Plan, *, device: str, seconds: float, deviation: float, memory: bool, busy: bool = False
) -> Row:
    """`busy`: others use the machine, so shorter calls, without chunks, by the processor's own time, which they hardly change."""
    import torch

    from app.compat.attention.measure import error, made, turns
    from bench.cases import AGAIN, AUTOMATIC, FEW_OPERATIONS, OPERATIONS, OWN, TORCH, contenders

    shape, paths = case.measured(dtype, torch.get_num_threads(), FEW_OPERATIONS if busy else OPERATIONS), list[str]()
    run, given = contenders(plan, shape, lambda path, *_: paths.append(path)), made(shape, device, deviation)
    if busy:
        run = {name: run[name] for name in (TORCH, AGAIN, AUTOMATIC)}
    times: dict[str, list[float]] = {name: [] for name in run}
    errors: dict[str, float] = {}
    began = time.perf_counter()
    clock = time.process_time if busy else time.perf_counter
    least_s = FEWEST_TICKS * _find_tick() if busy else 0.0
    for name, elapsed, found in turns(run, given, device, (TORCH, AGAIN, AUTOMATIC, OWN), clock, least_s):
        times[name].append(elapsed)
        if name in (TORCH, AUTOMATIC):
            errors.setdefault(name, error(found, shape, given))
        rounds = len(times[TORCH])
        if rounds > LONGEST_ROUNDS or (rounds > FEWEST_ROUNDS and time.perf_counter() - began > seconds):
            break
    took = {name: median(each) for name, each in times.items()}
    hand = min((name for name in took if name.isdigit()), key=lambda name: took[name], default="")
    own_hand = min((name for name in took if name.startswith(f"{OWN} ")), key=lambda name: took[name], default="")
    extra = [extra_bytes(shape, name, plan) if memory else None for name in (AUTOMATIC, TORCH)]
    part = "" if shape == case.shape(dtype) else f"{shape.batch * shape.heads} heads, {shape.queries} queries"
    return Row(
        case.title,
        dtype,
        part,
        took[TORCH],
        hand,
        took.get(hand),
        took[AUTOMATIC],
        errors[TORCH],
        errors[AUTOMATIC],
        took.get(OWN),
        took.get(own_hand),
        paths[-1],
        took[AGAIN],
        *extra,
    )


def _find_tick() -> float:
    """Return the step of the processor's own time: 15.6 ms on Windows, which is longer than most calls and which Python gives as 100 ns."""
    began = time.process_time()
    while (now := time.process_time()) == began:
        pass
    return now - began


def extra_bytes(shape: Shape, name: str, plan: Plan) -> int:
    """Measure the peak memory of a call beyond its inputs and result, in a fresh process with no earlier peak."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_extra, args=(theirs, shape, name, plan))
    child.start()
    theirs.close()
    try:
        return int(ours.recv())
    except EOFError:
        raise Trouble(
            say(
                "bench.died",
                "The process that measured the memory of {way} at {case} ended early. Close other programs, or skip memory with --no-memory.",
                way=name,
                case="x".join(map(str, shape[:6])),
            )
        ) from None
    finally:
        child.join()


def _extra(answer: Any, shape: Shape, name: str, plan: Plan) -> None:
    from app.cli.peak_memory import Peak
    from app.compat.attention.measure import made, wait
    from bench.cases import contenders

    attend = contenders(plan, shape)[name]
    attend(
        *made(shape._replace(queries=min(shape.queries, 16), keys=32), plan.device)
    )  # memory that torch takes at its first call does not count
    given = made(shape, plan.device)
    wait(plan.device)
    peak = Peak(plan.device)
    result = attend(*given)
    wait(plan.device)
    answer.send(max(0, peak.extra() - result.numel() * result.element_size()))


def plan_call(case: BenchCall, dtype: Dtype, hardware: Hardware, verdicts: Verdicts) -> Plan:
    call = case.call
    need = Need(
        batch=call.batch,
        heads=call.heads,
        kv_heads=call.kv_heads,
        head_dim=call.head_dim,
        queries=call.queries,
        keys=call.keys,
        masked=call.masked,
        causal=call.causal,
    )
    return decide(hardware, need, Choice(dtype=dtype), verdicts)


def learn_ways(cases: Iterable[BenchCall], dtypes: Iterable[Dtype], hardware: Hardware, verdicts: Verdicts) -> Verdicts:
    """Measure the shapes not measured yet, as the idle engine does, but without waiting."""
    from app.compat.attention.measure import quickest
    from app.compat.planning.quickest_way import round_up_lengths, way_subject

    found: dict[Subject, Verdict] = {}
    for dtype in dtypes:
        for case in cases:
            shape = case.shape(dtype)
            if way_subject(round_up_lengths(shape)) not in {*verdicts, *found}:
                plan = plan_call(case, dtype, hardware, {})
                found |= {each.subject: each for each in quickest(shape, plan, plan.device) if each is not None}
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dtype",
        choices=get_args(Dtype),
        action="append",
        help="a dtype to measure; may be given several times; by default float32 and bfloat16",
    )
    parser.add_argument(
        "--only", choices=["dia", *FAMILIES], action="append", help="a model family to measure; may be given several times; by default all"
    )
    parser.add_argument(
        "--size", type=int, choices=SIZES, action="append", help="a picture size in pixels; may be given several times; by default all"
    )
    parser.add_argument("--quick", action="store_true", help="measure pictures of 512 pixels only, and no memory")
    parser.add_argument(
        "--measure", action="store_true", help="first find the fastest way for each shape and store it, as the idle engine does"
    )
    parser.add_argument(
        "--seconds", type=from_zero, default=3.0, help=f"seconds for each call, at least {FEWEST_ROUNDS} rounds (default: 3)"
    )
    parser.add_argument("--deviation", type=above_zero, default=1.0, help="standard deviation of queries and keys (default: 1)")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="for a machine that others use: the processor's own time of shorter calls, without chunks by hand and without memory",
    )
    parser.add_argument("--no-memory", action="store_true", help="measure time only, without a process for each measurement")


def measure(args: argparse.Namespace) -> Iterator[Found]:
    from bench.cases import bench_calls

    home, hardware, verdicts = read_machine(args)
    sizes = tuple(args.size or (SIZES[:1] if args.quick else SIZES))
    chosen = list(bench_calls(tuple(args.only or ("dia", *FAMILIES)), sizes))
    dtypes: list[Dtype] = args.dtype or ["float32", "bfloat16"]
    if args.measure:
        verdicts = learn(home.verdicts, hardware, *learn_ways(chosen, dtypes, hardware, verdicts).values())
    rows: list[Row] = []
    if args.busy:
        yield Remark("ms are of the processor's own time")
    for dtype in dtypes:
        for case in chosen:
            plan = plan_call(case, dtype, hardware, verdicts)
            memory = not (args.no_memory or args.quick or args.busy)
            row = measure_call(
                case, dtype, plan, device=plan.device, seconds=args.seconds, deviation=args.deviation, memory=memory, busy=args.busy
            )
            rows.append(row)
            yield from row.find()
    again = [each.again_beside_torch for each in rows]
    yield Remark(f"torch again / torch {min(again):.2f} to {max(again):.2f}")
    worst = f"automatic / torch at most {max(each.beside_torch for each in rows):.2f}, automatic / best {max(each.beside_best for each in rows):.2f}"
    own = max(each.own_beside_best or 0 for each in rows)
    yield Remark(f"{worst}, own arithmetic / its best fixed chunk {own:.2f}" if own else worst)
