"""One owner of memory: plans, loads, runs, and climbs the ladder when something breaks. run(request) yields events and never raises."""

from __future__ import annotations

import errno
import gc
import shutil
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch

from app.compat.hardware import Hardware, probe
from app.compat.memory import peak_bytes
from app.compat.meter import read
from app.compat.plan import Choice, Need, Plan, decide
from app.compat.pretend import machine
from app.compat.quirks import matching
from app.compat.seam import Seam, applied
from app.compat.verdicts import Verdict, learn, load
from app.engine import catalog, errands, stock
from app.engine.control import Control
from app.engine.errand import Errand, SelfTest, Tune
from app.engine.event import Adjusted, Event, Failed, Finished, Loading, Note, Step, Unloaded
from app.engine.faults import NumbersBroke
from app.engine.ladder import CAUSES, RELOAD, RUNGS, Fault, next_rung, stepped
from app.engine.model import Kind, Model, need
from app.engine.request import PictureRequest, Request, SpeechRequest
from app.paths import Home
from app.sentence import Trouble, say

MEMORY_WORDS = ("out of memory", "Invalid buffer size", "can't allocate memory", "DefaultCPUAllocator")
"""Metal and the CPU say it in a plain RuntimeError."""
BESIDE = 0.8
"""A second model is loaded beside the first only where it takes less than this share of what is free."""
SMALL_PARAMETERS = 50_000_000
THREADS = torch.get_num_threads()
"""What torch chose, or was told, before anything was loaded."""
CLIMBS = 8
"""Rungs in one run; after that the machine cannot do it."""


class Loaded(Protocol):
    """What speech.load and picture.load return."""

    def run(self, request: Any, control: Control, seam: Seam, job: Path) -> Iterator[Event]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Held:
    model: Model
    plan: Plan
    loaded: Loaded


class Session:
    def __init__(self, home: Home, pretended: str = "") -> None:
        self.home = home
        self.hardware: Hardware = machine(pretended) if pretended else probe()
        self.verdicts: dict[str, Verdict] = dict(load(home.verdicts, self.hardware))
        self._held: dict[Kind, Held] = {}
        self._latest: Kind = "speech"
        self._seam: Seam | None = None

    @property
    def loaded(self) -> str:
        """The one that was used last."""
        held = self._held.get(self._latest)
        return held.model.id if held else ""

    def set_chunk(self, chunk: int | None) -> None:
        if self._seam is not None:
            self._seam.set_chunk(chunk)

    def run(
        self,
        request: Request | Errand,
        choice: Choice,
        control: Control,
        job: Path,
        planned: Callable[[str, Plan], None],
        rungs: tuple[str, ...] = (),
    ) -> Iterator[Event]:
        """`job` is the run's own folder: what is finished in it is not done again. Ends with Finished, Stopped or Failed, whatever happens."""
        try:
            match request:
                case SelfTest():
                    yield from errands.self_test(self.hardware, self.home, self.verdicts, control)
                case Tune():
                    yield from errands.tune(self._model(request), self.hardware, self.home, control)
                case SpeechRequest() | PictureRequest():
                    yield from self._make(request, choice, control, job, planned, rungs)
        except Trouble as trouble:
            yield Failed(trouble.sentence, trouble.objections, trouble.cure, finished_parts(job))
        except Exception as fault:  # The engine lives on after any one job; what broke is told, with its own words.
            yield failure(fault, job)

    def _make(
        self,
        request: Request,
        choice: Choice,
        control: Control,
        job: Path,
        planned: Callable[[str, Plan], None],
        rungs: tuple[str, ...],
    ) -> Iterator[Event]:
        model = self._model(request)
        asked = (
            need(model, width=request.width, height=request.height, guidance=request.guidance)
            if isinstance(request, PictureRequest)
            else need(model)
        )
        learned = tuple(rung.id for rung in RUNGS if f"rung:{model.id}/{rung.id}" in self.verdicts)
        plan = stepped(decide(probed(self.hardware), asked, choice, self.verdicts), (*learned, *rungs))
        for taken in rungs:
            self._learn(model, taken, "the engine died")
        for _ in range(CLIMBS + 1):
            planned(model.id, plan)
            try:
                yield from self._load(model, asked, grounded(plan))
                yield from self._run(model, request, grounded(plan), control, job)
                return
            except (RuntimeError, MemoryError) as fault:
                kind = fault_of(fault)
                step = next_rung(plan, kind, getattr(fault, "where", None)) if kind else None
                if kind is None or step is None:
                    raise
                words = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
            rung, plan = step
            yield Note(CAUSES[kind])
            self._learn(model, rung.id, words)
            if kind == "memory":
                yield from self._unload("picture" if model.kind == "speech" else "speech")
            if rung.id in RELOAD:
                yield from self._unload(model.kind)
            self._clear()
            yield Adjusted(rung.id, rung.sentence, words)
        raise Trouble(
            say(
                "session.climbed",
                "Every safer way was tried and the run still broke. Choose a smaller size, or another model.",
            ),
            cure="smaller",
        )

    def _run(self, model: Model, request: Request, plan: Plan, control: Control, job: Path) -> Iterator[Event]:
        with applied(plan) as seam:
            self._seam = seam
            if control.chunk is not None:
                seam.set_chunk(control.chunk)
            worked = False
            try:
                for event in self._held[model.kind].loaded.run(request, control, seam, job):
                    worked = worked or isinstance(event, Step)
                    if isinstance(event, Finished) and worked and not seam.calls:
                        # Attention that nobody saw may have been anything: it is not called a success.
                        raise Trouble(say("session.unseen", "{model} ran its attention past Hearth, so its result cannot be trusted here.", model=model.title), cure="report")  # fmt: skip
                    yield event
            finally:
                self._seam = None

    def _model(self, request: Request | Tune) -> Model:
        if request.model:
            return catalog.find(request.model)
        return stock.best(self.home, "speech" if isinstance(request, SpeechRequest) else "picture")

    def _load(self, model: Model, asked: Need, plan: Plan) -> Iterator[Event]:
        held = self._held.get(model.kind)
        self._latest = model.kind
        if held is not None and held.model == model and kept_alike(held.plan, plan):
            held.plan = plan
            torch.set_num_threads(threads(asked))
            return
        found = stock.located(self.home, model, plan.quantised)
        if found is None:
            raise Trouble(
                say(
                    "session.not-there",
                    "{model} is not on this machine yet. Get it in Models, or with: hearth models get {id}",
                    model=model.title,
                    id=model.id,
                ),
                cure=f"get:{model.id}",
            )
        yield from self._unload(model.kind)
        if peak_bytes(asked, plan) > BESIDE * probe().free_bytes:
            yield from self._unload()
        torch.set_num_threads(threads(asked))
        yield Loading(model.id, say("session.loading", "Loading {model}.", model=model.title))
        # Each family brings seconds of imports; only the one that is asked for is waited for.
        if model.kind == "speech":
            from app.engine import speech

            loaded: Loaded = speech.load(found.folder, plan, found.companions.get("codec"))
        else:
            from app.engine import picture

            loaded = picture.load(found.folder, model, plan, found.companions)
        self._held[model.kind] = Held(model, plan, loaded)

    def free(self) -> None:
        """Everything, at once."""
        for _ in self._unload():
            pass

    def _unload(self, kind: Kind | None = None) -> Iterator[Event]:
        """The model of one kind, or all; each is told with what it gave back."""
        for each in [kind] if kind else list(self._held):
            held = self._held.pop(each, None)
            if held is None:
                continue
            before, model = read(), held.model
            held.loaded.close()
            del held
            self._clear()
            after = read()
            freed = max(0, before.process_bytes - after.process_bytes)
            freed += max(0, (before.device_bytes or 0) - (after.device_bytes or 0))
            yield Unloaded(model.id, say("session.unloaded", "{model} was unloaded.", model=model.title), freed)

    def _clear(self) -> None:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()

    def _learn(self, model: Model, rung: str, words: str) -> None:
        """Next time on this machine the run begins on this rung."""
        verdict = Verdict(f"rung:{model.id}/{rung}", passed=False, words=words)
        self.verdicts[verdict.subject] = verdict
        learn(self.home.verdicts, self.hardware, verdict)


