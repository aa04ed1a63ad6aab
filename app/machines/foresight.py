"""A machine's own forecast for a request, mostly another machine's: its plan, its memory, its speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.base.trouble import Trouble
from app.engine.jobs.events import Event, Finished
from app.engine.jobs.request import Request
from app.engine.jobs.shelf import Search
from app.engine.keeper.keeper import Keeper
from app.engine.kinds import kind_of
from app.engine.models import catalog
from app.engine.models.chosen import read_choice
from app.engine.models.forecast import list_alike, make_forecast
from app.machines.outlook import Outlook
from app.machines.tasks import portable


class Foresight:
    """It learns from what is made for the other machine, as the shelf here does not hold it."""

    def __init__(self, keeper: Keeper, find_model: Callable[[str], str]) -> None:
        """`find_model`: what a model that the main machine names in a question is called here."""
        self._keeper, self._find_model = keeper, find_model
        self._paces: dict[str, float] = {}
        """Work done in a second, by model; in steps times pixels, or in frames."""

    def note(self, request: Request, event: Event) -> None:
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
