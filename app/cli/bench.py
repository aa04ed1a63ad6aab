"""hearth bench attention: Hearth's choice against torch's own attention and every chunk by hand, in one run, with errors and memory."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final, get_args

from app.compat.machine import verdicts as seen
from app.compat.machine.hardware import Hardware, probe
from app.compat.machine.verdicts import Subject, Verdict, Verdicts
from app.compat.planning.attention_calls import PICTURES, SIZES
from app.compat.planning.decide import decide
from app.compat.planning.quickest_way import Shape
from app.compat.planning.types import Choice, Dtype, Need, Plan
from app.paths import home
from app.sentence import Trouble, say

if TYPE_CHECKING:
    from app.cli.bench_cases import BenchCall

MIB: Final = 1 << 20
LONGEST_ROUNDS: Final = 30
FEWEST_ROUNDS: Final = 5
HEADS: Final = (
    "torch ms",
    "by hand",
    "ms",
    "auto ms",
    "/torch",
    "again",
    "/best",
    "err torch",
    "err auto",
    "+MiB",
    "own/best",
    "way",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One call; seconds are medians, errors relative RMS against float64."""

    case: str
    dtype: Dtype
    part: str
    """What was run of it, where it is too large to be run whole; empty: all."""
    torch_s: float
    hand: str
    """The chunk by hand that was the quickest; empty: there is none below the queries."""
    hand_s: float | None
    automatic_s: float
    torch_error: float
    automatic_error: float
    own_s: float
    """With no kernel of torch's allowed, and the quickest chunk by hand there."""
    own_hand_s: float | None
    path: str
    again_s: float = 0.0
    """torch a second time, as a contender of its own: what it differs by from the first is noise."""
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
    def own_beside_best(self) -> float:
        return self.own_s / (self.own_hand_s or self.own_s)


def measured(
    case: BenchCall, dtype: Dtype, plan: Plan, device: str, seconds: float, deviation: float, memory: bool
) -> Row:
    import torch

    from app.cli.bench_cases import AGAIN, AUTOMATIC, OWN, TORCH, contenders
    from app.compat.attention.measure import error, made, turns

    shape, paths = case.measured(dtype, torch.get_num_threads()), list[str]()
    run, given = contenders(plan, shape, lambda path, *_: paths.append(path)), made(shape, device, deviation)
    times: dict[str, list[float]] = {name: [] for name in run}
    errors: dict[str, float] = {}
    began = time.perf_counter()
    for name, elapsed, found in turns(run, given, device, (TORCH, AGAIN, AUTOMATIC, OWN)):
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
        case.title, dtype, part, took[TORCH], hand, took.get(hand), took[AUTOMATIC], errors[TORCH], errors[AUTOMATIC], took[OWN],
        took.get(own_hand), paths[-1], took[AGAIN], *extra,
    )  # fmt: skip


def extra_bytes(shape: Shape, name: str, plan: Plan) -> int:
    """The highest this call takes beside its inputs and result. In a process of its own, whose peak nothing else has raised."""
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
                "bench.died", "Memory was to be measured for {way} at {case}, and the process that did it ended. Close other programs, or leave memory out with --no-memory.",
                way=name, case="x".join(map(str, shape[:6])),
            )
        ) from None  # fmt: skip
    finally:
        child.join()


def _extra(answer: Any, shape: Shape, name: str, plan: Plan) -> None:
    from app.cli.bench_cases import contenders
    from app.cli.peak_memory import Peak
    from app.compat.attention.measure import made, wait

    attend = contenders(plan, shape)[name]
    attend(
        *made(shape._replace(queries=min(shape.queries, 16), keys=32), plan.device)
    )  # what torch loads at its first call is not this call's memory
    given = made(shape, plan.device)
    wait(plan.device)
    peak = Peak(plan.device)
    result = attend(*given)
    wait(plan.device)
    answer.send(max(0, peak.extra() - result.numel() * result.element_size()))


def planned(case: BenchCall, dtype: Dtype, hardware: Hardware, known: Verdicts) -> Plan:
    call = case.call
    need = Need(
        batch=call.batch, heads=call.heads, kv_heads=call.kv_heads, head_dim=call.head_dim, queries=call.queries,
        keys=call.keys, masked=call.masked, causal=call.causal,
    )  # fmt: skip
    return decide(hardware, need, Choice(dtype=dtype), known)


