"""Fence Gradio's own routes: only those in use, JSON within bounds, and an answer of 4xx with a sentence where Gradio stumbles over a request."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.engine.files.bounded_json import Bounds
from app.sentence import Trouble, say
from app.ui.access.request_guard import refusal
from app.ui.access.uploads import UPLOAD_PATH
from app.ui.state.asked import parse_apart

OURS: Final = re.compile(r"/(hearth|v1|sdapi)/.*")
"""Hearth's own routes read their input through their own schemas (app/ui/state/asked.py)."""
IN_USE: Final = re.compile(
    r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json|/pwa_icon(/\w+)?|/(assets|static|svelte)/.+|/login_check/?"
    r"|/gradio_api/(startup-events|queue/(join|data|status)|(run|api)/[\w-]+/?|call/(v2/)?[\w-]+(/\w+)?/?|upload|upload_progress|cancel|reset/?"
    r"|theme\.css|heartbeat/[\w-]+|file=.+|info/?|app_id/?|user/?|token/?|login_check/?|mcp(/.*)?)"
)
"""What the page, Gradio's clients and assistants ask for; the rest of Gradio (proxies, recordings, its own assistant) is not reachable."""
BODY: Final = Bounds(most_bytes=8 << 20)
"""Of a request to Gradio: the fields of a tab. Files go to /upload."""
STUMBLED: Final = say(
    "fence.stumbled", "This request cannot be answered: one of its values has the wrong kind. Correct it, or reload the page."
)
_log = logging.getLogger("hearth.window")


class GradioFence:
    """Middleware, the innermost: 404 for routes not in use, 400 for JSON beyond its bounds, 422 where Gradio itself answers 500."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or OURS.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        if not IN_USE.fullmatch(scope["path"]):
            await refusal(scope, 404, say("fence.none", "There is nothing at this address."))(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD") and scope["path"].rstrip("/") != UPLOAD_PATH:
            body = await read_body(receive, BODY.most_bytes)
            try:
                await parse_apart(body, BODY)
            except Trouble as trouble:
                await refusal(scope, 400, trouble.sentence)(scope, receive, send)
                return
            receive = replay(body, receive)
        await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the answer on; one of 500, or an exception before any answer, is the request's fault: Gradio checks few of its values."""
        started = failed = False

        async def watch(message: Message) -> None:
            nonlocal started, failed
            if message["type"] == "http.response.start":
                started = True
                if message["status"] == 500:
                    message, failed = {**message, "status": 422}, True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as fault:
            if started:
                raise
            _log.warning("Gradio could not answer %s %s: %.200r", scope["method"], scope["path"][:200], fault)
            await refusal(scope, 422, STUMBLED)(scope, receive, send)
        if failed:
            _log.warning("Gradio answered 500 to %s %s", scope["method"], scope["path"][:200])


async def read_body(receive: Receive, most_bytes: int) -> bytes:
    """Read a body, up to one piece more than allowed."""
    body = bytearray()
    async for piece in _pieces(receive):
        body += piece
        if len(body) > most_bytes:
            break
    return bytes(body)


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive channel that yields the body already read, then the rest."""
    first = True

    async def again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
