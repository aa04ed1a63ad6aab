"""Who may do what, and what no request may do: a false Host, another site's write, too much, too slowly. Knows no page and no password."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.sentence import Sentence, say
from app.ui.page.translate import language, translate
from app.ui.state.person import KEY, OWNER

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OWNER_BYTES: Final = 512 << 20
"""A LoRA is a few hundred megabytes; a gigabyte is a mistake or an attack."""
VISITOR_BYTES: Final = 32 << 20
FIRST_S: Final = 20.0
SLOWEST_BYTES_PER_S: Final = 8 << 10
"""A body gets FIRST_S, and then has to come at least this fast."""
HEADERS_S: Final = 10.0
"""So long a connection may be open without a whole request."""
HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d+)?")
ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "SAMEORIGIN",
}  # fmt: skip


class Owner:
    """On loopback, behind the Guard: whoever reaches this server sits at this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = OWNER
        await self._app(scope, receive, send)


def loopback(host: str) -> bool:
    return host in LOOPBACK


def reached_by(name: str) -> Callable[[str], bool]:
    """For a server on the network: its own names and bare addresses. A page that rebinds its name has neither."""
    own = socket.gethostname().lower()
    names = LOOPBACK | {name.lower(), own, f"{own}.local", f"{own.removesuffix('.local')}.local"}
    return lambda host: host in names or is_address(host)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class TooMuch(Exception):
    """Raised into whoever reads a body, so that the reading ends."""


class Guard:
    """The outermost. `knows` says which hosts are ours, `most_bytes` how large a body may be."""

    def __init__(self, app: ASGIApp, knows: Callable[[str], bool] = loopback, most_bytes: int = OWNER_BYTES) -> None:
        self._app, self._knows, self._most_bytes = app, knows, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refused := self._objection(scope):
            status, sentence = refused
            await answered(scope, status, sentence)(scope, receive, send)
        else:
            await self._within_limits(scope, receive, send)

    def _objection(self, scope: Scope) -> tuple[int, Sentence] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._knows(host_of(hosts[0])):
            return 421, say("guard.host", "This address is not one of Hearth's. Open it by the address that it printed when it started.")  # fmt: skip
        foreign = headers.get("sec-fetch-site") == "cross-site"
        # Reads too: Gradio lets the pages of whatever else is served on this computer read along.
        if not self._ours(headers.get("origin"), hosts[0]):
            return 403, say("guard.site", "Another website asked for this. Hearth only answers its own pages.")
        if foreign and not (scope["method"] in READS and headers.get("sec-fetch-mode") == "navigate"):
            return 403, say("guard.site", "Another website asked for this. Hearth only answers its own pages.")
        declared = headers.get("content-length", "0")
        if not declared.isascii() or not declared.isdigit():
            return 400, say("guard.length", "The length of this request is not a number.")
        if int(declared) > self._most_bytes:
            return 413, self._too_large()
        return None

    def _ours(self, origin: str | None, host: str) -> bool:
        """A program sends none. Behind a tunnel the Host may be rewritten, but then its page's own name is one we know."""
        if origin is None:
            return True
        named = urlsplit(origin).netloc.lower()
        return named == host.lower() or (
            bool(named) and host_of(named) not in LOOPBACK and self._knows(host_of(named)) and not is_address(host_of(named))
        )  # fmt: skip

    def _too_large(self) -> Sentence:
        return say("guard.large", "This is larger than Hearth takes at once ({most} MB). Send something smaller.", most=self._most_bytes >> 20)  # fmt: skip

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun_s, taken, whole, started = time.monotonic(), 0, False, False
        fault: tuple[int, Sentence] | None = None

        async def counted() -> Message:
            nonlocal taken, whole, fault
            if whole:
                return await receive()
            left_s = begun_s + FIRST_S + taken / SLOWEST_BYTES_PER_S - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left_s))
            except TimeoutError as late:
                fault = 408, say("guard.slow", "This came too slowly. Try again with a better connection.")
                raise TooMuch from late
            taken += len(message.get("body", b""))
            if taken > self._most_bytes:
                fault = 413, self._too_large()
                raise TooMuch
            whole = not message.get("more_body", False)
            return message

        async def marked(message: Message) -> None:
            nonlocal started
            if fault is not None and not started:
                return  # What the inner app makes of the broken body does not matter any more.
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers[name] = value
            await send(message)

        with contextlib.suppress(TooMuch):  # Told below.
            await self._app(scope, counted, marked)
        if fault is not None and not started:
            await answered(scope, *fault)(scope, receive, send)


def answered(scope: Scope, status: int, sentence: Sentence) -> PlainTextResponse:
    # After a 413 the connection stays, and uvicorn throws away what still comes: who sends all before it reads, as a
    # tunnel's program does, would find a closed one and never see the answer. `patient` sets that an end.
    headers = {**ALWAYS, "Connection": "close"} if status == 408 else dict(ALWAYS)
    return PlainTextResponse(translate(sentence, language(Request(scope))), status_code=status, headers=headers)


def host_of(named: str) -> str:
    """Without its port; of an IPv6 address without its brackets. "" where it is not written as a host."""
    found = HOST.fullmatch(named.strip().lower())
    return (found[1] or found[2]) if found else ""


async def patient(server: Any, headers_s: float = HEADERS_S, every_s: float = 1.0) -> None:
    """Closes connections that stay open without a whole request, for as long as uvicorn's `server` runs: it reads those itself, before any middleware."""
    since: dict[Any, tuple[Any, float]] = {}
    """By connection: the last request that it had, and since when it has waited for the next."""
    while not server.should_exit:
        now_s = time.monotonic()
        idle = {
            each: each.cycle
            for each in server.server_state.connections
            if each.cycle is None or each.cycle.response_complete
        }
        since = {
            each: since[each] if each in since and since[each][0] is cycle else (cycle, now_s)
            for each, cycle in idle.items()
        }
        for each, (_, since_s) in since.items():
            if now_s - since_s > headers_s:
                each.transport.abort()
        await asyncio.sleep(every_s)


def watch(server: Any, headers_s: float = HEADERS_S) -> None:
    """To be called from another thread once it runs."""
    asyncio.run_coroutine_threadsafe(patient(server, headers_s), server.servers[0].get_loop())
