"""Which pictures of a batch go to which machine. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from app.engine.jobs.request import SEED_LIMIT, PictureRequest


def choose_pictures(total: int, there: Collection[int], away: Iterable[int], idle: int, joins: bool = True) -> list[int]:
    """Choose what the idle machines paint next. First what nobody paints, from the back, as this machine paints from the front; then,
    at the end of the batch, what fewest are at already: nobody waits for a slow machine, and how fast each is need not be known.
    `away`: what other machines paint. `joins`: False leaves out what somebody is at, for machines that have other work."""
    missing, painted_by = [place for place in range(total) if place not in there], Counter(away)
    painted_by.update(missing[:1])  # this machine is at it
    missing = [place for place in missing if joins or not painted_by[place]]
    return sorted(missing, key=lambda place: (painted_by[place], -place))[: max(0, idle)]


def one_picture(request: PictureRequest, place: int, seed: int, model: str) -> PictureRequest:
    """Return the request for one picture of a batch: the same seed and model as if this machine painted it."""
    return replace(request, batch=1, seed=(seed + place) % SEED_LIMIT, model=model)
