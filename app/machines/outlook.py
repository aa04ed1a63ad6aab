"""What machines say of a request before they get it: each by its own plan, memory and speed; asked, believed within bounds, put in order, and
worded."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import Event, Finished, Step
from app.engine.jobs.request import Request, to_json
from app.engine.jobs.shelf import Search
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import kind_of
from app.engine.models import catalog
from app.engine.models.chosen import read_choice
from app.engine.models.forecast import list_alike, make_forecast
from app.machines.helping_machine import HelpingMachine
from app.machines.tasks import portable
from app.machines.tasks.portable_models import has_model, has_other_revision

LOADING_S: Final = 20.0
"""A model that is not loaded costs about so many seconds, where nothing better is known."""
LONGEST_S: Final = 1e7
"""A task may not be said to take longer; more is no answer."""
UNKNOWN_S, WAITED_MOST_S = 3600.0, 86400.0
"""A machine is waited for so long at least where this one does not know how long it takes; and so long at most, whatever it said."""


@dataclass(frozen=True, slots=True)
class Outlook:
    fit: Literal["fits", "tight", "no"] = "fits"
    """It is judged by its own plan and its memory now."""
    loaded: bool = False
    seconds: float | None = None
    """It is judged by what it made before; None: it never used this model."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


_SCHEMA: Final = TypeAdapter(Outlook)


def read_outlook(given: object) -> Outlook | None:
    """Return what another machine answered; None if it is nothing that may be believed."""
    try:
        found = _SCHEMA.validate_python(given)
    except (ValidationError, RecursionError):
        return None
    return found if found.seconds is None or 0 <= found.seconds < LONGEST_S else None


def put_in_order(machines: Sequence[HelpingMachine], outlooks: Mapping[str, Outlook]) -> list[HelpingMachine]:
    """Return the machines that can do it, the one first that would be done first. Of one that never used the model, the speed is taken
    to be the others'."""
    known = [found.seconds for each in machines if (found := outlooks.get(each.id)) is not None and found.seconds is not None]
    usual_s = median(known) if known else 0.0

    def cost(machine: HelpingMachine) -> float:
        found = outlooks.get(machine.id, Outlook())
        return add_loading(usual_s if found.seconds is None else found.seconds, found)

    return sorted((each for each in machines if may_fit(outlooks.get(each.id))), key=cost)


def is_sooner(here: Outlook, there: Outlook | None, gone_s: float) -> bool:
    """Tell whether this machine, idle now, would be done before another one that has been at the same for so long. Of one that never used
    the model, or takes longer than it said, as much is taken to be left as is gone: so nobody is waited for longer than twice. Where this
    machine never used the model, the other one has twice the time that it named, an hour at least and a day at most."""
    if here.fit == "no":
        return False
    said_s = expect_seconds(there)
    if here.seconds is None:
        return gone_s > min(max(UNKNOWN_S, 2 * (said_s or 0.0)), WAITED_MOST_S)
    left_s = said_s - gone_s if said_s is not None else 0.0
    return add_loading(here.seconds, here) < (left_s if left_s > 0 else gone_s)


def is_endless(said_s: float | None, gone_s: float) -> bool:
    """Tell whether a machine has been at a task for so long that nobody waits for it any more, though it says that it makes steps: four
    times the time that it named, an hour at least and a day at most; a day where it named none."""
    return gone_s > (WAITED_MOST_S if said_s is None else min(max(UNKNOWN_S, 4 * said_s), WAITED_MOST_S))


def add_loading(seconds: float, found: Outlook) -> float:
    return seconds + (0.0 if found.loaded else LOADING_S)


def may_fit(found: Outlook | None) -> bool:
    return found is None or found.fit != "no"


def expect_seconds(found: Outlook | None) -> float | None:
    """Return how long a machine takes, with loading; None where it does not know, or did not say."""
    return add_loading(found.seconds, found) if found is not None and found.seconds is not None else None


def estimate_shared(step: Step, missing: int, others: Sequence[float | None]) -> float | None:
    """Estimate how long a job takes whose pieces this machine and others make. `step`: of the engine here, which knows of no others.
    `missing`: the pieces that are not there. `others`: seconds that each other machine needs for a piece; None: as long as this one."""
    begun = step.at_once * step.done / max(1, step.total) if step.unit == "steps" else 0.0
    own = step.parts - step.part - begun if step.unit == "steps" else step.parts * (1 - step.done / max(1, step.total))
    if not step.eta_s or own <= 0:
        return step.eta_s
    own_s = step.eta_s / own
    pieces_a_second = 1 / own_s + sum(1 / max(own_s if each is None else each, 1e-3) for each in others)
    return min(step.eta_s, max(0.0, missing - begun) / pieces_a_second)


def explain(outlook: Outlook | None) -> Sentence:
    """Say why a machine was given what it does."""
    if outlook is None:
        return say("outlook.unknown", "chosen as it was idle; it said nothing of its speed")
    if outlook.seconds is None:
        if outlook.loaded:
            return say("outlook.loaded", "chosen as it was idle and has the model loaded")
        return say("outlook.idle", "chosen as it was idle and the model fits its memory")
    if outlook.loaded:
        return say(
            "outlook.loaded-fast", "chosen as it was idle, has the model loaded and needs about {time}", time=word_duration(outlook.seconds)
        )
    return say("outlook.fast", "chosen as it was idle and needs about {time} once the model is loaded", time=word_duration(outlook.seconds))


