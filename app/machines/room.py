"""Which jobs are too large for this computer, and whether another machine has room for them."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.journal import Job
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import Request, to_json
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.engine.models.forecast import make_forecast
from app.engine.models.on_disk import resolve
from app.machines.helping_machine import HelpingMachine, is_able, is_at_work
from app.machines.hub import Hub
from app.machines.known_models import KnownModels
from app.machines.outlook import PATIENCE_S, Asking, Outlook
from app.machines.tasks.portable_models import has_model, has_other_revision

MAY_COME_S: Final = 60.0
"""A job waits so long for a machine that does not say, now, whether it has room: it is away, paused, or about to answer."""
AGAIN_S: Final = 5.0
"""After so long a job's memory is forecast anew, as other programs take and free some."""
FORECASTS_MOST: Final = 512
JOBS_MOST: Final = 10_000
"""Never do so many wait at once."""
WAITS: Final = say("large.waits", "Too large for this computer; waits for another one that has room.")
IN_VAIN: Final = say("large.in-vain", "Too large for this computer, and none of your other computers can do it now; it is tried here.")
_TICK_S: Final = 0.05

Answer = Literal["yes", "comes", "perhaps", "no"]
"""A machine says this of a job; "comes" means that it fetches the model."""
_BEST_FIRST: Final[tuple[Answer, ...]] = get_args(Answer)


