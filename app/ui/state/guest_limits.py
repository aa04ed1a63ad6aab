"""What a guest may ask for: limits set by the owner, checked where every job is queued."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from app.base.regular_file import is_inside
from app.base.sentence import Sentence, Value, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.journal import HOUR_S
from app.engine.jobs.owners import Allowance, household_of, is_guest
from app.engine.jobs.request import KindName, Request
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import kind_of
from app.engine.models import catalog
from app.engine.models.on_disk import find_best, find_limits, locate
from app.engine.speech.text import voices
from app.ui.state.person import Person

SAVED: Final = "visitors"
"""The owner's settings keep the guests' limits under this key, as files have it."""
QUEUE_MOST: Final = 64
"""With more waiting jobs of all guests than this, even a guest who has none must come back later."""
ONE_HOUSEHOLD: Final = 0.5
"""One household may use no more than this share of the guests' time."""
NOT_MADE: Final = say_to_all("guest.failed", "This could not be made. Try something smaller, or tell the owner of this machine.")
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "letters": (50, 20_000), "side": (64, 4096), "steps": (1, 200), "batch": (1, 8), "waiting": (1, 20), "waiting_all": (1, 50), "share": (0.05, 1.0),
}  # fmt: skip


def read_allowance(saved: Mapping[str, Any]) -> Allowance:
    """Read the limits from settings; a value missing or out of range gets its default."""
    fitting: dict[str, Any] = {}
    for name, (low, high) in RANGES.items():
        value = saved.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high:
            fitting[name] = value if name == "share" else int(value)
    return Allowance(**fitting)


def grant_request(request: Request, person: Person, keeper: Keeper, limits: Allowance, owners: Mapping[str, str]) -> Request:
    """Return the request as it may run, with the owner's model; raise Trouble where it asks for too much."""
    model = model_for(request.kind, keeper, owners)
    request = kind_of(request).grant(request, limits, catalog.find(model))
    ready = {*map(str, find_limits(keeper.home, model).brought.values()), *(each.path for each in request.prompts if voices.is_ready(each))}
    if not all(file in ready or is_inside(Path(file), keeper.home.scratch / "uploads") for file in request.files):
        raise Trouble(say_to_all("guest.files", "You can only use files that you uploaded yourself."))
    check_turn(person, keeper, limits)
    return dataclasses.replace(request, model=model)


def redact_for(person: Person, trouble: Trouble) -> Trouble:
    """Return what this person may hear of a Trouble: a guest hears what they can change, nothing of the owner's machine."""
    if person.owner:
        return trouble
    heard = redact_sentences(person, trouble.sentence, *trouble.objections)
    return type(trouble)(*heard) if trouble.sentence.for_all else type(trouble)(NOT_MADE, *heard)


def redact_sentences(person: Person, *sentences: Sentence) -> tuple[Sentence, ...]:
    """Return sentences as this person may hear them: a guest those that are for all, and within them no others, however deep."""
    if person.owner:
        return sentences
    return tuple(_redact(each) for each in sentences if each.for_all)


def _redact(sentence: Sentence) -> Sentence:
    def heard(value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(_redact(each) if isinstance(each, Sentence) else each for each in value if getattr(each, "for_all", True))
        if isinstance(value, Sentence):
            return _redact(value) if value.for_all else ""
        return value

    return dataclasses.replace(sentence, values=tuple((name, heard(value)) for name, value in sentence.values))


def check_turn(person: Person, keeper: Keeper, limits: Allowance) -> None:
    """Raise Trouble if this guest may not queue anything now. All logins of a household count as one."""
    waiting = [household_of(job.owner) for job in keeper.journal.list_waiting() if is_guest(job.owner)]
    household = household_of(person.name)
    if waiting.count(household) >= limits.waiting:
        raise Trouble(
            say_to_all(
                "guest.waiting",
                "You have {most} {most:job|jobs} in the queue already. Wait for one to finish, or stop one.",
                most=limits.waiting,
            )
        )
    if len(waiting) >= (limits.waiting_all if household in waiting else QUEUE_MOST):
        raise Trouble(say_to_all("guest.full", "The guest queue is full. Try again in a few minutes."))
    if limits.share >= 1:
        return
    used_s = keeper.journal.sum_guest_seconds(time.time() - HOUR_S)
    if used_s.total() > limits.share * HOUR_S:
        raise Trouble(say_to_all("guest.share", "Guests have used up their share of this machine's time. Try again within the hour."))
    if used_s[household] > limits.share * HOUR_S * ONE_HOUSEHOLD:
        raise Trouble(
            say_to_all(
                "guest.share-own",
                "You have used up your share of this machine's time; the rest is for other guests. Try again within the hour.",
            )
        )


def model_for(kind: KindName, keeper: Keeper, owners: Mapping[str, str]) -> str:
    """Return the loaded model if it fits the job, else the owner's, else the best installed one."""
    for id_ in (keeper.state.model, owners.get(kind, "")):
        try:
            model = catalog.find(id_) if id_ else None
        except Trouble:
            continue  # It was moved or unplugged.
        if model is not None and model.kind == kind and locate(keeper.home, model) is not None:
            return id_
    return find_best(keeper.home, kind).id
