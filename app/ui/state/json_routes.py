"""Routes of the page: handlers bound to a desk, each with the schema of its input, some for the owner alone; a Trouble as its JSON answer."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.disk_faults import is_database_refused, is_disk_full, word_fault
from app.base.sentence import say
from app.base.trouble import NotStored, Trouble
from app.ui.page.translate import join, language
from app.ui.state.asked import Asked, read_asked
from app.ui.state.guest_limits import redact_for
from app.ui.state.person import who

REFUSED: Final = 409
"""A Trouble without a status of its own is answered with this one."""
READ_METHODS: Final = ("GET", "HEAD")
Handler = Callable[..., Any]
"""It takes what the route belongs to, the request and, if the route has a schema, what was asked; it may be a coroutine."""


def route(
    desk: Any, path: str, handler: Handler, methods: Sequence[str] = ("GET",), schema: type[Asked] | None = None, owner: bool = False
) -> Route:
    """Bind a handler that asks by itself what this person may have. A Trouble, its own or its schema's, is answered with its sentence."""

    async def answer(request: Request) -> Response:
        if owner and not who(request).owner:
            return Response(status_code=404)
        try:
            given = [desk, request, *([await read_asked(request, schema)] if schema is not None else [])]
            if inspect.iscoroutinefunction(handler):
                return await handler(*given)  # type: ignore[no-any-return]
            return await run_in_threadpool(handler, *given)
        except Trouble as trouble:
            return refuse(trouble, request)

    return Route(path, answer, methods=[*methods])


def owner_route(desk: Any, path: str, handler: Handler, methods: Sequence[str] = ("GET",), schema: type[Asked] | None = None) -> Route:
    """Bind a handler that only the owner reaches; to anybody else it is as if it were not there."""
    return route(desk, path, handler, methods, schema, owner=True)


def act_route(
    desk: Any, path: str, actions: Mapping[str, Callable[..., object]], schema: type[Asked], answer: Handler | None = None
) -> Route:
    """Bind what the owner's buttons do: `actions` by the path's last word, `{act}`, each given what the route belongs to and what was
    asked. Only as JSON, which a form of another site cannot send without asking first. The answer is `answer`'s, or empty; for an unknown
    word 404."""

    def run(desk: Any, request: Request, asked: Any) -> Response:
        action = actions.get(asked.act)
        if action is None:
            return Response(status_code=404)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return Response(status_code=415)
        action(desk, asked)
        return answer(desk, request) if answer is not None else JSONResponse({})

    return owner_route(desk, path, run, ["POST"], schema)


def answer_not_stored(request: Request, fault: Exception) -> Response:
    """Answer a request that failed because nothing could be written; any other fault is raised again."""
    if not (is_disk_full(fault) or is_database_refused(fault) or _is_write_refused(request, fault)):
        raise fault
    sentence = say(
        "disk.not-kept",
        "This could not be saved ({fault}). See that the disk has room, also within your quota, and that you may write there, then try again.",
        fault=word_fault(fault),
    )
    return refuse(NotStored(sentence), request)


def _is_write_refused(request: Request, fault: Exception) -> bool:
    """Tell whether a file or folder may not be written: a request that only reads has met one that may not be read."""
    return isinstance(fault, OSError) and (
        fault.errno == errno.EROFS or (isinstance(fault, PermissionError) and request.method not in READ_METHODS)
    )


def refuse(trouble: Trouble, request: Request) -> JSONResponse:
    """Answer with what this person may hear of a Trouble, and its cure."""
    heard = redact_for(who(request), trouble)
    words = join(language(request), heard.sentence, *heard.objections)
    return JSONResponse({"trouble": words, "cure": heard.cure}, status_code=trouble.status or REFUSED)
