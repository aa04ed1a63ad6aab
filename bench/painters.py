"""Paint in a process of its own, by Hearth or by plain diffusers, and tell the seconds of each step and the most memory it took."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Choice, Dtype
from app.engine.jobs.quicker import Quicker
from bench.clocks import Took, read_clocks, since

PROMPT: Final = "a lighthouse at dusk, waves, and a red boat"
GUIDANCE: Final = 5.0
HEARTH: Final = "Hearth"


@dataclass(frozen=True, slots=True)
class Painting:
    """What to paint; `model`: a folder. Every way paints the same."""

    model: Path
    size: int
    steps: int
    batch: int
    dtype: Dtype | None
    """None: Hearth plans it here."""
    quicker: Quicker = "off"
    """Plain diffusers has none of this."""


@dataclass(frozen=True, slots=True)
class Painted:
    steps: tuple[Took, ...]
    """It holds each step but the first."""
    seconds: float
    """All pictures took so long, from the request to the last one decoded."""
    peak_bytes: int
    """The whole process took so much at most so far, beyond what it took before it loaded a model."""
    dtype: Dtype
    pixels: bytes = b""
    """The last picture that Hearth painted has these."""


class Painter:
    """One process, which loads its model at the first request and keeps it."""

    def __init__(self, way: str, home: Home) -> None:
        context = multiprocessing.get_context("spawn")
        self._way = way
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, way, home), name=f"bench {way}", daemon=True)
        self._process.start()
        theirs.close()

    def paint(self, painting: Painting) -> Painted:
        self._pipe.send(painting)
        try:
            found = self._pipe.recv()
        except EOFError:
            raise Trouble(
                say(
                    "bench.painter-died",
                    "The process that paints by {way} ended early. Close other programs, or choose a smaller size.",
                    way=self._way,
                )
            ) from None
        if isinstance(found, Trouble):
            raise found
        assert isinstance(found, Painted)
        return found

    def close(self) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, way: str, home: Home) -> None:
    """Paint what is asked for until the pipe closes."""
    import torch

    from app.cli.peak_memory import Peak
    from app.compat.machine.hardware import probe
    from bench.silence import silence_libraries

    silence_libraries()
    kind = probe().kind
    device = {"rocm": "cuda"}.get(kind, kind)
    paint = _Hearth(home) if way == HEARTH else _Plain(device)
    peak = Peak(device)
    while True:
        try:
            painting = pipe.recv()
        except EOFError:
            return
        try:
            with torch.inference_mode():
                at, seconds, dtype, pixels = paint.paint(painting)
        except Trouble as trouble:
            pipe.send(trouble)
            continue
        pipe.send(Painted(tuple(since(a, b) for a, b in pairwise(at)), seconds, peak.so_far(), dtype, pixels))


class _Hearth:
    """A session, as the engine runs it: its plan, its fallbacks, its files."""

    def __init__(self, home: Home) -> None:
        from app.engine.session.session import Session

        self._session, self._home = Session(home), home

    def paint(self, painting: Painting) -> tuple[list[Took], float, Dtype, bytes]:
        from app.base.foreign_formats import open_picture
        from app.engine.jobs.control import Control
        from app.engine.jobs.events import Failed, Finished, Step
        from app.engine.jobs.request import PictureRequest

        request = PictureRequest(
            PROMPT,
            str(painting.model),
            width=painting.size,
            height=painting.size,
            steps=painting.steps,
            guidance=GUIDANCE,
            batch=painting.batch,
            seed=1,
            preview_every=0,
            quicker=painting.quicker,
        )
        plans, at, pixels, began_s = [], list[Took](), b"", time.perf_counter()
        with tempfile.TemporaryDirectory(dir=self._home.scratch) as job:
            choice = Choice(dtype=painting.dtype)
            for event in self._session.run(request, choice, Control(), Path(job), lambda _, plan: plans.append(plan)):
                if isinstance(event, Step):
                    at.append(read_clocks())
                if isinstance(event, Finished):
                    seconds = time.perf_counter() - began_s
                    with open_picture(Path(event.files[-1])) as picture:
                        pixels = picture.convert("RGB").tobytes()
                if isinstance(event, Failed):
                    raise Trouble(event.sentence, *event.objections)
        return at, seconds, plans[-1].dtype, pixels


class _Plain:
    """diffusers as its documentation shows it."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._loaded: tuple[tuple[Path, Dtype], Any] | None = None

    def paint(self, painting: Painting) -> tuple[list[Took], float, Dtype, bytes]:
        import diffusers
        import torch

        assert painting.dtype is not None
        if self._loaded is None or self._loaded[0] != (painting.model, painting.dtype):
            kind: Any = diffusers.DiffusionPipeline
            pipe = kind.from_pretrained(painting.model, dtype=getattr(torch, painting.dtype), local_files_only=True)
            pipe.set_progress_bar_config(disable=True)
            self._loaded = (painting.model, painting.dtype), pipe.to(self._device)
        at, began_s = list[Took](), time.perf_counter()

        def note(pipe: Any, step: int, timestep: Any, values: dict[str, Any]) -> dict[str, Any]:
            at.append(read_clocks())
            return values

        self._loaded[1](
            PROMPT,
            width=painting.size,
            height=painting.size,
            num_inference_steps=painting.steps,
            guidance_scale=GUIDANCE,
            num_images_per_prompt=painting.batch,
            generator=torch.Generator("cpu").manual_seed(1),
            callback_on_step_end=note,
        )
        return at, time.perf_counter() - began_s, painting.dtype, b""
