"""Tell me when it is done: the card on the Machine tab, and the system's notification where the page has none. For the owner alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.system_notice import show_notice
from app.engine.jobs.events import Finished
from app.ui.page.translate import language, text
from app.ui.page.view_types.machine import PhoneView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import act_route, owner_route
from app.ui.state.notifying import ADDRESS_MOST, mask
from app.ui.state.person import OWNER
from app.ui.state.settings_schema import PhoneKind


class NotifyAsked(Asked):
    act: Word
    address: str = ""
    kind: PhoneKind = "ntfy"
    titles: bool = False


class LeftAsked(Asked):
    page: Word = ""


class EndAsked(Asked):
    job: Word = ""


ACTIONS: Final[dict[str, Callable[[Desk, NotifyAsked], None]]] = {
    "keep": lambda desk, asked: desk.notifying.keep(asked.address[: ADDRESS_MOST + 1], asked.kind, asked.titles),
    "forget": lambda desk, asked: desk.notifying.forget(),
    "chime": lambda desk, asked: desk.notifying.let_chime(True),
    "no-chime": lambda desk, asked: desk.notifying.let_chime(False),
    "try": lambda desk, asked: desk.notifying.try_it(),
}


def routes(desk: Desk) -> list[Route]:
    return [
        owner_route(desk, "/hearth/notify", send_card),
        owner_route(desk, "/hearth/notify/show", show_end, ["POST"], EndAsked),
        owner_route(desk, "/hearth/notify/left", note_left, ["POST"], LeftAsked),
        act_route(desk, "/hearth/notify/{act}", ACTIONS, NotifyAsked, send_card),
    ]


def send_card(desk: Desk, request: Request) -> Response:
    return JSONResponse(card_view(desk))


def card_view(desk: Desk) -> PhoneView:
    phone = desk.notifying.phone
    return {"address": mask(phone.get("address", "")), "kind": phone.get("kind", "ntfy"), "titles": bool(phone.get("titles"))}


def note_left(desk: Desk, request: Request, asked: LeftAsked) -> Response:
    desk.notifying.note_left(asked.page)
    return JSONResponse({})


def show_end(desk: Desk, request: Request, asked: EndAsked) -> Response:
    """Let the system say that a job of the owner's is done, with its picture where the system shows one."""
    if not desk.jobs.owns(asked.job, OWNER):
        return JSONResponse({})
    end = desk.keeper.get_progress(asked.job).end
    made = [Path(file) for file in end.files if file.endswith(".png")] if isinstance(end, Finished) else []
    show_notice(text("chime.done", "Done.", language(request)), made[0] if made else None)
    return JSONResponse({})
