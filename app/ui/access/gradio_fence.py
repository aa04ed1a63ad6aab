"""Fence Gradio's own routes: only those in use, JSON within bounds, and an answer of 4xx with a sentence where Gradio stumbles over a request."""

from __future__ import annotations

import logging
import re
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base.bounded_json import Bounds
from app.base.sentence import say
from app.base.trouble import BadRequest
from app.ui.access.request_guard import refusal
from app.ui.access.uploads import UPLOAD_PATH
from app.ui.state.asked import parse_body

OURS: Final = re.compile(r"/(hearth|v1|sdapi)/.*")
"""Hearth's own routes read their input through their own schemas (app/ui/state/asked.py)."""
PAGE: Final = (
    r"/|/config/?|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json|/(assets|static|svelte)/[\w./-]+"
    r"|/gradio_api/(startup-events|queue/(join|data)|run/predict|upload|upload_progress|cancel|reset/?|theme\.css|heartbeat/[\w-]+|file=.+)"
)
"""The Speak and Paint page asks this of Gradio, as recorded in a browser; guests reach no more of it."""
IN_USE: Final = re.compile(
    PAGE + r"|/pwa_icon(/\w+)?|/login_check/?"
    r"|/gradio_api/(queue/status|(run|api)/[\w-]+/?|call/(v2/)?[\w-]+(/\w+)?/?|info/?|app_id/?|user/?|token/?|login_check/?|mcp(/.*)?)"
)
"""Gradio's clients and assistants ask for this too; the rest of Gradio (proxies, recordings, its own assistant) is not reachable."""
BODY: Final = Bounds(most_bytes=8 << 20)
"""A request to Gradio carries the fields of a tab, within these bounds. Files go to /upload."""
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
            await refusal(scope, 404, say("fence.none", "There is nothing at this address. Check it, or open Hearth's page."))(
                scope, receive, send
            )
            return
        if scope["method"] not in ("GET", "HEAD") and scope["path"].rstrip("/") != UPLOAD_PATH:
            try:
                receive = await parse_body(scope, receive, BODY)
            except BadRequest as trouble:
                await refusal(scope, trouble.status, trouble.sentence)(scope, receive, send)
                return
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
