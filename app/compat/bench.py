"""hearth bench attention: torch as it is, the usual remedies, and Hearth's paths, timed in one run at the shapes of real models, with their memory."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, get_args

from app.compat.contest import CASES, Case, Way, made, title, ways
from app.compat.hardware import Hardware, probe
from app.compat.plan import Dtype
from app.sentence import Sentence, Trouble, say

if TYPE_CHECKING:
    from torch import Tensor

MIB, GIB = 1 << 20, 1 << 30
LONGEST_ROUNDS = 30
WEIGHTS_BYTES = 128 << 20


COPIES_OF_SCORES = {"repeat": 3, "math": 3}
"""Ways that write all scores down, and how often at their highest."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured; None where it was not: the way did not fit, or memory was not asked for."""

    case: str
    way: str
    dtype: Dtype
    elapsed_s: float | None = None
    fastest_s: float | None = None
    extra_bytes: int | None = None
    path: str = ""
    why_not: str = ""


def fits(way: str, case: Case, free_bytes: int) -> Sentence | None:
    """None, or why not. Half of what is free, so that measuring does not push the machine into its swap."""
    needed = case.scores * 4 * COPIES_OF_SCORES.get(way, 0)
    if needed <= free_bytes // 2:
        return None
    return say(
        "bench.large", "would take {needed} GiB, half of what is free is {half}",
        needed=round(needed / GIB, 1), half=round(free_bytes / 2 / GIB, 1),
    )  # fmt: skip


def wait(device: str) -> None:
    """Accelerators answer before they are done."""
    import torch

    if device != "cpu":
        (torch.cuda if device == "cuda" else torch.mps).synchronize()


def timed(
    run: dict[str, Way], given: tuple[Tensor, Tensor, Tensor], device: str, seconds: float
) -> dict[str, list[float]]:
    """Rounds in which every way has its turn, each time beginning with another. A turn is two calls and the second counts, because
    the first pays for the memory that its neighbour gave back. Between them something else goes through the caches, as a model's
    weights do between two calls of attention."""
    import torch

    weights = torch.zeros(WEIGHTS_BYTES, dtype=torch.uint8, device=device)
    taken: dict[str, list[float]] = {way: [] for way in run}
    order, begun = list(run), time.perf_counter()
    for done in range(LONGEST_ROUNDS):
        if done >= 2 and time.perf_counter() - begun > seconds:
            break
        for way in order[done % len(order) :] + order[: done % len(order)]:
            run[way](*given)
            weights.add_(1)
            wait(device)
            start = time.perf_counter()
            run[way](*given)
            wait(device)
            taken[way].append(time.perf_counter() - start)
    return taken


def extra_bytes(case: Case, way: str, dtype: Dtype, hardware: Hardware) -> int:
    """The highest this call takes beside its inputs and result. In a process of its own, whose peak nothing else has raised."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_measured, args=(theirs, case, way, dtype, hardware))
    child.start()
    theirs.close()
    try:
        return int(ours.recv())
    except EOFError:
        raise Trouble(
            say(
                "bench.died", "Memory was to be measured for {way} at {case}, and the process that did it ended. Close other programs, or leave memory out with --no-memory.",
                way=way, case=case.title,
            )
        ) from None  # fmt: skip
    finally:
        child.join()


def _measured(answer: Any, case: Case, way: str, dtype: Dtype, hardware: Hardware) -> None:
    from app.compat.peak import Peak

    attend, device = ways(hardware, case, dtype)[way], device_of(hardware)
    small = made(replace(case, queries=min(case.queries, 16), keys=32), dtype, device)
    attend(*small)  # what torch loads at its first call is not this call's memory
    given = made(case, dtype, device)
    wait(device)
    peak = Peak(device)
    result = attend(*given)
    wait(device)
    answer.send(max(0, peak.extra() - result.numel() * result.element_size()))


def device_of(hardware: Hardware) -> str:
    return "cuda" if hardware.kind == "rocm" else hardware.kind


def measure(
    cases: Iterable[Case], dtypes: Iterable[Dtype], hardware: Hardware, seconds: float, memory: bool
) -> Iterator[Row]:
    for dtype in dtypes:
        for case in cases:
            seen: list[str] = []
            run = ways(hardware, case, dtype, seen.append)
            reasons = {way: fits(way, case, hardware.free_bytes) for way in run}
            able = {way: attend for way, attend in run.items() if reasons[way] is None}
            taken = timed(able, made(case, dtype, device_of(hardware)), device_of(hardware), seconds)
            for way in run:
                if way not in able:
                    yield Row(case.name, way, dtype, why_not=str(reasons[way]))
                    continue
                extra = extra_bytes(case, way, dtype, hardware) if memory else None
                path = seen[-1] if way == "hearth" else ""
                yield Row(case.name, way, dtype, median(taken[way]), min(taken[way]), extra, path)


def table(rows: Iterable[Row]) -> Iterator[str]:
    """A line for each row, as soon as there is one; a heading where the case changes."""
    heading = None
    for row in rows:
        if (row.case, row.dtype) != heading:
            heading = row.case, row.dtype
            yield ""
            yield f"{next(each.title for each in CASES if each.name == row.case)}, {row.dtype}"
        elapsed = row.why_not if row.elapsed_s is None else f"{row.elapsed_s * 1e3:10.2f} ms"
        extra = "" if row.extra_bytes is None else f"{row.extra_bytes / MIB:10.1f} MiB"
        yield f"  {title(row.way)!s:<32}{elapsed}{extra}{'   ' + row.path if row.path else ''}"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=["attention"], help="what to measure")
    parser.add_argument(
        "--dtype", choices=get_args(Dtype), action="append", help="once or more; default: float32, bfloat16"
    )
    parser.add_argument(
        "--only", choices=[each.name for each in CASES], action="append", help="once or more; default: all"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="for each case; two rounds at least (default: 4)")
    parser.add_argument("--no-memory", action="store_true", help="time alone, without a process for each measurement")
    parser.add_argument("--json", action="store_true", help="the figures, for a program to read")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the figures as well")


def main(args: argparse.Namespace) -> int:
    import torch

    hardware = probe()
    cases = [each for each in CASES if not args.only or each.name in args.only]
    rows: list[Row] = []

    def kept() -> Iterator[Row]:
        for row in measure(cases, args.dtype or ["float32", "bfloat16"], hardware, args.seconds, not args.no_memory):
            rows.append(row)
            yield row

    about = f"{hardware.name}, torch {hardware.torch}, {torch.get_num_threads()} threads"
    lines = table(kept())
    print(about, file=sys.stderr if args.json else sys.stdout)
    for line in lines:
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)
    if args.json:
        print(
            json.dumps(
                {"machine": about, "cases": [asdict(each) for each in cases], "rows": [asdict(each) for each in rows]},
                indent=1,
            )
        )
    if args.plot:
        from app.compat.benchplot import draw

        draw(
            rows,
            {each.name: each.title for each in CASES},
            {way: str(title(way)) for way in {row.way for row in rows}},
            about,
        ).save(args.plot)
    return 0