def fault_of(fault: BaseException) -> Fault | None:
    """Which ladder this belongs to; None: not the machine's doing."""
    if isinstance(fault, NumbersBroke):
        return "numbers"
    words = str(fault)
    if isinstance(fault, torch.OutOfMemoryError | MemoryError) or any(each in words for each in MEMORY_WORDS):
        return "memory"
    return "crash" if matching(words) else None


def threads(asked: Need) -> int:
    """A small model's kernels end sooner than a second thread wakes up: beside other programs two took fourteen times as long as one."""
    return 1 if sum(part.parameters for part in asked.parts) < SMALL_PARAMETERS else max(1, THREADS)


def probed(hardware: Hardware) -> Hardware:
    """With the memory that is free now; all else does not change while Hearth runs."""
    return hardware if hardware.pretended else replace(hardware, free_bytes=probe().free_bytes)


def grounded(plan: Plan) -> Plan:
    """Where the work really happens: a pretended card's is done by the processor, with all of the plan's other choices."""
    if plan.runs_on == plan.device:
        return plan
    precision = tuple(replace(part, device=plan.runs_on) for part in plan.precision)
    return replace(plan, device=plan.runs_on, precision=precision, offload="none", quantised="none")


def kept_alike(before: Plan, after: Plan) -> bool:
    """Whether weights that were loaded for one plan serve the other as they lie."""
    return all(
        getattr(before, name) == getattr(after, name) for name in ("device", "precision", "offload", "quantised", "vae")
    )


def finished_parts(job: Path) -> tuple[str, ...]:
    """What a failed run leaves: whole parts and pictures; half-written files have other names."""
    return tuple(str(path) for pattern in ("part-*.wav", "picture-*.png") for path in sorted(job.glob(pattern)))


def failure(fault: Exception, job: Path) -> Failed:
    files = finished_parts(job)
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(job if job.exists() else job.anchor).free
        return Failed(
            say("session.disk-full", "The disk is full: only {free} MB are left where {folder} lies. What was finished is kept. Make room and go on.", free=free >> 20, folder=str(job)),
            cure="open-folder", files=files,
        )  # fmt: skip
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or fault_of(fault) == "memory":
        return Failed(
            say("session.no-memory", "Memory ran out, and no safer way was left. Close other programs, or choose a smaller size or model."),
            cure="smaller", files=files,
        )  # fmt: skip
    if isinstance(fault, NumbersBroke):
        return Failed(
            say("session.numbers", "The model's numbers broke on this machine in every precision that it has. Choose another model, and please send a report."),
            cure="report", files=files,
        )  # fmt: skip
    traceback.print_exception(fault)
    return Failed(
        say("session.unknown", "The model stopped with an error that Hearth does not know. What was finished is kept; please send a report."),
        (say("session.words", "Its own words: {words}", words=f"{type(fault).__name__}: {fault}"[:500]),),
        "report", files,
    )  # fmt: skip
