"""Enlarge, beside a result and on the Shelf: by what, how much, and how far those are that are being enlarged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.engine.jobs.settings import ENLARGERS
from app.engine.models.enlargers import list_offered
from app.ui.page.translate import language, translate
from app.ui.page.view_types.live import EnlargingView
from app.ui.page.view_types.making import EnlargersView, EnlargerView
from app.ui.state.asked import Asked, Id, Name, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route


class EnlargeAsked(Asked):
    act: Word
    id: Id
    times: Literal[2, 4] = 2
    enlarger: Name = ""


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/enlarge", send_enlargers), owner_route(desk, "/hearth/enlarge/{act}", act, ["POST"], EnlargeAsked)]


def send_enlargers(desk: Desk, request: Request) -> Response:
    spoken = language(request)
    everywhere: list[EnlargerView] = [{"name": name, "title": translate(title, spoken)} for name, title in ENLARGERS.items()]
    own: list[EnlargerView] = [{"name": name, "title": title} for name, title in list_offered(desk.keeper.home)]
    return JSONResponse(EnlargersView(enlargers=everywhere + own))


def act(desk: Desk, request: Request, asked: EnlargeAsked) -> Response:
    action = ACTIONS.get(asked.act)
    if action is None:
        return Response(status_code=404)
    action(desk, asked)
    return JSONResponse({})


def begin(desk: Desk, asked: EnlargeAsked) -> None:
    desk.enlarging.begin(desk.keeper.shelf.get(asked.id), asked.times, asked.enlarger)


ACTIONS: Final[dict[str, Callable[[Desk, EnlargeAsked], None]]] = {
    "begin": begin,
    "stop": lambda desk, asked: desk.enlarging.stop(asked.id),
}


def enlarging_view(desk: Desk) -> list[EnlargingView]:
    """Say of each creation that is being enlarged how far it is; 0 while it waits."""
    running = tuple(desk.enlarging.tasks.items())
    return [{"id": id_, "share": desk.keeper.get_progress(task).share} for id_, task in running]
