"""Styles of prompts: text around what is painted, {prompt}, and what is not wanted, saved under a name; and their routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.sentence import say
from app.base.trouble import Trouble
from app.ui.page.view_types.making import StylesView, StyleView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.json_routes import owner_route
from app.ui.state.settings_schema import StyleValues

SAVED: Final = "styles"
NAME_MOST: Final = 60
TEXT_MOST: Final = 4000
STYLES_MOST: Final = 500
PLACE: Final = "{prompt}"
"""A style's text has the prompt there; without it, the text follows the prompt."""


class StyleAsked(Asked):
    act: Word
    name: Word = ""
    prompt: str = Field("", max_length=TEXT_MOST)
    negative: str = Field("", max_length=TEXT_MOST)


def routes(desk: Desk) -> list[Route]:
    return [owner_route(desk, "/hearth/styles", send), owner_route(desk, "/hearth/styles/{act}", act, ["POST"], StyleAsked)]


def send(desk: Desk, request: Request) -> Response:
    saved: dict[str, StyleValues] = desk.settings.get(SAVED, {})
    listed = [StyleView(name=name, **saved[name]) for name in sorted(saved, key=str.casefold)]
    return JSONResponse(StylesView(styles=listed))


def act(desk: Desk, request: Request, asked: StyleAsked) -> Response:
    action = ACTIONS.get(asked.act)
    if action is None:
        return Response(status_code=404)
    desk.settings.change(SAVED, {}, lambda saved: action(saved, asked))
    return JSONResponse({})


def keep(saved: dict[str, Any], asked: StyleAsked) -> dict[str, Any]:
    """Save a style, in the place of one with its name."""
    name, prompt, negative = (" ".join(each.split()) for each in (asked.name, asked.prompt, asked.negative))
    if not 0 < len(name) <= NAME_MOST:
        raise Trouble(say("style.name", "A style needs a name of up to {most} {most:character|characters}. Type one.", most=NAME_MOST))
    if prompt in ("", PLACE) and not negative:
        raise Trouble(
            say(
                "style.empty",
                "This style would change nothing. Give it a text, with {place} where the prompt goes, or what is not wanted.",
                place=PLACE,
            )
        )
    if len(saved) >= STYLES_MOST and name not in saved:
        raise Trouble(say("style.many", "There are {most} {most:style|styles} already. Remove one first.", most=STYLES_MOST))
    return {**saved, name: {"prompt": prompt or PLACE, "negative": negative}}


def remove(saved: dict[str, Any], asked: StyleAsked) -> dict[str, Any]:
    return {name: each for name, each in saved.items() if name != asked.name}


ACTIONS: Final[dict[str, Callable[[dict[str, Any], StyleAsked], dict[str, Any]]]] = {"keep": keep, "remove": remove}
