"""The welcome of the first start: this machine, what fits it, a first sound or picture. Shown until it is dismissed."""

from __future__ import annotations

from typing import Final

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.engine.models.catalog import BY_ID
from app.ui.page.translate import language
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.tabs import machine_view
from app.ui.tabs.models import LINE_BYTES_PER_S, model_view

OFFERED: Final = ("starter-voice", "starter-painter", "dia-1.6b", "sd15")


def build(desk: Desk) -> None:
    if not desk.settings.get("greeted"):
        gr.HTML('<section id="h-greeting" class="h-card"></section>', apply_default_css=False)


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/greeting", greet), owner_route(desk, "/hearth/greeting", dismiss, ["POST"])]


def greet(desk: Desk, request: Request) -> Response:
    spoken, hardware = language(request), desk.machine.find_hardware()
    models = [model_view(desk, BY_ID[each], spoken) for each in OFFERED]
    return JSONResponse(
        {
            "greeted": bool(desk.settings.get("greeted")),
            "machine": machine_view.describe_machine(hardware, spoken) if hardware else "",
            "models": [each | {"seconds": each["download"] / LINE_BYTES_PER_S} for each in models],
        }
    )


def dismiss(desk: Desk, request: Request) -> Response:
    desk.settings.put({"greeted": True})
    return JSONResponse({})
