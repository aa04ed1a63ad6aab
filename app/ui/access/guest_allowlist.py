"""Serve guests only the listed paths, and only the files and Gradio sessions that are theirs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.base.bounded_json import Bounds
from app.base.sentence import say_to_all
from app.base.trouble import BadRequest
from app.engine.jobs.owners import household_of
from app.ui.access.gradio_fence import PAGE
from app.ui.access.request_guard import refusal
from app.ui.access.uploads import UPLOAD_PATH
from app.ui.state.asked import GIVEN, parse_body
from app.ui.state.person import who_in

ALLOWED: Final = re.compile(
    PAGE
    + r"|/hearth/(live|words|help|manifest|check|cast|static/[\w.-]+|made/[\w-]+/[\w.-]+|heard/[\w-]+/\d+|creation/\d+|along/\d+|queue/[\w-]+/remove"
    + r"|shelf(/\d+/(delete|restore))?)"
)
"""A guest's page requests these paths and no more: no API docs, monitoring, recordings or proxies."""
FILE_PATH: Final = "/gradio_api/file="
BODY: Final = Bounds()
OPEN_MOST: Final = 32
HOUSEHOLD_OPEN_MOST: Final = 64
"""So many requests of one login, and of all logins of one household, may be open at once; a page keeps two open and sends a few more."""
FILES_MOST: Final = 8
"""One request may name so many files; the page names three. Gradio reads each one whole before anything of Hearth's runs."""
SESSIONS_MOST: Final = 10_000
SESSION_LETTERS: Final = 64


class GuestAllowlist:
    """Middleware behind LoginRequired: 404 for other paths, 403 for other people's files, 429 beyond OPEN_MOST."""

    def __init__(self, app: ASGIApp, files_by_person: dict[str, set[str]]) -> None:
        self._app, self._files_by_person = app, files_by_person
        self._sessions: dict[str, str] = {}
        """Nobody but the person who first used a Gradio session may use it, so its events stay private."""
        self._open: Counter[str] = Counter()
        self._open_by_household: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        person = who_in(scope).name
        household = household_of(person)
        if self._open[person] >= OPEN_MOST or self._open_by_household[household] >= HOUSEHOLD_OPEN_MOST:
            await Response(status_code=429, headers={"Retry-After": "5"})(scope, receive, send)
            return
        self._open[person] += 1
        self._open_by_household[household] += 1
        try:
            await self._serve_allowed(scope, receive, send, person)
        finally:
            self._open -= Counter({person: 1})  # drops those at zero
            self._open_by_household -= Counter({household: 1})

    async def _serve_allowed(self, scope: Scope, receive: Receive, send: Send, person: str) -> None:
        path = scope["path"]
        if not ALLOWED.fullmatch(path) or ".." in path:
            await Response(status_code=404)(scope, receive, send)
            return
        sessions = [parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[-1]]
        if "/heartbeat/" in path:
            sessions.append(path.rpartition("/")[2])
        # Whatever its content type: Gradio also parses bodies as JSON that are not declared so.
        if scope["method"] != "GET" and path.rstrip("/") != UPLOAD_PATH:
            try:
                receive = await parse_body(scope, receive, BODY)
            except BadRequest as trouble:
                await refusal(scope, trouble.status, trouble.sentence)(scope, receive, send)
                return
            given = scope[GIVEN]
            named = list(named_files(given))
            if len(named) > FILES_MOST:
                many = say_to_all(
                    "guest.many-files",
                    "The request names {count} {count:file|files}; guests may send {most} at once.",
                    count=len(named),
                    most=FILES_MOST,
                )
                await refusal(scope, 400, many)(scope, receive, send)
                return
            if not set(named) <= self._files_of(person):
                await Response(status_code=403)(scope, receive, send)
                return
            sessions.append(given.get("session_hash", ""))
        foreign = path.startswith(FILE_PATH) and path.removeprefix(FILE_PATH) not in self._files_of(person)
        if foreign or not all(self._owns_session(each, person) for each in sessions):
            await Response(status_code=404)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _files_of(self, person: str) -> set[str]:
        return self._files_by_person.get(person, set())

    def _owns_session(self, session: Any, person: str) -> bool:
        if session in ("", None):
            return True
        if not isinstance(session, str) or len(session) > SESSION_LETTERS:
            return False
        if session not in self._sessions and len(self._sessions) >= SESSIONS_MOST:
            del self._sessions[next(iter(self._sessions))]
        return self._sessions.setdefault(session, person) == person


def named_files(value: Any) -> Iterator[str]:
    """Find every file path in a request body; its depth is bounded, its order is of no importance."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            for name, inner in each.items():
                if name == "path" and inner is not None:
                    yield str(inner)
                else:
                    waiting.append(inner)
        elif isinstance(each, list):
            waiting += each