class Room:
    """Any thread may call."""

    def __init__(self, keeper: Keeper, hub: Hub, asking: Asking, models: KnownModels) -> None:
        self._keeper, self._hub, self._asking, self._models = keeper, hub, asking, models
        self._lock = threading.Lock()
        self._forecasts: dict[tuple[Request, Choice, bool], tuple[bool, float]] = {}
        """It holds whether such a request is too large here, and when that was found."""
        self._waited: dict[str, tuple[float, float | None]] = {}
        """It holds how long a job waited for machines that perhaps have room, before now, and since when it does so again."""
        self._in_vain: set[tuple[str, str]] = set()
        """A job waited for these machines until its time was over; with a model those that were there, with none those that were away."""

    def waits(self, job: Job, listed: Sequence[HelpingMachine]) -> bool:
        """Tell whether a waiting job is left to other machines: it is too large for this computer, and one that has not failed at it has
        room, or may soon say so."""
        judged = self._hub.judged
        if job.request.stays_here or judged.is_kept_here(job.id):
            return False
        machines = [each for each in listed if each.id not in judged.unable.get(job.id, ())]
        if not machines or not self.is_too_large(job):
            return False
        answers, now_s = self._find(job.request, machines), time.monotonic()
        with self._lock:
            found = min((each for each, _ in answers), key=_BEST_FIRST.index)
            waited_s, since_s = self._waited.pop(job.id, (0.0, None))
            if found == "comes":
                self._waited[job.id] = waited_s + (now_s - since_s if since_s is not None else 0.0), None
            if found != "perhaps":
                return found != "no"
            since_s = now_s if since_s is None else since_s
            self._waited[job.id] = waited_s, since_s
            while len(self._waited) > JOBS_MOST:
                del self._waited[next(iter(self._waited))]
            over = waited_s + now_s - since_s >= MAY_COME_S
            if over:
                self._in_vain |= {awaited for answer, awaited in answers if answer == "perhaps"}
            return not over

    def pass_over(self, job: Job) -> bool:
        """Tell the engine whether it leaves a job to others. Where it takes one that is too large, as nobody else can do it, say so."""
        if job.request.stays_here:
            return False
        listed = self._hub.list_machines()
        waits = self.waits(job, listed)
        if not waits and listed and self.is_too_large(job):
            self._keeper.tell_waiting(job.id, IN_VAIN)
        return waits

    def see(self, machines: Sequence[HelpingMachine]) -> None:
        """Note which machines are there: who was waited for in vain may be waited for again."""
        with self._lock:
            self._in_vain -= {(each.id, "") for each in machines if is_at_work(each)}

    def is_too_large(self, job: Job) -> bool:
        """Tell whether this computer has too little memory for a job now, by its forecast."""
        key, now_s = (job.request.what_weighs(), job.choice, job.owner == OWNER), time.monotonic()
        with self._lock:
            known = self._forecasts.get(key)
        if known is None or now_s - known[1] > AGAIN_S:
            known = self._forecast(job), now_s
            with self._lock:
                self._forecasts[key] = known
                while len(self._forecasts) > FORECASTS_MOST:
                    del self._forecasts[next(iter(self._forecasts))]
        return known[0]

    def find_name(self, request: Request) -> str:
        """Return the name of a machine that has room for a request, waiting a moment for their answers; "" if none says so."""
        request = resolve(self._keeper.home, request)
        name, limit_s = self._models.name(request.model), time.monotonic() + PATIENCE_S
        while name and (machines := [each for each in self._hub.list_machines() if is_able(each, name)]):
            outlooks = self._ask(request, name, machines)
            said = [(each.name, outlooks[each.id]) for each in machines]
            roomy = [machine for machine, outlook in said if outlook is not None and outlook.fit != "no"]
            if roomy or None not in outlooks.values() or time.monotonic() > limit_s:
                return next(iter(roomy), "")
            time.sleep(_TICK_S)
        return ""

    def _find(self, request: Request, machines: Sequence[HelpingMachine]) -> list[tuple[Answer, tuple[str, str]]]:
        """Return what each machine says of a request, with what of it is waited for; and have those fetch its model that may."""
        model = request.model
        name = self._models.name(model)
        if not name and self._models.is_naming(model):  # by the hash of its files, which may take minutes
            return [("comes", ("", ""))]
        name = name or self._models.name(model)  # it has one by now, or gets none
        if not name:
            return [("no", ("", ""))]
        self._models.want([each for each in machines if is_at_work(each)], model)
        outlooks, found = self._ask(request, name, machines), list[tuple[Answer, tuple[str, str]]]()
        for each in machines:
            answer, awaited = judge(each, name, outlooks[each.id]), (each.id, name if is_at_work(each) else "")
            with self._lock:
                if is_able(each, name) and answer != "perhaps":
                    self._in_vain.discard(awaited)
                found.append(("no" if answer == "perhaps" and awaited in self._in_vain else answer, awaited))
        return found

    def _ask(self, request: Request, name: str, machines: Sequence[HelpingMachine]) -> dict[str, Outlook | None]:
        """Return what machines have said of a request by now, and ask them, now and then, for all requests alike at once: a grid has many,
        and those far behind in the queue are not asked about one by one."""
        asked = replace(request.what_weighs(), model=name)
        question = f"room-{hashlib.sha256(json.dumps(to_json(asked)).encode()).hexdigest()[:16]}"
        self._asking.choose(question, asked, [each for each in machines if is_able(each, name)])
        return {each.id: self._asking.find(question, each.id) for each in machines}

    def _forecast(self, job: Job) -> bool:
        setup = self._keeper.read_setup(job.choice, yields=job.owner != OWNER)
        if setup is None:
            return False
        try:
            return make_forecast(setup, job.request, catalog.find(job.request.model)).fit == "no"
        except (Trouble, OSError):  # the engine says so
            return False


def judge(machine: HelpingMachine, model: str, outlook: Outlook | None) -> Answer:
    """Tell whether a machine has room for a job, by what it said of it. `model`: by its name for other machines. Pure."""
    if machine.resting or machine.left or machine.refused is not None:
        return "no"
    if not is_at_work(machine):
        return "perhaps"
    if has_model(machine.models, model):
        return "perhaps" if outlook is None else "no" if outlook.fit == "no" else "yes"
    if machine.fetching == model:
        return "comes"
    return "perhaps" if machine.fetches and not has_other_revision(machine.models, model) else "no"
