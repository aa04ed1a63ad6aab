"""Routes of the page: handlers bound to a desk, some for the owner alone; a Trouble as its JSON answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sentence import Trouble
from app.ui.page.translate import language, translate
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.state.guest_limits import redact_for

Handler = Callable[[Desk, Request], Response | Awaitable[Response]]


def route(desk: Desk, path: str, handler: Handler, methods: Sequence[str] = ("GET",)) -> Route:
    """Bind a handler that asks by itself what this person may have."""
    return Route(path, partial(handler, desk), methods=[*methods])


def owner_route(desk: Desk, path: str, handler: Handler, methods: Sequence[str] = ("GET",)) -> Route:
    """Bind a handler that only the owner reaches; to anybody else it is as if it were not there."""

    async def guarded(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        answer = (
            handler(desk, request)
            if inspect.iscoroutinefunction(handler)
            else await run_in_threadpool(handler, desk, request)
        )
        return await answer if isinstance(answer, Awaitable) else answer

    return Route(path, guarded, methods=[*methods])


def refuse(trouble: Trouble, request: Request, status: int = 409) -> JSONResponse:
    """Answer with what this person may hear of a Trouble, and its cure."""
    heard = redact_for(who(request), trouble)
    words = " ".join(translate(each, language(request)) for each in (heard.sentence, *heard.objections))
    return JSONResponse({"trouble": words, "cure": heard.cure}, status_code=status)
