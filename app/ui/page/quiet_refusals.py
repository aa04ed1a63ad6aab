"""Send the status of a refusal to the page's scripts in a header: as a status the browser would write it to its console as an error."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.ui.page.protocol import PAGE_HEADER, REFUSALS, REFUSED_HEADER


class QuietRefusals:
    """The outermost middleware: other layers refuse, too. Whoever does not say that it is the page gets the status as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_quietly(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in REFUSALS:
                refused = (REFUSED_HEADER.lower().encode(), str(message["status"]).encode())
                message = {**message, "status": 200, "headers": [*message["headers"], refused]}
            await send(message)

        asked_by_page = scope["type"] == "http" and PAGE_HEADER in Headers(scope=scope)
        await self._app(scope, receive, send_quietly if asked_by_page else send)