def explain_unused(machine: HelpingMachine, name: str, title: str, outlook: Outlook | None) -> Sentence | None:
    """Say why a machine cannot do a job with this model; None if it can, or is about to. `name`: for other machines; `title`: for
    people."""
    if has_other_revision(machine.models, name):
        return say("unused.revision", "gets no work for {model}: it has another revision; update the model on one of the two", model=title)
    if not has_model(machine.models, name):
        return None if machine.fetches else say("unused.lacks", "gets no work for {model}: it does not have the model", model=title)
    if outlook is not None and outlook.fit == "no":
        return say("unused.memory", "gets no work for {model}: the model does not fit its memory", model=title)
    return None


def explain_staying(title: str) -> Sentence:
    """Say why no other machine can do a job with this model."""
    return say(
        "unused.stays",
        "gets no work for {model}: it has files that are not sent to other computers, as a tokenizer that is only a .model file",
        model=title,
    )


PATIENCE_S: Final = 1.0
"""A machine's first answer is waited for so long; then the machine is taken as it is."""
AGAIN_S: Final = 15.0
"""After so long a machine is asked again: its memory, and what it has loaded, change."""
KEPT_MOST: Final = 1024
"""So many requests are kept: those of the head of the queue, and each size of those that are too large for this computer."""


@dataclass(slots=True)
class _Asked:
    first_s: float
    latest_s: float
    outlook: Outlook | None = None


class Asking:
    """Any thread may call; answers come in the hub's."""

    def __init__(self, ask: Callable[..., None], answered: Callable[[], None]) -> None:
        """`ask`: the hub's. `answered` is called after each answer."""
        self._ask, self._answered = ask, answered
        self._about: dict[str, dict[str, _Asked]] = {}
        """Each is found by its job, then by its machine."""
        self._lock = threading.Lock()

    def choose(self, job: str, request: Request, machines: Sequence[HelpingMachine]) -> list[HelpingMachine]:
        """Return those that can do a job's request, the best first, without those whose answer is on its way. Its model has the name that
        other machines know. `job` names the question; it may be about none that waits."""
        now_s = time.monotonic()
        with self._lock:
            about = self._about.setdefault(job, {})
            while len(self._about) > KEPT_MOST:
                del self._about[next(iter(self._about))]
            due = [each.id for each in machines if (known := about.get(each.id)) is None or now_s - known.latest_s > AGAIN_S]
            for machine in due:
                known = about.setdefault(machine, _Asked(now_s, now_s))
                known.latest_s = now_s
            ready = [each for each in machines if about[each.id].outlook is not None or now_s - about[each.id].first_s > PATIENCE_S]
            outlooks = {id_: each.outlook for id_, each in about.items() if each.outlook is not None}
        if due:
            body = json.dumps({"request": to_json(request.without_files()), "files": {}})
            for machine in due:
                self._ask(machine, job, body, self._hear)
        return put_in_order(ready, outlooks)

    def find(self, job: str, machine: str) -> Outlook | None:
        """Return what a machine said of a job."""
        with self._lock:
            known = self._about.get(job, {}).get(machine)
            return known.outlook if known is not None else None

    def _hear(self, machine: str, question: str, answer: object) -> None:
        with self._lock:
            known = self._about.get(question, {}).get(machine)
            if known is not None and (outlook := read_outlook(answer)) is not None:
                known.outlook = outlook
        self._answered()


class Foresight:
    """It learns from what is made for the other machine, as the shelf here does not hold it."""

    def __init__(self, keeper: Keeper, find_model: Callable[[str], str]) -> None:
        """`find_model`: what a model that the main machine names in a question is called here."""
        self._keeper, self._find_model = keeper, find_model
        self._paces: dict[str, float] = {}
        """A model does so much work in a second: in steps times pixels, or in frames."""

    def note(self, request: Request, event: Event | None) -> None:
        """Learn from the end of a task."""
        if isinstance(event, Finished) and 0 < event.rate < math.inf:
            self._paces[request.model] = event.rate * kind_of(request).weigh_step(request, catalog.find(request.model))

    def answer(self, body: str) -> Mapping[str, Any] | None:
        """Answer the question about a request; None if it cannot be read or foreseen."""
        try:
            return asdict(self.foresee(portable.unpack(body, _refuse, self._find_model)))
        except (Trouble, ValueError, KeyError, TypeError, OSError):
            return None

    def foresee(self, request: Request) -> Outlook:
        """Foresee a request whose model has this machine's own name; raise Trouble or OSError if its model is gone."""
        home = self._keeper.home
        model, loaded = catalog.find(request.model), self._keeper.state.model == request.model
        setup = self._keeper.read_setup(read_choice(home), yields=True)
        if setup is None:
            return Outlook(loaded=loaded)
        found = make_forecast(setup, request, model)
        kind = kind_of(request)
        work = kind.measure_work(home, request)
        if request.model in self._paces:
            seconds: float | None = work * kind.weigh_step(request, model) / self._paces[request.model]
        else:
            past = self._keeper.shelf.find(Search(kind=request.kind, model=model.id, most=8))
            alike = list_alike(past, found.plan) if found.plan is not None else ()
            seconds = kind.estimate_seconds(request, model, alike, found.plan, work)
        return Outlook(found.fit, loaded, seconds)


def _refuse(sha256: str, suffix: str) -> Path:
    raise ValueError(sha256)  # a question names no file
