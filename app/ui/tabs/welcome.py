"""The welcome of the first start: this machine, what fits it, a first sound or picture. Shown until it is dismissed."""

from __future__ import annotations

from typing import Final

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.duration import word_duration
from app.base.languages import ENGLISH
from app.base.sentence import Sentence, say
from app.engine.models.catalog import BY_ID, OFFERED
from app.engine.models.model import Model
from app.engine.models.quick_voice import measure_weights_per_s, rank_natural
from app.engine.speech.text.likely_language import name_language
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.machine import GreetingView, OfferedModelView
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.tabs import machine_view
from app.ui.tabs.models import LINE_BYTES_PER_S, model_view

STARTERS: Final = ("starter-voice", "starter-painter")
HEARD_LIVE: Final = 1.1
"""From so many times real time on, a voice counts as faster than one listens."""


def build(desk: Desk) -> None:
    if not desk.settings.get("greeted"):
        gr.HTML('<section id="h-greeting" class="h-card"></section>', apply_default_css=False)


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/greeting", greet), owner_route(desk, "/hearth/greeting", dismiss, ["POST"])]


def greet(desk: Desk, request: Request) -> Response:
    spoken, hardware = language(request), desk.machine.find_hardware()
    voices = choose_voices(measure_weights_per_s(), spoken)
    offered = (*voices, OFFERED["picture"])
    return JSONResponse(
        GreetingView(
            greeted=bool(desk.settings.get("greeted")),
            machine=machine_view.describe_machine(hardware, spoken) if hardware else "",
            models=[offered_view(desk, each, voices.get(each), spoken, again=each != offered[0]) for each in (*STARTERS, *offered)],
            offered=offered,
        )
    )


def choose_voices(weights_per_s: float, spoken: Language) -> dict[str, float | None]:
    """Choose the two voices to offer, with how fast they speak: the quickest of the reader's language, the quickest of all, or the usual one. For the
    usual one no pace is told: it is for those who have a card."""
    own, *_ = rank_natural(weights_per_s, spoken)
    quickest = max(rank_natural(weights_per_s), key=lambda each: each[1])
    return dict([own, quickest] if own != quickest else [own, (OFFERED["speech"], None)])


def offered_view(desk: Desk, id_: str, realtime: float | None, spoken: Language, again: bool) -> OfferedModelView:
    model = BY_ID[id_]
    view = model_view(desk, model, spoken)
    return {
        **view,
        "seconds": view["download"] / LINE_BYTES_PER_S,
        "pace": translate(word_pace(realtime), spoken) if realtime is not None else "",
        "speaks": translate(word_languages(model, spoken, again), spoken) if model.kind == "speech" and spoken != ENGLISH else "",
    }


def word_languages(model: Model, spoken: Language, again: bool = False) -> Sentence:
    """Say which languages a voice speaks, and that the reader's is none of them; that none speaks it is not said `again`."""
    named = tuple(map(name_language, model.languages))
    one_does = any(spoken in BY_ID[id_].languages for id_, _ in rank_natural(1.0))
    if spoken in model.languages or (again and not one_does):
        return say("greeting.speaks", "Speaks {languages}.", languages=named)
    if one_does:
        return say("greeting.speaks-other", "Speaks {languages}, but not {language}.", languages=named, language=name_language(spoken))
    return say(
        "greeting.speaks-none",
        "Speaks {languages}. None of the natural voices that Hearth can download speaks {language} yet.",
        languages=named,
        language=name_language(spoken),
    )


def word_pace(realtime: float) -> Sentence:
    """Say how fast a voice speaks here, as a forecast."""
    if realtime >= HEARD_LIVE:
        return say("greeting.faster", "Speaks faster than you listen on this machine, as it is forecast.")
    return say(
        "greeting.slower",
        "Needs about {time} on this machine for a minute of speech, as it is forecast.",
        time=word_duration(60 / realtime),
    )


def dismiss(desk: Desk, request: Request) -> Response:
    desk.settings.put({"greeted": True})
    return JSONResponse({})
