"""hearth bench speech: a row of Dia 1.6B's shape at several lengths, Hearth in turn with plain generate(); the same rows; the first sound; or its
codec in the loop and beside it."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args

from app.base.paths import Home
from app.cli.machine_options import read_machine
from app.compat.planning.attention_calls import DIA
from app.compat.planning.types import Choice, Dtype, Plan, Precision, Quantised
from app.engine.models import catalog
from app.engine.models.planned import make_plan
from app.engine.models.pretended_device import use_real_device
from bench.numbers import count
from bench.report import Bound, Column, Found, Measured, Remark, Table

if TYPE_CHECKING:
    from app.engine.speech.families.dia.voice import Dia
    from app.engine.speech.run.loader import Speaker

MIB: Final = 1 << 20
ROWS_BEHIND: Final = (100, 1000, 3000)
PLAIN_MOST: Final = 0.87
"""A row in bfloat16 at the shortest may take no larger share of plain generate()'s time."""
LONG_MOST: Final = 1.15
"""A row in bfloat16 at the longest may take so many times as long as at the shortest."""
QUANTISED_MOST: Final[dict[Quantised, float]] = {"int8": 0.7, "int4": 0.55}
"""A row with such weights may take no larger share of the time of one with plain weights."""
FRAMES_KEPT: Final = 0.85
"""The longest keeps at least this share of the frames a second of the shortest."""
GROWTH_MIB: Final = 16
"""One attention call's scratch memory may grow by so much from the shortest to the longest."""
SAME_ROWS: Final = 40
SAME_LAYERS: Final = 2
"""A model made for that question has so many, where the one that is measured computes in another dtype."""
BESIDE_MOST: Final = 1.0
"""A second of sound with the codec beside the loop may take no larger share of its time in the loop."""
PLAIN: Final = "plain generate()"
AGAIN: Final = "plain generate() again"
ROWS: Final = Table(
    "rows", "a row of speech", ("behind", "way"),
    (
        Column("seconds", "ms a row", ".1f", 1e3, compared=True), Column("beside_plain", "/plain", compared=True),
        Column("least_s", "least ms", ".1f", 1e3), Column("cpu_s", "cpu ms", ".1f", 1e3), Column("cpu_beside_plain", "/plain"),
    ), width=52,
)  # fmt: skip
IN_LOOP, BESIDE_LOOP = "codec in the loop", "codec beside the loop"
CODEC: Final = Table(
    "codec", "a second of sound, codec of its real size", ("weights", "way"),
    (
        Column("seconds", "seconds", compared=True), Column("beside_loop", "/in loop", compared=True), Column("cpu_s", "cpu s"),
        Column("frames", "frames", ".0f"), Column("layers", "layers", ".0f"),
    ), width=52,
)  # fmt: skip
FIRST_SOUND: Final = Table(
    "first sound", "the starter voice, ready", ("stage",), (Column("seconds", "seconds", ".3f", compared=True),), width=52
)
MEMORY: Final = Table(
    "attention memory", "scratch memory of one attention call", ("call", "dtype"), (Column("extra_bytes", "+MiB", ".1f", 1 / MIB),), width=52
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dtype", choices=get_args(Dtype), help="the dtype to compute in; by default the one that Hearth plans here")
    parser.add_argument(
        "--quantised",
        choices=[each for each in get_args(Quantised) if each != "none"],
        action="append",
        default=[],
        help="also measure weights of this kind, in turn with the others; may be given several times",
    )
    parser.add_argument(
        "--rows", type=count, action="append", metavar="N", help="rows behind the one that is timed; may be given several times"
    )
    parser.add_argument("--layers", type=count, metavar="N", help="so many layers only, for a quick trial; by default Dia's 18")
    parser.add_argument("--rounds", type=count, default=4, metavar="N", help="turns of each way (default: 4)")
    parser.add_argument("--each", type=count, default=5, metavar="N", help="rows timed in each turn (default: 5)")
    parser.add_argument(
        "--codec",
        type=count,
        metavar="SECONDS",
        help="measure only a part of so many seconds, with the codec in the loop and beside it; on a processor with one thread for each",
    )
    parser.add_argument("--rows-only", action="store_true", help="without the memory of attention and the starter voice's first sound")


def measure(args: argparse.Namespace) -> Iterator[Found]:
    import torch

    from app.engine.speech.run import loader
    from bench.full_size import write_voice

    home, hardware, verdicts = read_machine(args)
    home.create()
    behind = sorted(args.rows or ROWS_BEHIND)

    def plan_voice(model: str, dtype: Dtype | None, quantised: Quantised = "none") -> Plan:
        plan = make_plan(home, hardware, catalog.find(model), Choice(dtype=dtype, quantised=quantised), verdicts)
        return use_real_device(plan)

    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch) as scratch:
        stored = find_voice(plan_voice("dia-1.6b", args.dtype)).storage
        folder = write_voice(Path(scratch) / "voice", getattr(torch, stored), args.layers)
        plans = {kind: plan_voice(str(folder), args.dtype, kind) for kind in ("none", *args.quantised)}
        voices = {kind: loader.load(folder, plan) for kind, plan in plans.items()}
        if args.codec:
            yield from measure_codec(voices, plans, Path(scratch), args.codec, args.rounds)
            return
        plain = load_plain(folder, plans["none"]) if is_plain(plans["none"]) else None
        yield from measure_rows(voices, plans, plain, behind, args.rounds, args.each)
        del plain
        dtype = find_voice(plans["none"]).compute
        if not is_plain(plans["none"]) or dtype != "float32":
            del voices
            folder = write_voice(Path(scratch) / "float32", torch.float32, SAME_LAYERS)
            plans["none"] = plan_voice(str(folder), "float32")
            voices = {"none": loader.load(folder, plans["none"])}
        yield measure_same_rows(cast("Dia", voices["none"].voice), plans["none"])
        del voices
    if not args.rows_only:
        yield from measure_memory(plans["none"], dtype, behind)
        yield from measure_first_sound(home, args.rounds)


