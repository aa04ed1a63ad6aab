"""hearth bench paint: a step of SD 1.5's or SDXL's shape, Hearth in turn with plain diffusers; and a batch beside one by one."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import log10
from pathlib import Path
from statistics import median
from typing import Final, get_args

import psutil

from app.base.paths import Home
from app.cli.machine_options import read_machine
from app.compat.planning.types import Dtype
from app.engine.jobs.quicker import QUICKER as QUICKER_NAMES
from app.engine.models import catalog
from bench.clocks import Took
from bench.numbers import at_least, count
from bench.painters import HEARTH, Painted, Painter, Painting
from bench.report import Column, Found, Measured, Remark, Table

PLAIN: Final = "plain diffusers"
AGAIN: Final = f"{PLAIN} again"
SIZES: Final = {"sd15": 512, "sdxl": 1024, "starter": 256}
BESIDE: Final = 0.8
"""Both processes stay where together they take less than this share of the memory; else one ends before the other begins."""
STEPS: Final = Table(
    "steps", "a step", ("model", "way"),
    (
        Column("seconds", "s a step", ".2f", compared=True), Column("beside_plain", "/plain", compared=True),
        Column("least_s", "least s", ".2f"), Column("cpu_s", "cpu s", ".2f"), Column("cpu_beside_plain", "/plain"),
        Column("peak_bytes", "peak GB", ".2f", 1e-9, compared=True),
    ), width=60,
)  # fmt: skip
BATCH: Final = Table(
    "batch", "pictures of so many steps, decoded", ("model", "way"),
    (Column("one_s", "s one by one", ".2f", compared=True), Column("batch_s", "s in a batch", ".2f", compared=True), Column("ratio", "ratio")), width=60,
)  # fmt: skip
QUICKER: Final = Table(
    "quicker", "a picture, quicker", ("model", "setting"),
    (
        Column("seconds", "s", ".2f", compared=True), Column("beside_off", "/off", compared=True),
        Column("psnr_db", "PSNR, dB", ".1f", compared=True),
    ), width=60,
)  # fmt: skip
FEWER: Final = (0.75, 0.6, 0.5)
"""These shares of the steps are put beside "quicker"."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", choices=list(SIZES), default="sd15", help="the shape (default: sd15); 'starter' is the starter painter itself"
    )
    parser.add_argument("--size", type=count, metavar="PIXELS", help="of the picture; by default the model's own")
    parser.add_argument("--dtype", choices=get_args(Dtype), help="the dtype to compute in; by default the one that Hearth plans here")
    parser.add_argument(
        "--steps", type=at_least(2), default=4, metavar="N", help="of each picture, the first of which does not count (default: 4)"
    )
    parser.add_argument("--rounds", type=count, default=2, metavar="N", help="turns of each way (default: 2)")
    parser.add_argument("--batch", type=at_least(2), metavar="N", help="also paint so many pictures in a batch and one by one")
    parser.add_argument("--quicker", action="store_true", help='also paint with each "quicker" setting and with fewer steps')


def measure(args: argparse.Namespace) -> Iterator[Found]:
    from bench.full_size import write_picture

    home, _, _ = read_machine(args)
    home.create()
    size = args.size or SIZES[args.model]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=home.scratch, ignore_cleanup_errors=True) as scratch:
        starter = Path(catalog.BY_ID["starter-painter"].path)
        folder = starter if args.model == "starter" else write_picture(args.model, Path(scratch) / args.model)
        painting = Painting(folder, size, args.steps, 1, args.dtype)
        title = f"{args.model}, {size} px"
        painters = Painters(Home(Path(scratch) / "home", Path(scratch) / "home" / "models").create())
        try:
            yield from measure_steps(painters, painting, args.rounds, title)
            if args.batch:
                yield from measure_batch(painters, painting, args.batch, title)
            if args.quicker:
                yield from measure_quicker(painters, painting, args.rounds, title)
        finally:
            painters.close()


