"""The welcome of the first start: this machine, what fits it, a first sound or picture. Shown until it is dismissed."""

from __future__ import annotations

from typing import Final

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.engine.models.catalog import BY_ID, OFFERED
from app.engine.models.quick_voice import find_quickest, measure_weights_per_s
from app.ui.page.translate import language, translate
from app.ui.page.view_types import GreetingView
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
    quick, realtime = find_quickest(measure_weights_per_s())
    offered = tuple(dict.fromkeys((quick, *OFFERED.values())))
    models = [model_view(desk, BY_ID[each], spoken) for each in (*STARTERS, *offered)]
    pace = {quick: translate(word_pace(realtime), spoken)}
    return JSONResponse(
        GreetingView(
            greeted=bool(desk.settings.get("greeted")),
            machine=machine_view.describe_machine(hardware, spoken) if hardware else "",
            models=[{**each, "seconds": each["download"] / LINE_BYTES_PER_S, "pace": pace.get(each["id"], "")} for each in models],
            offered=offered,
        )
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