def find_voice(plan: Plan) -> Precision:
    return next(each for each in plan.precision if each.role == "speech")


def is_plain(plan: Plan) -> bool:
    """Tell whether the weights are held as the plain libraries would: all of them on the device, in the dtype that computes."""
    voice = find_voice(plan)
    return plan.quantised == "none" and plan.offload == "none" and voice.storage == voice.compute


def load_plain(folder: Path, plan: Plan) -> Any:
    """Load the voice as transformers' documentation does: Hearth changes the layers of its own model."""
    import torch
    from transformers import DiaForConditionalGeneration

    voice = find_voice(plan)
    model: Any = DiaForConditionalGeneration.from_pretrained(folder, dtype=getattr(torch, voice.compute), local_files_only=True)
    return model.to(voice.device)


def measure_rows(
    voices: Mapping[str, Speaker], plans: Mapping[str, Plan], plain_model: Any, behind: list[int], rounds: int, each: int
) -> Iterator[Found]:
    """Time each way in turn at each length. `plain_model`: None if the plain libraries would hold it otherwise."""
    import torch

    from bench.speech_rows import FIRST, HearthRows, PlainRows

    dtype, found = find_voice(plans["none"]).compute, dict[tuple[int, str], float]()
    if plain_model is None:
        yield Remark("Hearth holds these weights in another way than the plain libraries, which are therefore not measured.")
    for length in behind:
        ways: dict[str, HearthRows | PlainRows] = {}
        if plain_model is not None:
            device = str(plain_model.device)
            ways |= {way: PlainRows(plain_model, device, length, getattr(torch, dtype)) for way in (PLAIN, AGAIN)}
        for kind, voice in voices.items():
            dia, plan = cast("Dia", voice.voice), plans[kind]
            name = f"Hearth, {find_voice(plan).compute}" if kind == "none" else f"Hearth, {kind}"
            ways[name] = HearthRows(dia.model, dia.device, plan, length, rounds * (each + FIRST))
        took = time_in_turn({name: way.time_rows for name, way in ways.items()}, rounds, each)
        middle = {name: median(each.seconds for each in times) for name, times in took.items()}
        spent = {name: median(each.cpu_s for each in times) for name, times in took.items()}
        for name, seconds in middle.items():
            yield Measured(
                ROWS,
                {
                    "behind": f"{length} rows behind",
                    "way": name,
                    "seconds": seconds,
                    "least_s": min(each.seconds for each in took[name]),
                    "beside_plain": seconds / middle[PLAIN] if PLAIN in middle else None,
                    "cpu_s": spent[name],
                    "cpu_beside_plain": spent[name] / spent[PLAIN] if PLAIN in spent else None,
                },
            )
            found[length, name] = seconds
    yield from check_rows(found, behind)


def check_rows(found: Mapping[tuple[int, str], float], behind: list[int]) -> Iterator[Bound]:
    """Hold the seconds a row, by the rows behind it and the way, to what is promised."""
    if (behind[0], halves := "Hearth, bfloat16") in found:
        if (behind[0], PLAIN) in found:
            share = found[behind[0], halves] / found[behind[0], PLAIN]
            yield Bound(f"{halves}: a row at {behind[0]} rows, as a share of plain generate()'s", share, most=PLAIN_MOST)
        if behind[0] < behind[-1]:
            share = found[behind[-1], halves] / found[behind[0], halves]
            yield Bound(f"{halves}: a row at {behind[-1]} rows, as a share of one at {behind[0]}", share, most=LONG_MOST)
    plain = next((seconds for (_, name), seconds in found.items() if name.startswith("Hearth,")), 0.0)
    for kind, most in QUANTISED_MOST.items():
        if (behind[0], f"Hearth, {kind}") in found:
            share = found[behind[0], f"Hearth, {kind}"] / plain
            yield Bound(f"Hearth, {kind}: a row at {behind[0]} rows, as a share of Hearth's with plain weights", share, most=most)
    for name in dict.fromkeys(name for _, name in found if name.startswith("Hearth")):
        share = found[behind[0], name] / found[behind[-1], name]
        if behind[0] < behind[-1]:
            yield Bound(f"{name}: frames a second at {behind[-1]} rows, as a share of those at {behind[0]}", share, least=FRAMES_KEPT)