class Painters:
    """A process for each way, ended between turns where memory does not hold both models."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Painter] = {}
        self._dtype: Dtype | None = None

    def paint(self, way: str, painting: Painting) -> Painted:
        """Paint by this way; plain diffusers takes the dtype that Hearth's plan chose before."""
        kind = HEARTH if way == HEARTH else PLAIN
        if kind not in self._open:
            self._open[kind] = Painter(kind, self._home)
        found = self._open[kind].paint(replace(painting, dtype=painting.dtype or self._dtype))
        self._dtype = self._dtype or found.dtype
        if found.peak_bytes > BESIDE * psutil.virtual_memory().available:
            self.close()
        return found

    def close(self) -> None:
        for name in list(self._open):
            self._open.pop(name).close()


def measure_steps(painters: Painters, painting: Painting, rounds: int, title: str) -> Iterator[Found]:
    """Time each way in turn. The first picture of each, which loads the model and warms torch up, does not count."""
    ways = (HEARTH, PLAIN, AGAIN)
    steps: dict[str, list[Took]] = {way: [] for way in ways}
    peaks = dict.fromkeys(ways, 0)
    for way in (HEARTH, PLAIN):
        dtype = painters.paint(way, replace(painting, steps=2)).dtype
    yield Remark(f"Both compute in {dtype}, with guidance; the other parts as Hearth plans them, and all in {dtype} by diffusers.")
    for number in range(rounds):
        for way in ways[:: -1 if number % 2 else 1]:
            found = painters.paint(way, painting)
            steps[way] += found.steps
            peaks[way] = max(peaks[way], found.peak_bytes)
    plain = Took(*map(median, zip(*steps[PLAIN], strict=True)))
    for way in ways:
        seconds, cpu_s = map(median, zip(*steps[way], strict=True))
        yield Measured(
            STEPS,
            {
                "model": title,
                "way": way if way != HEARTH else f"{HEARTH}, {dtype}",
                "seconds": seconds,
                "beside_plain": seconds / plain.seconds,
                "least_s": min(each.seconds for each in steps[way]),
                "cpu_s": cpu_s,
                "cpu_beside_plain": cpu_s / plain.cpu_s,
                "peak_bytes": peaks[way],
            },
        )


def measure_batch(painters: Painters, painting: Painting, pictures: int, title: str) -> Iterator[Found]:
    for way in (HEARTH, PLAIN):
        one_s = sum(painters.paint(way, painting).seconds for _ in range(pictures))
        batch_s = painters.paint(way, replace(painting, batch=pictures)).seconds
        name = f"{way}, {pictures} of {painting.steps} steps"
        yield Measured(BATCH, {"model": title, "way": name, "one_s": one_s, "batch_s": batch_s, "ratio": batch_s / one_s})


def measure_quicker(painters: Painters, painting: Painting, rounds: int, title: str) -> Iterator[Found]:
    """Time pictures with each setting and with fewer steps, in turn, and tell how far each is from the one with all steps."""
    settings = {f"{name}, {painting.steps} steps": replace(painting, quicker=name) for name in QUICKER_NAMES}
    settings |= {f"off, {count} steps": replace(painting, steps=count) for share in FEWER if (count := round(share * painting.steps)) > 1}
    seconds: dict[str, list[float]] = {name: [] for name in settings}
    pixels = dict.fromkeys(settings, b"")
    for number in range(rounds):
        for name in list(settings)[:: -1 if number % 2 else 1]:
            found = painters.paint(HEARTH, settings[name])
            seconds[name].append(found.seconds)
            pixels[name] = found.pixels
    first = next(iter(settings))
    for name in settings:
        took_s = median(seconds[name])
        psnr_db = None if name == first else compare(pixels[name], pixels[first])
        yield Measured(
            QUICKER, {"model": title, "setting": name, "seconds": took_s, "beside_off": took_s / median(seconds[first]), "psnr_db": psnr_db}
        )


def compare(picture: bytes, right: bytes) -> float:
    """Return the PSNR of a picture in dB; two equal ones differ by less than one of their bytes."""
    error = sum((a - b) ** 2 for a, b in zip(picture, right, strict=True)) or 1
    return 10 * log10(255**2 * len(right) / error)
