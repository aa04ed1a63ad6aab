"""Routes of the page: handlers bound to a desk, some for the owner alone; a Trouble as its JSON answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sentence import Trouble
from app.ui.page.translate import join, language
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import who

Given = TypeVar("Given")
"""What a handler works on: the desk, or the share."""
Handler = Callable[[Given, Request], Response | Awaitable[Response]]


def route(desk: Desk, path: str, handler: Handler[Desk], methods: Sequence[str] = ("GET",)) -> Route:
    """Bind a handler that asks by itself what this person may have."""
    return Route(path, partial(handler, desk), methods=[*methods])


def owner_route(given: Given, path: str, handler: Handler[Given], methods: Sequence[str] = ("GET",)) -> Route:
    """Bind a handler that only the owner reaches; to anybody else it is as if it were not there."""

    async def guarded(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        answer = handler(given, request) if inspect.iscoroutinefunction(handler) else await run_in_threadpool(handler, given, request)
        return await answer if isinstance(answer, Awaitable) else answer

    return Route(path, guarded, methods=[*methods])


def refuse(trouble: Trouble, request: Request, status: int = 409) -> JSONResponse:
    """Answer with what this person may hear of a Trouble, and its cure."""
    heard = redact_for(who(request), trouble)
    words = join(language(request), heard.sentence, *heard.objections)
    return JSONResponse({"trouble": words, "cure": heard.cure}, status_code=status)
