"""Reject requests the model cannot handle, before they are queued and before anything is loaded. No torch."""

from __future__ import annotations

from dataclasses import replace

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.request import Asked, Request, SpeechRequest
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.on_disk import find_model, locate, read_voice_limits
from app.engine.speech.text import script, voices
from app.engine.speech.text.pronounce import read_letters


def reject_unfit(request: Request, model: Model, home: Home) -> None:
    """Raise Trouble if the model cannot do the request on any machine. A missing one is reported when it is loaded."""
    _reject_wrong_kind(request, model, home)
    limits = read_voice_limits(home, model) if isinstance(request, SpeechRequest) else None
    if limits is None or not isinstance(request, SpeechRequest):
        return
    if limits.letters is not None:
        read_letters(limits.letters)
    script.require_speakable(request.text, limits)
    if request.voice is not None:
        voices.parse_transcript(request.voice, limits)


def _reject_wrong_kind(request: Request, model: Model, home: Home) -> None:
    kind = request.kind
    if model.kind == kind:
        return
    others = tuple(each.id for each in catalog.CATALOG if each.kind == kind and locate(home, each) is not None)
    if kind == "picture":
        raise Trouble(
            say(
                "model.speaks",
                "{model} is a voice and cannot paint. Installed models that paint: {others}.",
                model=model.words,
                others=others,
            ),
            cure="models",
        )
    raise Trouble(
        say("model.paints", "{model} paints and cannot speak. Installed models that speak: {others}.", model=model.words, others=others),
        cure="models",
    )


def admit(request: Asked, home: Home) -> Asked:
    """Return the request as it is queued, with its model's id; raise Trouble early, before the seconds that the engine takes
    to start. An unknown model is left to the run, which reports it."""
    try:
        model = find_model(home, request)
    except Trouble:
        return request
    reject_unfit(request, model, home)
    return replace(request, model=model.id)