Time = TypeVar("Time")


def time_in_turn(ways: Mapping[str, Callable[[int], list[Time]]], rounds: int, each: int) -> dict[str, list[Time]]:
    """Give every way its turn in every round, forwards and backwards by turns, so that no one always comes first."""
    took: dict[str, list[Time]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            took[name] += ways[name](each)
    return took


def measure_same_rows(dia: Dia, plan: Plan) -> Bound:
    from bench.speech_rows import count_same_rows

    layers = dia.model.config.decoder_config.num_hidden_layers
    same = count_same_rows(dia.model, dia.device, plan, SAME_ROWS)
    return Bound(f"rows equal to generate()'s from the first, greedy, float32, {layers} layers, of {SAME_ROWS}", same, least=SAME_ROWS)


def measure_codec(voices: Mapping[str, Speaker], plans: Mapping[str, Plan], scratch: Path, seconds: int, rounds: int) -> Iterator[Found]:
    """Time a part with its sound made in the loop, and in the thread that the engine opens beside it."""
    import torch

    from app.engine.speech.run.sounding import open_beside
    from bench.speech_codec import HeardPart
    from bench.voice_parts import threads

    for kind, voice in voices.items():
        dia, weights = cast("Dia", voice.voice), find_voice(plans[kind]).compute if kind == "none" else kind
        count = 1 if dia.device == "cpu" else torch.get_num_threads()
        with threads(count), open_beside(dia.device, dia.codec.device) as beside:
            if beside is None:
                yield Remark(f"{weights}: the codec computes where the voice does, with no core to spare, so it stays in the loop.")
                continue
            ways = {
                IN_LOOP: HeardPart(dia, plans[kind], scratch, seconds),
                BESIDE_LOOP: HeardPart(dia, plans[kind], scratch, seconds, beside),
            }
            took = time_in_turn({name: way.time_parts for name, way in ways.items()}, rounds, 1)
        middle = {name: median(each.seconds for each in times) for name, times in took.items()}
        for name, way in ways.items():
            yield Measured(
                CODEC,
                {
                    "weights": f"Hearth, {weights}",
                    "way": name,
                    "seconds": middle[name],
                    "beside_loop": middle[name] / middle[IN_LOOP],
                    "cpu_s": median(each.cpu_s for each in took[name]),
                    "frames": way.frames,
                    "layers": dia.model.config.decoder_config.num_hidden_layers,
                },
            )
        share = middle[BESIDE_LOOP] / middle[IN_LOOP]
        yield Bound(f"Hearth, {weights}: a second of sound with the codec beside the loop, as a share of in it", share, most=BESIDE_MOST)


def measure_memory(plan: Plan, dtype: Dtype, behind: list[int]) -> Iterator[Found]:
    """Measure one call's memory beyond its inputs and result: a step over so many rows, and a prompt of as many."""
    from bench.attention import extra_bytes
    from bench.cases import AUTOMATIC

    like = next(call for call in DIA if call.causal)
    for what, queries in (("a step over", 1), ("a prompt of", None)):
        extra: list[int] = []
        for rows in behind:
            call = like._replace(name=f"{what} {rows} rows", queries=queries or rows, keys=rows, causal=queries is None)
            extra.append(extra_bytes(call.shape(dtype), AUTOMATIC, plan))
            yield Measured(MEMORY, {"call": call.name, "dtype": dtype, "extra_bytes": extra[-1]})
        grown = (extra[-1] - extra[0]) / MIB
        yield Bound(f"MiB by which the memory of {what} {behind[-1]} rows exceeds that of {behind[0]}", grown, most=GROWTH_MIB)


def measure_first_sound(home: Home, rounds: int) -> Iterator[Found]:
    """Measure how soon an engine that holds the starter voice is heard."""
    from bench.warm_engine import time_warm_engine

    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch, ignore_cleanup_errors=True) as scratch:
        time_warm_engine(Path(scratch) / "warm", rounds, times, ("speak",))
    for (_, stage), seconds in times.items():
        yield Measured(FIRST_SOUND, {"stage": f"{stage}, from the request on", "seconds": median(seconds)})
