"""Reject requests that a model was never taught, before they are queued and before anything is loaded. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from app.engine import catalog, script, voices
from app.engine.limits import limits_of
from app.engine.model import Kind, Model
from app.engine.painting import starter
from app.engine.request import PictureRequest, Request, SpeechRequest
from app.engine.stock import Located, best, located
from app.paths import Home
from app.sentence import Trouble


def _speech(request: SpeechRequest, model: Model, found: Located) -> None:
    limits = limits_of(found.folder, found.companions.get("codec"))
    script.speakable(request.text, limits)
    if request.voice is not None:
        voices.words_of(request.voice, limits)


def _picture(request: PictureRequest, model: Model, found: Located) -> None:
    if model.starter:
        starter.check(found.folder, request.prompt)


CHECKS: Final[Mapping[Kind, Callable[[Any, Model, Located], None]]] = {"speech": _speech, "picture": _picture}
"""Each raises Trouble where the model cannot do what is asked, whatever the machine. They read small files only."""


def refuse(request: Request, model: Model, home: Home) -> None:
    """A model that is not here says so as it is loaded."""
    found = located(home, model)
    if found is not None:
        CHECKS[_kind(request)](request, model, found)


def refuse_at_once(request: Request, home: Home) -> None:
    """The same before the engine starts, which takes seconds. A model that is not known here is left to the run, which says so."""
    try:
        model = catalog.find(request.model) if request.model else best(home, _kind(request))
    except Trouble:
        return
    refuse(request, model, home)


def _kind(request: Request) -> Kind:
    return "speech" if isinstance(request, SpeechRequest) else "picture"
