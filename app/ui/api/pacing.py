"""Work on few calls of programs at once until their jobs are queued, so that a burst of them leaves the page its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from app.ui.state.asked import replay

PACED: Final = ("/v1/audio/speech", "/v1/images/", "/sdapi/v1/txt2img", "/sdapi/v1/img2img", "/gradio_api/queue/join", "/gradio_api/call/")
"""The paths of what queues a job begin so. What is to be heard queues none, and may be too large to hold."""
AT_ONCE: Final = 4
"""So many calls are worked on at once: each takes the server about 5 ms, for which the page waits."""
_release: ContextVar[Callable[[], None] | None] = ContextVar("release", default=None)


def leave() -> None:
    """Let the next call in: this one's job is queued, and now it only waits."""
    if (release := _release.get()) is not None:
        release()


class Pacing:
    """Middleware behind the guards. A call takes its turn once its body is there, so that a slow one holds up nobody."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._places = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(PACED):
            await self._app(scope, receive, send)
            return
        body = [await receive()]
        while body[-1].get("more_body", False):
            body.append(await receive())
        left = False

        def release() -> None:
            nonlocal left
            if not left:
                left = True
                self._places.release()

        await self._places.acquire()
        _release.set(release)
        try:
            await self._app(scope, replay(body, receive), send)
        finally:
            release()
