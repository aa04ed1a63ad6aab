"""Spread the running job over the machines that help, piece by piece, and what waits behind it. The engine finds the pieces in the job's folder."""

from __future__ import annotations

import logging
import threading
from typing import Final

from app.base.sentence import Sentence
from app.engine.jobs.events import Step
from app.engine.jobs.request import Request
from app.engine.jobs.seed import is_drawn
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.machines.asking import Asking
from app.machines.helping_machine import HelpingMachine, is_able, is_at_work
from app.machines.hub import Hub
from app.machines.job_lender import JobLender
from app.machines.known_models import KnownModels
from app.machines.outlook import estimate_shared, explain_staying, explain_unused
from app.machines.pieces import find_pieces
from app.machines.shared_job import SharedJob

TICK_S: Final = 0.2
"""How often the queue is looked at; a machine that has ended a task waits for no tick."""


_log = logging.getLogger("hearth.machines")


class Spreader:
    def __init__(self, keeper: Keeper, hub: Hub) -> None:
        self._wake = threading.Event()
        self._asking = Asking(hub, self._wake.set)
        self.models = KnownModels(keeper.home, hub, self._wake.set)
        self._keeper, self._hub, self._jobs = keeper, hub, JobLender(keeper, hub, self._asking, self.models, self._wake.set)
        self._running: SharedJob | None = None
        self._alone = ""
        """A job that the engine here does alone."""
        self._unnamed: list[tuple[str, str]] = []
        """The running job with its model, where other machines have no name for that (yet)."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="spreader", daemon=True)
        self._thread.start()

    def close(self, goes_on: bool = False) -> None:
        """`goes_on`: this process ends, and the next one goes on with what other machines do."""
        self._closing.set()
        self._wake.set()
        self._thread.join()
        self._drop()
        self._jobs.close(goes_on)

    def explain_unused(self, machine: HelpingMachine) -> Sentence | None:
        """Say why an idle machine has nothing of what runs or waits here. Any thread may call."""
        if machine.tasks or not is_at_work(machine):
            return None
        running = self._running
        own = [(running.job.id, running.pieces.request.model)] if running is not None else self._unnamed
        for job, model in [*own, *self._jobs.list_wanted()]:
            name, outlook, title = self.models.name(model), self._asking.find(job, machine.id), catalog.name_model(model)
            said = explain_unused(machine, name, title, outlook) if name else explain_staying(title) if self.models.stays(model) else None
            if said is not None:
                return said
        return None

    def estimate_left(self, job: str, step: Step) -> float | None:
        """Estimate how long a running job still takes, with what other machines make of it. Any thread may call."""
        running = self._running
        if running is None or running.job.id != job:
            return step.eta_s
        said = [self._asking.find(job, each) for each in running.busy]
        return estimate_shared(step, len(running.missing), [each.seconds if each is not None else None for each in said])

    def find_room(self, request: Request) -> str:
        """Return the name of a machine that has room for a request; "" if none says so in a moment. Any thread may call."""
        return self._jobs.room.find_name(request)

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                self._follow_queue()
                for joins in (False, True):
                    if self._running is not None:
                        self._give_away(self._running, joins)
                    if self._jobs.offer(joins, self._running.busy if self._running is not None else set()):
                        break
            except Exception:  # a full disk, a locked database, whatever it is: other machines would get nothing any more
                _log.exception("spreading")
            self._wake.wait(TICK_S)
            self._wake.clear()

    def _follow_queue(self) -> None:
        """Begin with the job that the engine runs now; leave the one that it no longer runs."""
        running = self._keeper.state.job
        if self._running is not None and self._running.job.id != running:
            self._drop()
        if self._unnamed and self._unnamed[0][0] != running:
            self._unnamed = []
        if self._running is None and running:
            self._running = self._jobs.hand_over(running) or self._begin(running)

    def _begin(self, running: str) -> SharedJob | None:
        job = self._keeper.journal.find(running) if running != self._alone else None
        if job is None or not is_drawn(job.request, self._keeper.folder(job.id)):
            return None
        pieces = find_pieces(self._keeper.home, job.request, self._keeper.folder(job.id))
        if pieces is None or self._jobs.failures.has_any(running):
            self._alone = running
            return None
        name = self.models.name(pieces.request.model)
        if not name:
            self._unnamed = [(job.id, pieces.request.model)]
            return None
        here = self._jobs.foresee(pieces.ask_for(pieces.places[0]))
        return SharedJob(
            self._keeper, self._hub, self._asking, job, pieces=pieces, model=name, here=here, ended=self._wake.set, unable=set()
        )

    def _give_away(self, shared: SharedJob, joins: bool) -> None:
        """`joins`: let idle machines make what somebody is at, as no job waits for them."""
        machines = self._hub.list_machines()
        self.models.want([each for each in machines if is_at_work(each)], shared.pieces.request.model)
        able = [each for each in machines if is_able(each, shared.model)]
        shared.give_away(able, self._jobs.busy, here=True, joins=joins)

    def _drop(self) -> None:
        if self._running is not None:
            self._running.drop()
            self._running = None
