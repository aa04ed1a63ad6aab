"""Reject requests that a model was never taught before they are queued or the model is loaded. No torch."""

from __future__ import annotations

from app.engine import catalog, script, voices
from app.engine.limits import limits_of
from app.engine.model import Kind, Model
from app.engine.painting import starter
from app.engine.request import Request, SpeechRequest
from app.engine.stock import best, located
from app.paths import Home
from app.sentence import Trouble


def refuse(request: Request, model: Model, home: Home) -> None:
    """Raises Trouble where the model cannot do it, whatever the machine. One that is not here says so as it is loaded."""
    found = located(home, model)
    if found is None:
        return
    if isinstance(request, SpeechRequest):
        limits = limits_of(found.folder, found.companions.get("codec"))
        script.speakable(request.text, limits)
        if request.voice is not None:
            voices.follows(limits)
    elif model.starter:
        starter.check(found.folder, request.prompt)


def refuse_at_once(request: Request, home: Home) -> None:
    """The same before the engine starts, which takes seconds. A model that is not known here is left to the run, which says so."""
    try:
        kind: Kind = "speech" if isinstance(request, SpeechRequest) else "picture"
        model = catalog.find(request.model) if request.model else best(home, kind)
    except Trouble:
        return
    refuse(request, model, home)
