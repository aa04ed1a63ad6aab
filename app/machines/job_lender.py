"""Give jobs that wait in the queue to machines that are idle, in pieces to several or whole to one: while the engine here is at another one,
or where they are too large for it."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.events import Finished, Note
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request
from app.engine.jobs.seed import draw_seed
from app.engine.keeper.delivery import Delivery, deliver
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import kind_of, parts_of
from app.engine.speech.sound.arrived import PART_MOST_S
from app.machines.asking import Asking
from app.machines.failures import Failures
from app.machines.foresight import Foresight
from app.machines.helping_machine import HelpingMachine, is_able, is_at_work
from app.machines.hub import Hub, TaskEnd
from app.machines.known_models import KnownModels
from app.machines.outlook import Outlook, expect_seconds, explain, is_endless, is_sooner, may_fit
from app.machines.pieces import Pieces, find_pieces
from app.machines.room import WAITS, Room
from app.machines.shared_job import SharedJob
from app.machines.tasks import begun
from app.machines.tasks.portable import pack

LOOKED_AT: Final = 32
"""Jobs at the head of the queue."""
WORTH_SAYING_S: Final = 2.0
"""How long a job has to wait before it is told why; machines answer sooner."""


@dataclass(frozen=True, slots=True)
class _Away:
    """A whole script at one machine: its parts cannot be spoken apart."""

    task: str
    machine: str
    since_s: float
    here: Outlook
    """What this machine says of it."""
    longest_s: float
    """The length of its longest sound."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """A job in pieces at several machines."""

    at: SharedJob
    since_s: float


class JobLender:
    """Called by one thread at a time; ends and stops come in others."""

    def __init__(self, keeper: Keeper, hub: Hub, asking: Asking, models: KnownModels, ended: Callable[[], None]) -> None:
        """`ended` is called after each task, as its machine is idle then."""
        self._keeper, self._hub, self._asking, self._models, self._ended = keeper, hub, asking, models, ended
        self._foresight = Foresight(keeper, str)
        self._away: dict[str, _Away] = {}
        """What other machines do, by job."""
        self._shared: dict[str, _Shared] = {}
        self._handed: dict[str, SharedJob] = {}
        """Put back into the queue half done, as the engine here has nothing else to do."""
        self.failures = Failures()
        self._given: Counter[str] = Counter()
        """Tasks so far, by job: its first one is named alike after a restart, and the same helper goes on with its parts."""
        self._named: dict[str, list[str]] = {}
        """The machines that were named for jobs too large for this computer, by job."""
        self._offered: list[tuple[str, str]] = []
        self.room = Room(keeper, hub, asking, models, self.failures)
        keeper.leaves = self.room.pass_over

    @property
    def busy(self) -> set[str]:
        """The machines that are at it."""
        shared = [*(each.at for each in self._shared.values()), *self._handed.values()]
        return {each.machine for each in [*self._away.values()]}.union(*(each.busy for each in shared))

    def list_wanted(self) -> list[tuple[str, str]]:
        """List the jobs that machines could have now, each with its model."""
        return [*((job, each.at.pieces.request.model) for job, each in [*self._shared.items()]), *self._offered]

    def offer(self, joins: bool, taken: Collection[str]) -> bool:
        """Give waiting jobs away, in their order; tell whether one waits that another machine could do. `joins`: let idle machines make
        what somebody is at. `taken`: machines that have other work."""
        machines = self._hub.list_machines()
        at_work, idle_here = {each.id for each in machines if is_at_work(each)}, self._is_idle_here()
        self.room.see(machines)
        self._tidy()
        for id_, away in [*self._away.items()]:
            gone_s, said = time.monotonic() - away.since_s, self._asking.find(id_, away.machine)
            if is_endless(expect_seconds(said), gone_s):
                self._hub.judged.refuse_endless(away.machine, gone_s)
                self.failures.open(id_).add(away.machine)
                self._take_back(id_)
            elif away.machine not in at_work or (idle_here and is_sooner(away.here, said, gone_s)):
                self.failures.note_lost(id_, {away.machine}, machines)
                self._take_back(id_)
        for shared in [*self._shared.values()]:
            self._go_on(shared, machines, taken, joins)
        self._offered = offered = list[tuple[str, str]]()
        wanted, engine_idle, awaited = False, not self._keeper.state.job, set[str]()
        for job in self._keeper.journal.list_waiting()[:LOOKED_AT]:
            too_large, unable = self.room.waits(job), self.failures.find(job.id)
            if job.request.stays_here or (not too_large and (engine_idle or self.failures.has_any(job.id))):
                continue  # the engine here takes it
            model = job.request.model
            name = self._models.name(model)
            offered.append((job.id, model))
            self._models.want([each for each in machines if is_at_work(each)], model)
            if name and (able := [each for each in machines if is_able(each, name) and each.id not in unable]):
                wanted, busy = True, {*self.busy, *taken, *awaited}
                chosen = self._asking.choose(job.id, job.request.one_piece().with_model(name), able)
                if idle := [each for each in chosen if not each.tasks and each.id not in busy]:
                    self._send(job, model, idle, too_large)
                awaited |= {each.id for each in able if each not in chosen and self._asking.find(job.id, each.id) is None}
            if too_large and not self._list_machines_of(job.id) and time.time() - job.created_s > WORTH_SAYING_S:
                self._keeper.tell_waiting(job.id, WAITS)
        return wanted

    def foresee(self, request: Request) -> Outlook:
        """Return what this machine says of a request."""
        try:
            return self._foresight.foresee(request)
        except (Trouble, OSError):  # the engine says so, if it comes to that
            return Outlook("no")

    def hand_over(self, job: str) -> SharedJob | None:
        """Leave a job to the engine here, with what other machines are at. It is at no other one that was put back."""
        found = self._handed.pop(job, None)
        for other in self._handed.values():
            other.drop()
        self._handed.clear()
        return found

    def close(self, goes_on: bool) -> None:
        """Put what is away back to its place in the queue. `goes_on`: leave it away, for the next start to go on with."""
        if not goes_on:
            for job in [*self._away]:
                self._take_back(job)
            for shared in [*self._shared.values()]:
                self._give_up(shared)
        for handed in self._handed.values():
            handed.drop()
        self._keeper.leaves = lambda job: False

    def _send(self, job: Job, model: str, idle: Sequence[HelpingMachine], too_large: bool) -> None:
        """Give a job to all of these machines if other machines can make all of its pieces, else to the first. `too_large`: for this
        computer, which is said beside it."""
        folder = self._keeper.folder(job.id)
        request = replace(job.request, model=model, seed=draw_seed(job.request, folder))
        pieces = find_pieces(self._keeper.home, request, folder)
        if pieces is not None and pieces.complete:
            self._share(job, pieces, idle)
        else:
            self._send_whole(job, request, idle[0].id)
        if too_large:
            self._named[job.id] = []
            self._say_where(job.id, idle)

    def _say_where(self, job: str, machines: Sequence[HelpingMachine]) -> None:
        """Say which machines make, or made, what is too large for this computer, when one more does."""
        at_it, named = self._list_machines_of(job), self._named[job]
        if new := [each.name for each in machines if each.id in at_it and each.name not in named]:
            named += new
            said = say("large.elsewhere", "Too large for this computer; runs on {names}.", names=tuple(named))
            self._keeper.tell_lent_out(job, Note(said))

    def _list_machines_of(self, job: str) -> set[str]:
        away, shared = self._away.get(job), self._shared.get(job)
        return {away.machine} if away is not None else shared.at.busy if shared is not None else set()

    def _send_whole(self, job: Job, request: Request, machine: str) -> None:
        folder = self._keeper.folder(job.id)
        self._given[job.id] += 1
        task = f"{job.id}-all-{self._given[job.id]}"
        try:
            so_far = {file.name: file for file in begun.list_begun(request, folder)}
            aside = begun.set_aside(so_far, self._keeper.home.scratch / "machines" / "begun")
            portable = pack(request.with_model(self._models.name(request.model)), aside)
        except OSError:  # a file that it needs is gone; the engine says so
            self.failures.keep_here(job.id)
            return

        def stop() -> None:
            self._away.pop(job.id, None)
            self._hub.stop(task)

        if self._keeper.lend_out(job.id, request.model, stop) is not None:
            planned = parts_of(self._keeper.home, request, folder).planned
            longest_s, count = sum(PART_MOST_S + part.seconds for part in planned), len(planned)
            self._away[job.id] = _Away(task, machine, time.monotonic(), self.foresee(request), longest_s)
            why = explain(self._asking.find(job.id, machine))
            self._hub.submit(
                task, portable, [machine], lambda _, event: self._keeper.tell_lent_out(job.id, event), lambda end: self._take(job, end), why=why,
                begun=lambda name, path: self._hold(job.id, task, path, folder / name) if begun.is_name(name, count) else None,
            )  # fmt: skip

    def _share(self, job: Job, pieces: Pieces, idle: Sequence[HelpingMachine]) -> None:
        name, here = self._models.name(pieces.request.model), self.foresee(pieces.ask_for(pieces.places[0]))
        at = SharedJob(
            self._keeper,
            self._hub,
            self._asking,
            job,
            pieces=pieces,
            model=name,
            here=here,
            ended=self._ended,
            unable=self.failures.open(job.id),
        )

        def stop() -> None:
            self._shared.pop(job.id, None)
            at.drop()

        if self._keeper.lend_out(job.id, pieces.request.model, stop) is not None:
            self._shared[job.id] = _Shared(at, time.monotonic())
            at.give_away(idle, (), here=False, joins=False)

    def _go_on(self, shared: _Shared, machines: Sequence[HelpingMachine], taken: Collection[str], joins: bool) -> None:
        """Give more of a job's pieces away; end it, or put it back into the queue where no machine can go on with it or the engine here could."""
        at, job = shared.at, shared.at.job
        able = [each for each in machines if is_able(each, at.model) and each.id not in at.unable]
        if not at.missing:
            self._end(shared)
        elif (at.failed and not at.busy) or not any(each.id in at.busy or may_fit(self._asking.find(job.id, each.id)) for each in able):
            self.failures.note_lost(job.id, at.busy, machines)
            if at.faults:
                self.failures.keep_here(job.id)
            self._give_up(shared)
        elif self._is_idle_here() and not self.room.is_too_large(job):
            if self._shared.pop(job.id, None) is not None:
                self._handed[job.id] = at
                self._keeper.give_up_lent_out(job.id)
        else:
            others = self.busy - at.busy
            at.give_away(able, {*others, *taken}, here=False, joins=joins)
            if job.id in self._named:
                self._say_where(job.id, able)

    def _end(self, shared: _Shared) -> None:
        job = shared.at.job
        if self._shared.pop(job.id, None) is not None:
            shared.at.drop()
            try:
                delivery = deliver(self._keeper.home, job.request, self._keeper.folder(job.id))
            except OSError:  # the disk is full, for which the queue knows how to wait
                delivery = Delivery()
            if not delivery.whole:
                self._keeper.give_up_lent_out(job.id)
                return
            elapsed_s = time.monotonic() - shared.since_s
            self._keeper.end_lent_out(job.id, Finished(delivery.files, elapsed_s, 0.0, "", 0, delivery.seconds), {}, "")

    def _give_up(self, shared: _Shared) -> None:
        """Put a job back to its place in the queue; the pieces that are there stay."""
        if self._shared.pop(shared.at.job.id, None) is not None:
            shared.at.drop()
            self._keeper.give_up_lent_out(shared.at.job.id)

    def _hold(self, job: str, task: str, path: Path, target: Path) -> None:
        """Put what a machine has made of a job so far into its folder, where whoever takes the job over goes on with it."""
        away = self._away.get(job)
        if away is not None and away.task == task:
            with contextlib.suppress(OSError):  # the disk is full, or the job has just ended
                begun.keep(path, target)

    def _take(self, job: Job, end: TaskEnd) -> None:
        away = self._away.get(job.id)
        if away is None or away.task != end.id:  # it was taken back, and may be at another one by now
            return
        del self._away[job.id]
        if isinstance(end.event, Finished) and kind_of(job.request).is_result(job.request, [*end.files.values()], away.longest_s):
            self._hub.judged.accept(end.machine)
            self._keeper.end_lent_out(job.id, end.event, end.files, self._hub.name(end.machine))
        else:
            self._hub.judged.refuse(end.machine, end.event)
            self.failures.open(job.id).add(end.machine)
            self._keeper.give_up_lent_out(job.id)
        self._ended()

    def _tidy(self) -> None:
        """Take back what was put back into the queue half done, and stopped there."""
        for job in [each for each in self._handed if not self._is_live(each)]:
            self._handed.pop(job).drop()
        self._named = {job: names for job, names in self._named.items() if self._is_live(job)}
        self.failures.tidy(self._is_live)

    def _is_live(self, job: str) -> bool:
        known = self._keeper.journal.find(job)
        return known is not None and known.state in ("queued", "running")

    def _take_back(self, job: str) -> None:
        if (away := self._away.pop(job, None)) is not None:
            self._hub.stop(away.task)
            self._keeper.give_up_lent_out(job)

    def _is_idle_here(self) -> bool:
        """Tell whether the engine here has nothing to do, nor soon will have."""
        idle = not self._keeper.state.job and self._keeper.state.ready
        return idle and all(self.room.waits(job) for job in self._keeper.journal.list_waiting())
