"""Models that other programs keep on this computer: looked for once the owner asks, told apart by their headers, used from where they lie."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.engine.models.found import Found, Kept
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.machine import FoundFileView, FoundView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route

SHOWN_MOST: Final = 60
"""So many files are listed at once; the words of a search find the others."""
ALL_MOST: Final = 100
"""One press lists so many models of a program: each is a card, and is looked at whenever they are shown."""


class FoundAsked(Asked):
    root: str = ""
    words: Word = ""


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/found", show_found, schema=FoundAsked)]


def show_found(desk: Desk, request: Request, asked: FoundAsked) -> Response:
    return JSONResponse(found_view(desk, asked, language(request)))


def look(desk: Desk) -> None:
    """Look for other programs' models, now and at each start from now on."""
    desk.settings.put({"finds": True})
    desk.models.finder.look()


def use_all(desk: Desk, root: str) -> None:
    """List all models of a program that Hearth can use."""
    paths = [path for kept in desk.models.finder.kept if str(kept.root) == root for path in _list_usable(desk, kept)]
    desk.settings.change("models", [], lambda saved: [*dict.fromkeys([*saved, *paths])])


def _list_usable(desk: Desk, kept: Kept) -> list[str]:
    """List what Hearth can use, once where the same file lies there twice."""
    finder = desk.models.finder
    usable = (file for file in kept.search() if file in finder.told and finder.word(file)[1] is None)
    return [str(file.path) for file in usable if file.path not in finder.doubles][:ALL_MOST]


def found_view(desk: Desk, asked: FoundAsked, spoken: Language) -> FoundView:
    finder, allowed = desk.models.finder, desk.settings.get("finds", False)
    if allowed and not finder.looked:
        finder.look()
    kept = next((each for each in finder.kept if str(each.root) == asked.root), None)
    wanted = [] if kept is None else kept.search(asked.words)
    own = set(desk.settings.get("models", []))
    return {
        "allowed": allowed,
        "looked": finder.looked,
        "reading": finder.reading,
        "tools": [{"root": str(each.root), "words": translate(each.words, spoken), "models": each.count("model")} for each in finder.kept],
        "files": [_file_view(desk, each, own, spoken) for each in wanted[:SHOWN_MOST]],
        "left": 0 if kept is None else len([path for path in _list_usable(desk, kept) if path not in own]),
        "more": max(0, len(wanted) - SHOWN_MOST),
    }


def _file_view(desk: Desk, file: Found, own: set[str], spoken: Language) -> FoundFileView:
    finder = desk.models.finder
    facts, trouble = finder.word(file)
    return {
        "path": str(file.path),
        "title": file.title,
        "bytes": file.bytes,
        "facts": translate(facts, spoken),
        "trouble": translate(trouble, spoken) if trouble is not None else "",
        "usable": trouble is None and file in finder.told,
        "here": str(file.path) in own,
    }
