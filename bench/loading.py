"""Measure what loading a model takes: seconds, and the most memory beside the size of its weights, in a process of its own."""

from __future__ import annotations

import multiprocessing
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, cast

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.cli.peak_memory import own_bytes
from app.compat.machine.hardware import probe
from app.compat.planning.types import Choice
from app.engine.models import catalog
from app.engine.models.planned import make_plan
from app.engine.models.pretended_device import use_real_device
from bench.report import Bound, Column, Found, Measured, Table

LAYERS: Final = 4
STORED: Final = ("float32", "float16", "bfloat16")
MOST: Final = 1.1
LOADING: Final = Table(
    "loading", "loading a model", ("case",),
    (
        Column("seconds", "s", ".2f", compared=True), Column("weights_bytes", "weights GB", ".2f", 1e-9),
        Column("own_peak", "own peak", ".2f", compared=True), Column("whole_peak", "whole peak", ".2f", compared=True),
    ), width=52,
)  # fmt: skip
LOOK_S: Final = 0.003


def measure_loading(home: Home, scratch: Path) -> Iterator[Found]:
    """Load a voice of Dia's widths and Stable Diffusion 1.5 from each dtype into float32. Peaks are multiples of the loaded weights: of the
    memory that is the process's own, and with the pages of the file, which the system takes back when it needs them."""
    import torch

    from bench.full_size import write_picture, write_voice

    peaks = []
    shapes: dict[str, Callable[[Path, torch.dtype], Path]] = {
        f"Dia's widths, {LAYERS} layers": partial(write_voice, layers=LAYERS),
        "Stable Diffusion 1.5": partial(write_picture, "sd15"),
    }
    for name, write in shapes.items():
        for stored in STORED:
            folder = write(scratch / "model", getattr(torch, stored))
            seconds, weights, own, whole = load_in_a_process(home, folder)
            shutil.rmtree(folder)
            peaks.append(own / weights)
            yield Measured(
                LOADING,
                {
                    "case": f"{name}, {stored} into float32",
                    "seconds": seconds,
                    "weights_bytes": weights,
                    "own_peak": own / weights,
                    "whole_peak": whole / weights,
                },
            )
    yield Bound("own memory at the peak of loading, as a multiple of the weights", max(peaks), most=MOST)


def load_in_a_process(home: Home, folder: Path) -> tuple[float, int, int, int]:
    """Return the seconds, and the bytes of the weights, of the process's own memory at its peak, and of all it had mapped."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_load, args=(theirs, home, folder))
    child.start()
    theirs.close()
    try:
        found: tuple[float, int, int, int] = ours.recv()
        return found
    except EOFError:
        raise Trouble(say("bench.load-died", "The process that loads a model ended early. Close other programs.")) from None
    finally:
        child.join()


def _load(answer: Connection, home: Home, folder: Path) -> None:
    from app.cli.peak_memory import Peak
    from app.engine.pictures.families import loader as pipelines
    from app.engine.pictures.families.placement import list_modules
    from app.engine.speech.run import loader as speech
    from bench.silence import silence_libraries

    silence_libraries()

    model = catalog.find(str(folder))
    plan = use_real_device(make_plan(home, probe(), model, Choice(dtype="float32", quantised="none")))
    before, highest, done = own_bytes(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(LOOK_S):
            highest[0] = max(highest[0], own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    peak, began_s = Peak("cpu"), time.perf_counter()
    if model.kind == "speech":
        modules = [cast(Any, speech.load(folder, plan).voice).model]
    else:
        modules = [*list_modules(pipelines.load_pipeline(folder, model, plan, {}, home.scratch).pipe).values()]
    seconds = time.perf_counter() - began_s
    done.set()
    watcher.join()
    # qkv_proj is what the three projections are views of.
    weights = sum(weight.nbytes for each in modules for name, weight in each.named_parameters() if "qkv_proj" not in name)
    answer.send((seconds, weights, max(highest[0], own_bytes()) - before, peak.extra()))
