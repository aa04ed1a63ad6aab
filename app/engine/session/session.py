"""Plan, load and run one request after another; take a fallback when a run breaks. run(request) yields events and never raises."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from app.base import notices
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.compat.attention.seam import applied
from app.compat.machine.hardware import Hardware, with_room
from app.compat.machine.meter import read
from app.compat.machine.pretended import find_machine
from app.compat.machine.verdicts import WITH_LORAS, RunFailure, Subject, Verdict, Verdicts, learn, load, reload
from app.compat.planning.fallbacks import CAUSES, Learned, next_fallback
from app.compat.planning.types import Choice, Need, Plan, Role
from app.engine.jobs.control import Control, Dial
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Note, Step, Stopped
from app.engine.jobs.messages import Died
from app.engine.jobs.parts import LESSONS, drop_elsewhere, list_made
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import Describe, Enlarge, Hear, MaintenanceTask, Pick, SelfTest, Tune
from app.engine.kinds import check, kind_of
from app.engine.models import catalog, on_disk
from app.engine.models.loading.release_memory import release
from app.engine.models.model import Model
from app.engine.models.planned import find_need, make_plan
from app.engine.models.pretended_device import use_real_device
from app.engine.session import card_spill, maintenance
from app.engine.session.idle_measuring import measure_while_idle
from app.engine.session.live_plan import LivePlan
from app.engine.session.loaded_models import THREADS, ModelHolder
from app.engine.session.machine_check import MachineCheck
from app.engine.session.run_errors import classify_fault, describe_failure

FALLBACKS_AFTER_DEATH = 2
"""A run that killed its engine takes this many fallbacks at once, so that fewer engines die on the way to a plan that
works."""


class Session:
    def __init__(self, home: Home, pretended: str = "", dial: Dial | None = None) -> None:
        self.home = home
        self.dial = dial or Dial()
        self.hardware: Hardware = find_machine(pretended)
        self.verdicts: dict[Subject, Verdict] = dict(load(home.verdicts, self.hardware))
        self.holder = ModelHolder(home)
        self._check = MachineCheck(home, self.hardware)

    @property
    def loaded(self) -> str:
        """The model used last."""
        return self.holder.latest

    @property
    def checked(self) -> tuple[int, int]:
        """Questions about this machine that are answered, of how many."""
        return self._check.progress

    @property
    def held_bytes(self) -> int:
        """Weights on the device; unloaded when another model needs the memory."""
        return self.holder.held_bytes

    def run(
        self,
        request: Request | MaintenanceTask,
        choice: Choice,
        control: Control,
        job: Path,
        tell: Callable[[str, Plan], None],
        *,
        died: Died | None = None,
        yields: bool = False,
    ) -> Iterator[Event]:
        """`job` is the run's own folder: parts finished there are not made again. `tell` receives each plan as it is
        decided. `died` is what killed the engine during this job; `yields` as in `planned`. Ends with Finished, Stopped or
        Failed, whatever happens."""
        try:
            self._reload_verdicts()
            yield from map(Note, notices.take_all())
            match request:
                case SelfTest():
                    yield from maintenance.self_test(self.hardware, self.home, self.verdicts, control)
                case Tune():
                    yield from maintenance.tune(catalog.find(request.model), self._read_hardware(), self.home, self.verdicts, control)
                case Hear() | Pick() | Describe():
                    yield from self._read(request, control, job, tell)
                case Enlarge():
                    yield from self._enlarge(request, control, job)
                case _:
                    for event in self._make(request, choice, control, job, tell=tell, died=died, yields=yields):
                        yield from map(Note, notices.take_all())
                        yield event
        except Trouble as trouble:
            yield Failed.of(trouble, list_made(job))
        except Exception as fault:  # The engine survives any one job; report the error with its own text.
            yield describe_failure(fault, job)

    def use_idle_time(self) -> Iterator[None]:
        """Do idle work, piece by piece."""
        yield from self._check.run(self.verdicts)
        yield from measure_while_idle(self.home, self.hardware, self.verdicts)

    def _reload_verdicts(self) -> None:
        """Reload verdicts that another process added or removed, into the same dict that idle measuring writes to. What cannot be
        read now, or could not be stored, still holds."""
        stored = self._check.found | reload(self.home.verdicts, self.hardware, self.verdicts)
        self.verdicts.clear()
        self.verdicts.update(stored)

    def _make(
        self,
        request: Request,
        choice: Choice,
        control: Control,
        job: Path,
        *,
        tell: Callable[[str, Plan], None],
        died: Died | None,
        yields: bool,
    ) -> Iterator[Event]:
        main = on_disk.find_model(self.home, request)
        request = replace(request, model=main.id)  # the file names its model, for voices that are saved from it
        check(self.home, request, main)
        began_s, models = time.monotonic(), kind_of(request).list_models(self.home, request, main, job)
        for each in models:
            model = main if each == main.id else catalog.find(each)
            for event in self._make_with(model, request, choice, control, job, tell=tell, died=died, yields=yields):
                if not isinstance(event, Finished | Stopped):
                    yield event
                    continue
                yield event if len(models) == 1 else replace(event, elapsed_s=time.monotonic() - began_s)
                return
            died = None

    def _make_with(
        self,
        model: Model,
        request: Request,
        choice: Choice,
        control: Control,
        job: Path,
        *,
        tell: Callable[[str, Plan], None],
        died: Died | None,
        yields: bool,
    ) -> Iterator[Event]:
        """Make what this model makes of a request; the one that makes the last of it ends the job."""
        facts = self._read_hardware()
        need = find_need(self.home, facts, model, request)
        decided = partial(make_plan, self.home, facts, model, choice, request=request, yields=yields)
        lessons = self._find_lessons(request, job)
        if lessons != self.home.verdicts:
            self.verdicts.update(load(lessons, self.hardware))
        live, told = LivePlan(decided, self.dial, self.verdicts), list[Sentence]()
        if died is not None:
            for _ in range(FALLBACKS_AFTER_DEATH):
                if learned := self._fall_back(
                    live.plan_with, need, RunFailure(died.fault, died.step), None, words=died.words, loading=died.loading, lessons=lessons
                ):
                    yield Adjusted(learned.fallback.id, learned.fallback.sentence, died.words)
            live = LivePlan(decided, self.dial, self.verdicts, live)
        while True:
            first = live.now
            tell(model.id, first)
            step, loading = None, True
            quantised = next(each for each in live.now.because if each.field == "quantised")
            if quantised.asked not in ("", live.now.quantised):
                yield Note(quantised.sentence)
            odd = [each.sentence for each in live.now.warnings if each.slower and each.sentence not in told]
            told += odd
            yield from map(Note, odd)
            try:
                yield from self.holder.unload("hearing")  # what only reads takes no memory from what makes something
                yield from self.holder.unload("seeing")
                yield from self.holder.load(model, need, use_real_device(live.now))
                loading = False
                if live.now is not first:  # the slider was moved meanwhile
                    tell(model.id, live.now)
                for event in self._run(model, request, live, control, job, tell):
                    step = event.done + 1 if isinstance(event, Step) else step
                    yield event
                return
            except (Trouble, OSError):
                raise
            except Exception as fault:
                if not loading and drop_elsewhere(job):
                    release()
                    yield Note(
                        say("session.begun-elsewhere", "What another computer had begun cannot be continued here, so it is made anew.")
                    )
                    continue
                if not isinstance(fault, RuntimeError | MemoryError):
                    raise
                kind = classify_fault(fault)
                where: Role | None = getattr(fault, "where", None)
                words = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
                failure = None if kind is None else RunFailure(kind, getattr(fault, "step", step))
                of_loras, lessons = kind == "numbers" and bool(request.loras), self._find_lessons(request, job)
                learned = (
                    None
                    if failure is None
                    else self._fall_back(
                        live.plan_with, need, failure, where, words=words, loading=loading, lessons=None if of_loras else lessons
                    )
                )
                if failure is None or learned is None:
                    if of_loras:
                        raise Trouble(
                            say(
                                "session.lora-numbers",
                                "With these LoRAs the model produces invalid numbers. Remove them, or lower their weights.",
                            )
                        ) from fault
                    raise
            yield Note(CAUSES[failure.fault])
            if failure.fault == "memory":
                yield from self.holder.unload_others(model)
            release()
            yield Adjusted(learned.fallback.id, learned.fallback.sentence, words)
            live = LivePlan(decided, self.dial, self.verdicts, live)

    def _read(self, task: Hear | Pick | Describe, control: Control, job: Path, tell: Callable[[str, Plan], None]) -> Iterator[Event]:
        """Hear or look with a model that makes nothing itself."""
        model, facts = catalog.find(task.model), self._read_hardware()
        need, decided = find_need(self.home, facts, model), partial(make_plan, self.home, facts, model, Choice())
        while True:
            plan = decided(self.verdicts)
            tell(model.id, plan)
            try:
                yield from self.holder.load(model, need, use_real_device(plan))
                with applied(use_real_device(plan)) as seam:
                    yield from self.holder.get(model.kind).run(task, control, seam, job)
                return
            except (RuntimeError, MemoryError) as fault:
                kind = classify_fault(fault)
                learned = None
                if kind is not None:
                    learned = self._fall_back(
                        decided, need, RunFailure(kind, None), None, words=str(fault), loading=False, lessons=self.home.verdicts
                    )
                if learned is None:
                    raise
                yield from self.holder.unload()
                release()
                yield Adjusted(learned.fallback.id, learned.fallback.sentence, str(fault))

    def _enlarge(self, task: Enlarge, control: Control, job: Path) -> Iterator[Event]:
        """Enlarge where attention would run; a device that has no room, or computes it wrongly, leaves it to the processor."""
        from app.engine.pictures.run.enlarge import run  # the first picture brings what it imports

        torch.set_num_threads(max(1, THREADS))  # a small model may have left one
        plan = make_plan(self.home, self._read_hardware(), verdicts=self.verdicts)
        try:
            yield from run(task, plan.runs_on, control, job, plan.dtype)
        except RuntimeError as fault:
            if plan.runs_on == "cpu" or classify_fault(fault) is None:
                raise
            release()
            yield from run(task, "cpu", control, job)

    def _find_lessons(self, request: Request, job: Path) -> Path:
        """Return where the fallbacks of such runs are stored. What breaks with LoRAs, or with another machine's part as a voice, may be their doing:
        it holds for these LoRAs, or this job, alone."""
        if (job / LESSONS).is_dir():
            return job / LESSONS
        loras = sorted(each.path for each in request.loras)
        named = hashlib.sha256("\n".join(loras).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self.home.verdicts / f"{WITH_LORAS}{named}" if loras else self.home.verdicts

    def _fall_back(
        self,
        decided: Callable[[Verdicts], Plan],
        need: Need,
        failure: RunFailure,
        where: Role | None,
        *,
        words: str,
        loading: bool,
        lessons: Path | None,
    ) -> Learned | None:
        """Take one fallback and store it in the folder `lessons`: such runs on this machine start with it. None: it may not be the machine that
        broke the numbers; the next run reads what is stored."""
        found = next_fallback(decided, need, self.verdicts, failure, where=where, words=words, loading=loading)
        if found is None:
            return None
        learned, verdict, _ = found
        self.verdicts[verdict.subject] = verdict
        if lessons is not None:
            learn(lessons, self.hardware, verdict)
        return learned

    def _run(
        self, model: Model, request: Request, live: LivePlan, control: Control, job: Path, tell: Callable[[str, Plan], None]
    ) -> Iterator[Event]:
        shown, refused = live.now, live.refused
        with applied(use_real_device(shown), live.read_chunk_q) as seam:
            worked, pace = False, card_spill.name_pace(model, shown)
            watch = card_spill.CrawlWatch(self.hardware, self.verdicts.get(pace), kind_of(request).weigh_step(request, model))
            for event in self.holder.get(model.kind).run(request, control, seam, job):
                if isinstance(event, Step):
                    worked = True
                    if (crawl := watch.notice(event)) is not None:
                        yield Note(crawl)
                if live.now is not shown:
                    shown = live.now
                    tell(model.id, shown)
                before, refused = refused, live.refused
                if refused is not None and refused is not before:
                    yield Note(refused.sentence)
                if isinstance(event, Finished) and worked and not seam.calls:
                    # Attention that was not observed may be wrong: report it rather than call it a success.
                    raise Trouble(
                        say(
                            "session.unseen",
                            "{model} bypassed Hearth's attention, so this result may be wrong on this machine.",
                            model=model.words,
                        ),
                        cure="report",
                    )
                if isinstance(event, Finished) and (learned := watch.learn(pace)) is not None:
                    self.verdicts.update(learn(self.home.verdicts, self.hardware, learned))
                yield event

    def free(self) -> None:
        """Unload everything at once."""
        self.holder.free()

    def _read_hardware(self) -> Hardware:
        """Read the hardware with the memory that is free now, counting loaded models as free, because they can be
        unloaded. The rest does not change while Hearth runs."""
        release()
        reading = read()
        card_spill.bound_share(self.hardware, reading)
        return with_room(self.hardware, reading, self.held_bytes)
