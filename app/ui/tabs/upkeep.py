"""Upkeep, on the Machine tab: the view of newer versions and extras, and what its buttons do. For the owner alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app import __version__
from app.base.extras import EXTRAS, Extra, can_add, install_command
from app.base.sentence import Sentence, say
from app.launcher import slots
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.machine import ExtraView, UpkeepView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import act_route, owner_route
from app.ui.state.upkeep import Upkeep


class UpkeepAsked(Asked):
    act: Word
    extra: Word = ""


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/upkeep", send_view), act_route(desk, "/hearth/upkeep/{act}", ACTIONS, UpkeepAsked, send_view)]


def send_view(desk: Desk, request: Request) -> Response:
    return JSONResponse(upkeep_view(desk.upkeep, language(request)), headers={"Cache-Control": "no-store"})


ACTIONS: Final[Mapping[str, Callable[[Desk, UpkeepAsked], None]]] = {
    "may-look": lambda desk, _: desk.upkeep.let_look(True),
    "may-not-look": lambda desk, _: desk.upkeep.let_look(False),
    "look": lambda desk, _: desk.upkeep.look(),
    "update": lambda desk, _: desk.upkeep.update(),
    "assistants": lambda desk, _: desk.upkeep.let_assistants(True),
    "no-assistants": lambda desk, _: desk.upkeep.let_assistants(False),
    "add": lambda desk, asked: desk.upkeep.add(asked.extra),
    "cancel": lambda desk, _: desk.upkeep.beside.stop(),
    "restart": lambda desk, _: desk.upkeep.restart(),
    "back": lambda desk, _: desk.upkeep.go_back(),
}


def upkeep_view(upkeep: Upkeep, spoken: Language) -> UpkeepView:
    def words(sentence: Sentence | None) -> str:
        return translate(sentence, spoken) if sentence is not None else ""

    saved, newer, ready, fixed = upkeep.saved, upkeep.find_newer(), upkeep.find_ready(), upkeep.explain_fixed()
    return {
        "version": __version__,
        "fixed": words(fixed),
        "looks": saved.get("looks"),
        "place": upkeep.place,
        "looking": upkeep.looking,
        "told": words(upkeep.told),
        "newer": {"version": newer.get("version", ""), "notes": newer.get("notes", ""), "bytes": newer.get("bytes", 0)}
        if newer is not None and fixed is None
        else None,
        "work": [words(each) for each in upkeep.beside.describe()],
        "failed": upkeep.beside.find_failure(),
        "ready": words(describe_ready(ready)),
        "environment": upkeep.measure_environment() if can_add() else 0,
        "undo": bool(slots.read_way_back(upkeep.folder)) if can_add() else False,
        "back": upkeep.can_go_back(),
        "extras": [extra_view(each, spoken) for each in EXTRAS],
        "assistants": {"wanted": upkeep.wants_assistants, "address": upkeep.assistants_address, "fixed": words(upkeep.assistants_fixed)},
    }


def describe_ready(ready: Mapping[str, str]) -> Sentence | None:
    if not ready:
        return None
    if ready.get("undo"):
        return say("upkeep.ready-version", "Hearth {version} is ready and tested.", version=ready.get("version", ""))
    return say("upkeep.ready-extra", "What you added is ready and tested.")


def extra_view(extra: Extra, spoken: Language) -> ExtraView:
    return {
        "name": extra.name,
        "title": translate(extra.title, spoken),
        "why": translate(extra.why, spoken),
        "bytes": extra.bytes,
        "licence": extra.licence,
        "here": extra.is_here,
        "command": "" if can_add() else install_command(extra.name),
    }
