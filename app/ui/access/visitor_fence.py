"""Around the visitors' window: what is not named here does not exist, and what somebody else sent or asked cannot be reached."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.ui.access.uploads import UPLOAD
from app.ui.state.person import who_in

ALLOWED: Final = re.compile(
    r"/|/config|/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json|/(assets|static|svelte)/[\w./-]+"
    r"|/hearth/(live|words|check|static/[\w.-]+|made/[\w-]+/[\w.-]+|creation/\d+|queue/[\w-]+/remove)"
    r"|/gradio_api/(startup-events|queue/(join|data)|run/predict|upload|upload_progress|cancel|reset|theme\.css|heartbeat/\w+|file=.+)"
)
"""What the page of speak and paint asks for, seen in a browser. No API docs, no monitoring, no recordings, no proxies."""
FILE: Final = "/gradio_api/file="
BODY_BYTES: Final = 2 << 20
OPEN_MOST: Final = 32
"""Requests of one person at a time; a page keeps two open and asks a few more."""
SESSIONS_MOST: Final = 10_000
SESSION_LETTERS: Final = 64


class Fence:
    def __init__(self, app: ASGIApp, mine: dict[str, set[str]]) -> None:
        """`mine`: by a person's name, the files that they sent."""
        self._app, self._mine = app, mine
        self._sessions: dict[str, str] = {}
        """Gradio's own sessions, each by whoever used it first: events of another person's cannot be heard."""
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        person = who_in(scope).name
        if self._open[person] >= OPEN_MOST:
            await Response(status_code=429)(scope, receive, send)
            return
        self._open[person] += 1
        try:
            await self._within(scope, receive, send, person)
        finally:
            self._open[person] -= 1

    async def _within(self, scope: Scope, receive: Receive, send: Send, person: str) -> None:
        path = scope["path"]
        if not ALLOWED.fullmatch(path) or ".." in path:
            await Response(status_code=404)(scope, receive, send)
            return
        asked = [parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[-1]]
        if "/heartbeat/" in path:
            asked.append(path.rpartition("/")[2])
        # Whatever its header says it is: Gradio takes more for JSON than what is called so.
        if scope["method"] != "GET" and path.rstrip("/") != UPLOAD:
            body = await whole(receive)
            try:
                given = json.loads(body or b"{}")
            except ValueError:
                given = None
            if not isinstance(given, dict) or not set(files(given)) <= self._mine.get(person, set()):
                await Response(status_code=403)(scope, receive, send)
                return
            asked.append(given.get("session_hash", ""))
            receive = replayed(body, receive)
        foreign = path.startswith(FILE) and path.removeprefix(FILE) not in self._mine.get(person, set())
        if foreign or not all(self._own(each, person) for each in asked):
            await Response(status_code=404)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _own(self, session: Any, person: str) -> bool:
        if session in ("", None):
            return True
        if not isinstance(session, str) or len(session) > SESSION_LETTERS:
            return False
        if session not in self._sessions and len(self._sessions) >= SESSIONS_MOST:
            del self._sessions[next(iter(self._sessions))]
        return self._sessions.setdefault(session, person) == person


def files(value: Any) -> Iterator[str]:
    """Every file that a body names, wherever it stands in it."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "path" and inner is not None:
                yield str(inner)
            else:
                yield from files(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from files(inner)


async def whole(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False) or len(body) > BODY_BYTES:
            return body


def replayed(body: bytes, receive: Receive) -> Receive:
    first = True

    async def again() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
