"""The disk, on the Machine tab: the view of what is large, double and long unused, and what its buttons do. For the owner alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.other_disk import word_away
from app.base.sentence import Sentence
from app.engine.keeper.disk_room import read_free_bytes
from app.engine.keeper.disk_use import Double, Use, is_ours
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.machine import DiskView, UseView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.disk_desk import DiskDesk
from app.ui.state.json_routes import act_route, owner_route
from app.ui.tabs.file_manager import reveal


class DiskAsked(Asked):
    act: Word
    name: str = ""
    place: str = ""


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/disk", send_view), act_route(desk, "/hearth/disk/{act}", ACTIONS, DiskAsked, send_view)]


def send_view(desk: Desk, request: Request) -> Response:
    return JSONResponse(disk_view(desk, language(request)), headers={"Cache-Control": "no-store"})


ACTIONS: Final[Mapping[str, Callable[[Desk, DiskAsked], None]]] = {
    "look": lambda desk, _: desk.disk.look(),
    "move": lambda desk, asked: desk.disk.move(asked.name, asked.place),
    "back": lambda desk, asked: desk.disk.bring_back(asked.name),
    "here": lambda desk, asked: desk.disk.point_to(asked.name, asked.place),
    "cancel": lambda desk, _: desk.disk.cancel(),
    "one": lambda desk, asked: desk.disk.keep_one(asked.name),
    "delete": lambda desk, asked: desk.disk.delete(asked.name),
    "where": lambda desk, asked: show(desk.disk, asked.name),
}


def show(disk: DiskDesk, name: str) -> None:
    use = next((each for each in disk.uses or () if each.name == name), None)
    if use is not None and not use.away:
        reveal(use.folder / ".")


def disk_view(desk: Desk, spoken: Language) -> DiskView:
    disk, home = desk.disk, desk.keeper.home

    def words(sentence: Sentence | None) -> str:
        return translate(sentence, spoken) if sentence is not None else ""

    moving = disk.moving
    return {
        "known": disk.uses is not None,
        "looking": disk.looking,
        "comparing": disk.comparing,
        "folder": str(home.root),
        "free": read_free_bytes(home.root),
        "uses": [use_view(disk, each, spoken) for each in disk.uses or ()],
        "doubles": [
            {
                "kept": str(each.kept),
                "paths": [str(path) for path in (each.kept, *each.others)],
                "bytes": each.bytes * len(each.others),
                "ours": can_join(desk, each),
            }
            for each in disk.doubles or ()
        ],
        "places": [str(each) for each in disk.list_places()] if disk.uses is not None else [],
        "moving": None
        if moving is None
        else {"title": translate(moving.title, spoken), "done": disk.done_bytes, "total": max(moving.bytes, 1)},
        "told": words(disk.told),
        "failed": disk.failed,
    }


def can_join(desk: Desk, double: Double) -> bool:
    """Tell whether at least two names lie where Hearth keeps models."""
    return is_ours(desk.keeper.home, double.kept) and any(is_ours(desk.keeper.home, path) for path in double.others)


def use_view(disk: DiskDesk, use: Use, spoken: Language) -> UseView:
    return {
        "name": use.name,
        "title": translate(use.title, spoken),
        "why": translate(use.why, spoken),
        "bytes": use.bytes,
        "used_s": use.used_s,
        "unused": use.unused,
        "target": str(use.target or ""),
        "away": translate(word_away(use.folder), spoken) if use.away else "",
        "movable": use.movable and use.target is None,
        "deletes": disk.can_delete(use) and not use.away,
    }