def learned(cases: Iterable[BenchCall], dtypes: Iterable[Dtype], hardware: Hardware, known: Verdicts) -> Verdicts:
    """Measure what is not known yet, as the engine does in its idle time, but at once."""
    from app.compat.attention.measure import quickest
    from app.compat.planning.quickest_way import round_up_lengths, way_subject

    found: dict[Subject, Verdict] = {}
    for dtype in dtypes:
        for case in cases:
            shape = case.shape(dtype)
            if way_subject(round_up_lengths(shape)) not in {*known, *found}:
                plan = planned(case, dtype, hardware, {})
                found |= {each.subject: each for each in quickest(shape, plan, plan.device) if each is not None}
    return found


def table(rows: Iterable[Row]) -> Iterator[str]:
    """A line for each row, as soon as there is one."""
    width = 46
    yield " " * width + " ".join(f"{each:>9}" for each in HEADS)
    for row in rows:
        hand = ("-", "-") if row.hand_s is None else (row.hand, f"{row.hand_s * 1e3:.2f}")
        told = (
            f"{row.torch_s * 1e3:.2f}", *hand, f"{row.automatic_s * 1e3:.2f}", f"{row.beside_torch:.2f}", f"{row.again_beside_torch:.2f}", f"{row.beside_best:.2f}",
            f"{row.torch_error:.1e}", f"{row.automatic_error:.1e}", "-" if row.extra_bytes is None else f"{row.extra_bytes / MIB:.1f}",
            f"{row.own_beside_best:.2f}", row.path,
        )  # fmt: skip
        yield f"{row.case + ', ' + row.dtype:<{width}}" + " ".join(f"{each:>9}" for each in told)
        if row.part:
            yield f"    (of it {row.part} over all keys)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["attention"], help="what to measure")
    parser.add_argument(
        "--dtype", choices=get_args(Dtype), action="append", help="once or more; default: float32, bfloat16"
    )
    parser.add_argument(
        "--only", choices=["dia", *PICTURES], action="append", help="a family of models, once or more; default: all"
    )
    parser.add_argument(
        "--size", type=int, choices=SIZES, action="append", help="of pictures, once or more; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="pictures of 512 pixels alone, no memory")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="first measure the ways and keep them, as the engine does when it is idle",
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help=f"for each call; {FEWEST_ROUNDS} rounds at least (default: 3)"
    )
    parser.add_argument("--deviation", type=float, default=1.0, help="of queries and keys (default: 1)")
    parser.add_argument("--no-memory", action="store_true", help="time alone, without a process for each measurement")
    parser.add_argument("--home", metavar="DIR", help="where Hearth keeps its data")
    parser.add_argument("--json", action="store_true", help="the figures, for a program to read")


def main(args: argparse.Namespace) -> int:
    import torch

    from app.cli.bench_cases import bench_calls

    hardware, folder = probe(), home(args.home).verdicts
    known: Verdicts = seen.load(folder, hardware)
    sizes = tuple(args.size or (SIZES[:1] if args.quick else SIZES))
    chosen = list(bench_calls(tuple(args.only or ("dia", *PICTURES)), sizes))
    dtypes: list[Dtype] = args.dtype or ["float32", "bfloat16"]
    if args.measure:
        known = seen.learn(folder, hardware, *learned(chosen, dtypes, hardware, known).values())
    rows: list[Row] = []

    def kept() -> Iterator[Row]:
        for dtype in dtypes:
            for case in chosen:
                plan = planned(case, dtype, hardware, known)
                memory = not (args.no_memory or args.quick)
                rows.append(measured(case, dtype, plan, plan.device, args.seconds, args.deviation, memory))
                yield rows[-1]

    about = f"{hardware.name}, torch {hardware.torch}, {torch.get_num_threads()} threads"
    where = sys.stderr if args.json else sys.stdout
    print(about, file=where)
    for line in table(kept()):
        print(line, file=where, flush=True)
    if rows:
        worst = f"automatic beside torch at most {max(each.beside_torch for each in rows):.2f}, beside the best {max(each.beside_best for each in rows):.2f}"
        again = [each.again_beside_torch for each in rows]
        print(f"torch beside itself {min(again):.2f} to {max(again):.2f}", file=where)
        print(f"{worst}, alone beside the best by hand {max(each.own_beside_best for each in rows):.2f}", file=where)
    if args.json:
        print(json.dumps({"machine": about, "rows": [asdict(each) for each in rows]}, indent=1))
    return 0
