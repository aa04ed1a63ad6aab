"""One owner of memory: plans, loads, runs, and climbs the ladder when something breaks. run(request) yields events and never raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from app.compat.hardware import Hardware, probe
from app.compat.plan import Choice, Plan, decide
from app.compat.pretend import machine
from app.compat.release import release
from app.compat.seam import Seam, applied
from app.compat.verdicts import Verdict, learn, load
from app.engine import catalog, errands, stock
from app.engine.broken import failure, fault_of, finished_parts
from app.engine.control import Control
from app.engine.errand import Errand, SelfTest, Tune
from app.engine.event import Adjusted, Event, Failed, Finished, Note, Step
from app.engine.ground import grounded, left_whole
from app.engine.ladder import CAUSES, RELOAD, RUNGS, next_rung, stepped
from app.engine.model import Model, need
from app.engine.owner import Owner
from app.engine.refusal import refuse
from app.engine.request import PictureRequest, Request, SpeechRequest
from app.engine.spare import measuring
from app.paths import Home
from app.sentence import Trouble, say

CLIMBS = 8
"""Rungs in one run; after that the machine cannot do it."""


class Session:
    def __init__(self, home: Home, pretended: str = "") -> None:
        self.home = home
        self.hardware: Hardware = machine(pretended) if pretended else probe()
        self.verdicts: dict[str, Verdict] = dict(load(home.verdicts, self.hardware))
        self._owner = Owner(home)
        self._seam: Seam | None = None
        self._automatic: int | None = None

    @property
    def loaded(self) -> str:
        """The one that was used last."""
        return self._owner.latest

    def set_chunk(self, chunk: int | None) -> None:
        """None: what the plan takes by itself."""
        if self._seam is not None:
            self._seam.set_chunk(self._automatic if chunk is None else chunk)

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
                    yield from errands.tune(self._model(request), self.hardware, self.home, self.verdicts, control)
                case SpeechRequest() | PictureRequest():
                    yield from self._make(request, choice, control, job, planned, rungs)
        except Trouble as trouble:
            yield Failed(trouble.sentence, trouble.objections, trouble.cure, finished_parts(job))
        except Exception as fault:  # The engine lives on after any one job; what broke is told, with its own words.
            yield failure(fault, job)

    def spare(self) -> Iterator[None]:
        """What is done while nobody waits, piece by piece."""
        yield from measuring(self.home, self.hardware, self.verdicts)

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
        refuse(request, model, self.home)
        asked = (
            need(model, width=request.width, height=request.height, guidance=request.guidance)
            if isinstance(request, PictureRequest)
            else need(model)
        )
        learned = tuple(rung.id for rung in RUNGS if f"rung:{model.id}/{rung.id}" in self.verdicts)
        plan = stepped(decide(self._now(), asked, choice, self.verdicts), (*learned, *rungs))
        for taken in rungs:
            self._learn(model, taken, "the engine died")
        for attempt in range(CLIMBS + 1):
            planned(model.id, plan)
            real = grounded(plan, model, self.home)
            if real.quantised != plan.quantised and not attempt:
                yield Note(left_whole(plan, self.hardware))
            self._automatic = real.chunk_q if choice.chunk is None else None
            try:
                yield from self._owner.load(model, asked, real)
                yield from self._run(model, request, real, control, job)
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
                yield from self._owner.unload("picture" if model.kind == "speech" else "speech")
            if rung.id in RELOAD:
                yield from self._owner.unload(model.kind)
            release()
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
            worked, chunk = False, seam.chunk
            try:
                for event in self._owner.of(model.kind).run(request, control, seam, job):
                    worked = worked or isinstance(event, Step)
                    if isinstance(event, Step) and seam.chunk != chunk:
                        chunk = seam.chunk
                        release()
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

    def free(self) -> None:
        """Everything, at once."""
        for _ in self._owner.unload():
            pass

    def _now(self) -> Hardware:
        """With the memory that is free now, or would be: what is loaded can go. All else does not change while Hearth runs."""
        if self.hardware.pretended:
            return self.hardware
        release()  # what torch keeps of the job before for next time is free, though the device counts it as taken
        now = probe()
        return replace(self.hardware, free_bytes=min(now.memory_bytes, now.free_bytes + self._owner.held_bytes))

    def _learn(self, model: Model, rung: str, words: str) -> None:
        """Next time on this machine the run begins on this rung."""
        verdict = Verdict(f"rung:{model.id}/{rung}", passed=False, words=words)
        self.verdicts[verdict.subject] = verdict
        learn(self.home.verdicts, self.hardware, verdict)
