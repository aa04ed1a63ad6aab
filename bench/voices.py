"""hearth bench voices: a part of Pocket TTS's, Phonon's and VibeVoice's shapes, Hearth in turn with plain generate(): time, times real time, peak memory."""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, get_args

from app.cli.machine_options import read_machine
from app.compat.planning.types import Choice, Dtype, Plan, Quantised
from app.engine.models import catalog
from app.engine.models.model import describe_need
from app.engine.models.planned import make_plan
from app.engine.models.pretended_device import use_real_device
from bench.numbers import count
from bench.report import Bound, Column, Found, Measured, Table
from bench.speech import AGAIN, PLAIN, find_voice, time_in_turn

if TYPE_CHECKING:
    from bench.voice_parts import HearthPart, PlainPart

MIB: Final = 1 << 20
KINDS: Final = ("phonon", "pocket", "vibevoice")
LARGE: Final = ("vibevoice",)
"""Only one at a time is in memory."""
FRAMES: Final = 100
"""A part has so many: 8 seconds of sound, of VibeVoice 13."""
FRAME_RATES: Final = {"phonon": 12.5, "pocket": 12.5, "vibevoice": 7.5}
MOST: Final = 0.7
"""A part in float32 may take no larger share of plain generate()'s time."""
PARTS: Final = Table(
    "parts", "a part of speech", ("model", "way"),
    (
        Column("seconds", "s a part", compared=True), Column("beside_plain", "/plain", compared=True), Column("times", "x real", ".1f"),
        Column("cpu_s", "cpu s", compared=True), Column("first_s", "s heard", compared=True), Column("peak_bytes", "peak MiB", ".0f", 1 / MIB),
    ), width=42,
)  # fmt: skip


def take_turn(way: PlainPart | HearthPart, large: bool, times: int) -> list[float]:
    took = way.time_parts(times)
    if large:
        way.drop()
    return took


def measure_alone(way: PlainPart | HearthPart) -> int:
    from bench.voice_parts import measure_peak

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        return alone.submit(measure_peak, type(way)(*way.made_of)).result()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", choices=KINDS, action="append", help="measure this one only; may be given twice; by default the two small ones"
    )
    parser.add_argument(
        "--dtype", choices=get_args(Dtype), action="append", help="dtypes to compute in; by default the one that Hearth plans here"
    )
    parser.add_argument(
        "--quantised", choices=("int8", "int4"), action="append", default=[], help="also measure weights of this kind; may be given twice"
    )
    parser.add_argument("--frames", type=count, default=FRAMES, metavar="N", help=f"frames of a part (default: {FRAMES}, 8 or 13 s)")
    parser.add_argument("--layers", type=count, metavar="N", help="so many layers only, for a quick trial")
    parser.add_argument("--threads", type=count, metavar="N", help="threads of torch; by default as many as the engine has for the model")
    parser.add_argument("--times-only", action="store_true", help="without the peak memory, which takes a process each")
    parser.add_argument("--rounds", type=count, default=3, metavar="N", help="turns of each way (default: 3)")


def measure(args: argparse.Namespace) -> Iterator[Found]:
    from app.engine.session.loaded_models import count_threads
    from bench.full_size import write_pocket, write_vibevoice
    from bench.voice_parts import HearthPart, PlainPart

    home, hardware, verdicts = read_machine(args)
    home.create()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch) as scratch:
        for kind in args.model or [each for each in KINDS if each not in LARGE]:
            folder = Path(scratch) / kind
            write_vibevoice(folder, args.layers) if kind == "vibevoice" else write_pocket(folder, kind, args.layers)
            model = catalog.find(str(folder))

            def plan_voice(dtype: Dtype | None, quantised: Quantised = "none", id_: str = model.id) -> Plan:
                return use_real_device(make_plan(home, hardware, catalog.find(id_), Choice(dtype=dtype, quantised=quantised), verdicts))

            threads = args.threads or count_threads(describe_need(model))
            dtypes = args.dtype or [find_voice(plan_voice(None)).compute]
            for dtype in dtypes:  # its rows are shown before the next is timed
                ways: dict[str, PlainPart | HearthPart] = {
                    f"{way}, {dtype}": PlainPart(folder, dtype, args.frames, threads) for way in (PLAIN, AGAIN)
                }
                ways[f"Hearth, {dtype}"] = HearthPart(folder, plan_voice(dtype), args.frames, threads, Path(scratch))
                for quantised in args.quantised if dtype == dtypes[0] else ():
                    plan = plan_voice(args.dtype and dtype, quantised)
                    ways[f"Hearth, {quantised}"] = HearthPart(folder, plan, args.frames, threads, Path(scratch))
                took = time_in_turn({name: partial(take_turn, way, kind in LARGE) for name, way in ways.items()}, args.rounds, 1)
                for name, way in ways.items():
                    seconds, plain = (median(took[each]) for each in (name, f"{PLAIN}, {dtype}"))
                    yield Measured(
                        PARTS,
                        {
                            "model": kind,
                            "way": name,
                            "seconds": seconds,
                            "beside_plain": seconds / plain,
                            "times": args.frames / FRAME_RATES[kind] / seconds,
                            "cpu_s": way.cpu_s,
                            "first_s": way.first_s,
                            "peak_bytes": None if args.times_only else measure_alone(way),
                        },
                    )
                    if name == "Hearth, float32":
                        yield Bound(f"{kind}: a part in float32, as a share of plain generate()'s", seconds / plain, most=MOST)
