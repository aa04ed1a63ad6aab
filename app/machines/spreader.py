"""Spread what runs and waits here over the machines that help, in pieces to several or whole to one. The engine finds the pieces in a job's folder."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Self

from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Finished, Note, Step
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request
from app.engine.jobs.seed import draw_seed, is_drawn
from app.engine.keeper.delivery import Delivery, deliver
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.machines.helping_machine import HelpingMachine, is_able, is_at_work
from app.machines.hub import Hub
from app.machines.known_models import KnownModels
from app.machines.outlook import Asking, Foresight, Outlook, estimate_shared, explain_staying, explain_unused, is_sooner, may_fit
from app.machines.room import WAITS, Room
from app.machines.shared_job import Pieces, SharedJob, Where, all_of, find_pieces

TICK_S: Final = 0.2
"""The queue is looked at so often; a machine that has ended a task waits for no tick."""
LOOKED_AT: Final = 32
"""So many jobs at the head of the queue are looked at."""
WORTH_SAYING_S: Final = 2.0
"""A job has to wait so long before it is told why; machines answer sooner."""


_log = logging.getLogger("hearth.machines")


class Spreader:
    """A thread of its own looks at the queue; ends and stops come in others."""

    def __init__(self, keeper: Keeper, hub: Hub) -> None:
        self._wake, self._closing = threading.Event(), threading.Event()
        self._asking = Asking(hub.ask, self._wake.set)
        self.models = KnownModels(keeper.home, hub, self._wake.set)
        self._keeper, self._hub, self._foresight = keeper, hub, Foresight(keeper, str)
        self._jobs: dict[str, SharedJob] = {}
        """Other machines make these, or may make them."""
        self._alone = ""
        """The engine here does this job alone."""
        self._unnamed: list[tuple[str, str]] = []
        """The running job is here with its model, where other machines have no name for that (yet)."""
        self._offered: list[tuple[str, str]] = []
        """Machines could have these waiting jobs now; each comes with its model."""
        self._room = Room(keeper, hub, self._asking, self.models)
        self._thread = threading.Thread(target=self._watch, name="spreader", daemon=True)
        keeper.leaves, keeper.stops = self._room.pass_over, self._stop

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self, goes_on: bool = False) -> None:
        """Put what is away back to its place in the queue. `goes_on`: this process ends, and the next one goes on with what other machines do."""
        self._closing.set()
        self._wake.set()
        self._thread.join()
        for at in [*self._jobs.values()]:
            if at.where != "away" or not goes_on:
                self._give_up(at)
        self._keeper.leaves, self._keeper.stops = lambda job: False, lambda job: None

    @property
    def _busy(self) -> set[str]:
        """The machines that are at something."""
        return set[str]().union(*(each.busy for each in [*self._jobs.values()]))

    def _stop(self, job: str) -> None:
        """Take back what machines have of a job at once: the engine here may be at a long step until it is no longer the running one."""
        if (at := self._jobs.get(job)) is not None:
            at.drop()

    # What the window asks; any thread may call.

    def explain_unused(self, machine: HelpingMachine) -> Sentence | None:
        """Say why an idle machine has nothing of what runs or waits here."""
        if machine.tasks or not is_at_work(machine):
            return None
        jobs = sorted([*self._jobs.values()], key=_by_place)
        own = [] if any(each.where == "here" for each in jobs) else self._unnamed
        for job, model in [*own, *((each.job.id, each.pieces.request.model) for each in jobs), *self._offered]:
            name, outlook, title = self.models.name(model), self._asking.find(job, machine.id), catalog.name_model(model)
            said = explain_unused(machine, name, title, outlook) if name else explain_staying(title) if self.models.stays(model) else None
            if said is not None:
                return said
        return None

    def estimate_left(self, job: str, step: Step) -> float | None:
        """Estimate how long a running job still takes, with what other machines make of it."""
        at = self._jobs.get(job)
        if at is None or at.where != "here":
            return step.eta_s
        said = [self._asking.find(job, each) for each in at.busy]
        return estimate_shared(step, len(at.missing), [each.seconds if each is not None else None for each in said])

    def find_room(self, request: Request) -> str:
        """Return the name of a machine that has room for a request; "" if none says so in a moment."""
        return self._room.find_name(request)

    # The queue.

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                self._look()
            except Exception:  # a full disk, a locked database, whatever it is: other machines would get nothing any more
                _log.exception("spreading")
            self._wake.wait(TICK_S)
            self._wake.clear()

    def _look(self) -> None:
        """Give more of what is given away, then what waits; where nothing waits that others can do, let idle ones make what somebody is at."""
        self._follow_queue()
        for joins in (False, True):
            machines = self._hub.list_machines()
            self._room.see(machines)
            for at in sorted([*self._jobs.values()], key=_by_place):
                if at.where == "here":
                    self._give_more(at, machines, joins)
                elif at.where == "away":
                    self._go_on(at, machines, joins)
            if self._offer(machines):
                break

    def _follow_queue(self) -> None:
        """Begin with the job that the engine runs now; leave the one that it no longer runs, and what has ended."""
        running = self._keeper.state.job
        for id_, at in [*self._jobs.items()]:
            others = (at.where == "here" or (at.where == "back" and running)) and id_ != running
            if at.delivered or others or (at.where == "back" and not self._is_live(id_)):
                self._jobs.pop(id_, None)
                at.drop()
            elif at.where == "back" and id_ == running:
                at.where = "here"
        self._unnamed = [each for each in self._unnamed if each[0] == running]
        self._hub.judged.tidy(self._is_live)
        if running and running not in (self._alone, *self._jobs):
            self._begin(running)

    def _is_live(self, job: str) -> bool:
        known = self._keeper.journal.find(job)
        return known is not None and known.state in ("queued", "running")

    def _begin(self, running: str) -> None:
        job = self._keeper.journal.find(running)
        if job is None or not is_drawn(job.request, self._keeper.folder(job.id)):
            return
        pieces = find_pieces(self._keeper.home, job.request, self._keeper.folder(job.id))
        if pieces is None or self._hub.judged.failed_at(running):
            self._alone = running
        elif name := self.models.name(pieces.request.model):
            self._jobs[running] = self._open(job, pieces, name, "here", set())
        else:
            self._unnamed = [(job.id, pieces.request.model)]

    def _open(self, job: Job, pieces: Pieces, name: str, where: Where, unable: set[str]) -> SharedJob:
        here, given = self._foresee(pieces.ask_for(pieces.places[0])), (self._keeper, self._hub, self._asking, job)
        return SharedJob(*given, pieces=pieces, model=name, here=here, ended=self._wake.set, unable=unable, where=where)

    def _foresee(self, request: Request) -> Outlook:
        """Return what this machine says of a request."""
        try:
            return self._foresight.foresee(request)
        except (Trouble, OSError):  # the engine says so, if it comes to that
            return Outlook("no")

    def _give_more(self, at: SharedJob, machines: Sequence[HelpingMachine], joins: bool) -> None:
        self.models.want([each for each in machines if is_at_work(each)], at.pieces.request.model)
        at.give_away([each for each in machines if is_able(each, at.model)], self._busy - at.busy, here=True, joins=joins)

    def _go_on(self, at: SharedJob, machines: Sequence[HelpingMachine], joins: bool) -> None:
        """Give more of a job away; end it, or put it back into the queue where no machine can go on with it or the engine here is to."""
        job, whole, judged = at.job, at.pieces.whole, self._hub.judged
        able = [each for each in machines if is_able(each, at.model) and each.id not in at.unable and (not whole or each.id in at.busy)]
        if not at.missing:
            self._end(at)
        elif (at.failed and not at.busy) or not any(each.id in at.busy or may_fit(self._asking.find(job.id, each.id)) for each in able):
            judged.note_lost(job.id, at.busy, machines)
            if at.faults:
                judged.keep_here(job.id)
            self._give_up(at)
        elif self._is_idle_here(machines) and (self._is_sooner_here(at, able[0].id) if whole else not self._room.is_too_large(job)):
            if whole:
                self._give_up(at)
            else:
                at.where = "back"
                self._keeper.give_up_lent_out(job.id)
        else:
            at.give_away(able, self._busy - at.busy, here=False, joins=joins and not whole)
            self._say_where(at, able)

    def _is_sooner_here(self, at: SharedJob, machine: str) -> bool:
        return is_sooner(at.here, self._asking.find(at.job.id, machine), time.monotonic() - at.since_s)

    def _is_idle_here(self, machines: Sequence[HelpingMachine]) -> bool:
        """Tell whether the engine here has nothing to do, nor soon will have."""
        idle = not self._keeper.state.job and self._keeper.state.ready
        return idle and all(self._room.waits(job, machines) for job in self._keeper.journal.list_waiting())

    def _offer(self, machines: Sequence[HelpingMachine]) -> bool:
        """Give waiting jobs away, in their order; tell whether one waits that another machine could do."""
        self._offered = offered = list[tuple[str, str]]()
        wanted, engine_idle, awaited = False, not self._keeper.state.job, set[str]()
        for job in self._keeper.journal.list_waiting()[:LOOKED_AT]:
            too_large, model = self._room.waits(job, machines), job.request.model
            if job.request.stays_here or (not too_large and (engine_idle or self._hub.judged.failed_at(job.id))):
                continue  # the engine here takes it
            name, unable = self.models.name(model), self._hub.judged.unable.get(job.id, ())
            offered.append((job.id, model))
            self.models.want([each for each in machines if is_at_work(each)], model)
            if name and (able := [each for each in machines if is_able(each, name) and each.id not in unable]):
                wanted, busy = True, self._busy | awaited
                chosen = self._asking.choose(job.id, job.request.one_piece().with_model(name), able)
                if idle := [each for each in chosen if not each.tasks and each.id not in busy]:
                    self._send(job, model, idle, too_large)
                awaited |= {each.id for each in able if each not in chosen and self._asking.find(job.id, each.id) is None}
            at = self._jobs.get(job.id)
            if too_large and (at is None or not at.busy) and time.time() - job.created_s > WORTH_SAYING_S:
                self._keeper.tell_waiting(job.id, WAITS)
        return wanted

    def _send(self, job: Job, model: str, idle: Sequence[HelpingMachine], too_large: bool) -> None:
        """Give a job to all of these machines if its pieces can be made apart, else to the first. `too_large`: for this computer, which is said
        beside it."""
        folder = self._keeper.folder(job.id)
        request = replace(job.request, model=model, seed=draw_seed(job.request, folder))
        pieces = find_pieces(self._keeper.home, request, folder)
        if pieces is None or not pieces.complete:
            pieces = all_of(self._keeper.home, request, folder)
        at = self._open(job, pieces, self.models.name(model), "away", self._hub.judged.unable[job.id])

        def stop() -> None:
            self._jobs.pop(job.id, None)
            at.drop()

        if (before := self._jobs.pop(job.id, None)) is not None:  # it came back half done, and now the engine here has no room for it
            before.drop()
        self._jobs[job.id] = at
        if self._keeper.lend_out(job.id, model, stop) is None:
            stop()
            return
        at.give_away(idle[:1] if pieces.whole else idle, (), here=False, joins=False)
        if too_large:
            at.named = []
            self._say_where(at, idle)

    def _say_where(self, at: SharedJob, machines: Sequence[HelpingMachine]) -> None:
        """Say which machines make, or made, what is too large for this computer, when one more does."""
        if at.named is not None and (new := [each.name for each in machines if each.id in at.busy and each.name not in at.named]):
            at.named += new
            said = say("large.elsewhere", "Too large for this computer; runs on {names}.", names=tuple(at.named))
            self._keeper.tell_lent_out(at.job.id, Note(said))

    def _end(self, at: SharedJob) -> None:
        """Join the pieces, which are all there. A whole job was ended by what it came with."""
        job = at.job
        if self._jobs.pop(job.id, None) is None or at.delivered:
            return
        at.drop()
        try:
            delivery = deliver(self._keeper.home, job.request, self._keeper.folder(job.id))
        except OSError:  # the disk is full, for which the queue knows how to wait
            delivery = Delivery()
        if not delivery.whole:
            self._keeper.give_up_lent_out(job.id)
            return
        elapsed_s = time.monotonic() - at.since_s
        self._keeper.end_lent_out(job.id, Finished(delivery.files, elapsed_s, 0.0, "", 0, delivery.seconds), {}, "")

    def _give_up(self, at: SharedJob) -> None:
        """Put a job back to its place in the queue, if it is away; the pieces that are there stay."""
        if self._jobs.pop(at.job.id, None) is not None:
            at.drop()
            if at.where == "away":
                self._keeper.give_up_lent_out(at.job.id)


def _by_place(at: SharedJob) -> bool:
    """The running job comes first."""
    return at.where != "here"
