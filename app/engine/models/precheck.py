"""Reject requests that a model was never taught, before they are queued and before anything is loaded. No torch."""

from __future__ import annotations

from app.engine.jobs.request import Request, SpeechRequest
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.on_disk import best, located
from app.engine.text import script, voices
from app.engine.text.voice_limits import limits_of
from app.paths import Home
from app.sentence import Trouble


def refuse(request: Request, model: Model, home: Home) -> None:
    """Raise Trouble where a voice cannot speak what is asked, whatever the machine. One that is not here says so as it is loaded."""
    found = located(home, model)
    if found is None or not isinstance(request, SpeechRequest):
        return
    limits = limits_of(found.folder, found.companions.get("codec"))
    script.speakable(request.text, limits)
    if request.voice is not None:
        voices.words_of(request.voice, limits)


def refuse_at_once(request: Request, home: Home) -> None:
    """The same before the engine starts, which takes seconds. A model that is not known here is left to the run, which says so."""
    if not isinstance(request, SpeechRequest):
        return
    try:
        model = catalog.find(request.model) if request.model else best(home, "speech")
    except Trouble:
        return
    refuse(request, model, home)
