"""Refuse forged Hosts, cross-site requests, and bodies that are too large or too slow, before anything else runs."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base.sentence import Sentence, say
from app.ui.access.program_answers import API_PREFIXES, shape_error
from app.ui.page.translate import language, translate
from app.ui.state.person import KEY, OWNER

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
OWNER_BYTES: Final = 512 << 20
"""This suffices for a LoRA of a few hundred megabytes; a gigabyte is a mistake or an attack."""
GUEST_BYTES: Final = 32 << 20
GRACE_S: Final = 20.0
SLOWEST_BYTES_PER_S: Final = 8 << 10
"""After GRACE_S a body must have arrived at least this fast."""
IDLE_S: Final = 10.0
"""A connection may stay open so long without a complete request."""
LAST_ANSWERS_S: Final = 2
"""A server that ends waits so long for the answers it is sending."""
IDLE_MOST: Final = 1000
"""So many connections may wait at once; launch.py asks for four times as many open files."""
HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d+)?")
LENGTH: Final = re.compile(r"[0-9]{1,18}")
SECURITY_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "SAMEORIGIN"}
NONCE: Final = "hearth.nonce"
"""A request's scope has the word there that lets a script stand in the page that answers it."""
POLICY: Final = "; ".join((
    "default-src 'self'",
    "script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",  # Gradio makes functions of its events' scripts, Pixi of its shaders
    "style-src 'self' 'unsafe-inline'",  # Gradio sets styles on elements
    "img-src 'self' data: blob:", "media-src 'self' data: blob:", "font-src 'self' data:", "connect-src 'self' data: blob:", "worker-src 'self' blob:",
    "object-src 'none'", "base-uri 'self'", "form-action 'self'", "frame-ancestors 'self'",
))  # fmt: skip
"""This is the second line of defence: a script that somebody's words smuggled into the page is not run, and nothing is sent elsewhere."""


class OwnerOnly:
    """Middleware for loopback, behind the Guard: everyone who connects uses this machine and is the owner."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = OWNER
        await self._app(scope, receive, send)


def is_loopback(host: str) -> bool:
    return host in LOOPBACK


def recognise_hosts(name: str) -> Callable[[str], bool]:
    """Return the host check of a server on the network: its own names and bare IP addresses, which DNS rebinding has neither of."""
    own = socket.gethostname().lower()
    names = LOOPBACK | {name.lower(), own, f"{own}.local", f"{own.removesuffix('.local')}.local"}
    return lambda host: host in names or is_address(host)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class BodyRefused(Exception):
    """Raised where the inner app reads a body, to stop it."""


def _is_lent(name: bytes, value: bytes) -> bool:
    """Tell whether a browser sends this by itself for a page that does not know it: a cookie, or a password that was typed in before."""
    return name == b"cookie" or (name == b"authorization" and not value.lower().startswith(b"bearer "))


class Guard:
    """The outermost middleware that refuses. `is_own_host` accepts the server's own hosts, `most_bytes` limits a body.
    `with_key`: programs show a key for the APIs, so that those in other sites' pages may call them, too; they are lent no login.

    Starlette's TrustedHostMiddleware and RequestBodyLimitMiddleware are not enough: the share's host is known only after
    the start, a second Host header must be refused, and the answer is a sentence in the reader's language.
    """

    def __init__(
        self, app: ASGIApp, is_own_host: Callable[[str], bool] = is_loopback, most_bytes: int = OWNER_BYTES, with_key: bool = False
    ) -> None:
        self._app, self._is_own_host, self._most_bytes, self._with_key = app, is_own_host, most_bytes, with_key
        self._turn = asyncio.Lock()
        """Long bodies take turns: one piece of one of them each time round the loop, else they all take it at once, and the page waits."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif objection := self._find_objection(scope):
            status, sentence = objection
            await refusal(scope, status, sentence)(scope, receive, send)
        else:
            if self._is_from_abroad(scope):
                scope["headers"] = [(name, value) for name, value in scope["headers"] if not _is_lent(name, value)]
            await self._serve_within_limits(scope, receive, send)

    def _find_objection(self, scope: Scope) -> tuple[int, Sentence] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_own_host(parse_host(hosts[0])):
            return 421, say("guard.host", "This is not Hearth's address. Open the address that Hearth printed when it started.")
        if self._is_from_abroad(scope):
            return self._find_length(headers)
        foreign = headers.get("sec-fetch-site") == "cross-site"
        # For reads too: Gradio allows CORS to any page served on this computer.
        if not self._is_own_origin(headers.get("origin"), hosts[0]):
            return 403, say("guard.site", "This request came from another website. Open Hearth's own page instead.")
        if foreign and not (scope["method"] in READS and headers.get("sec-fetch-mode") == "navigate"):
            return 403, say("guard.site", "This request came from another website. Open Hearth's own page instead.")
        return self._find_length(headers)

    def _is_from_abroad(self, scope: Scope) -> bool:
        """Tell whether another site's page calls an API that asks everybody for a key. Gradio, outside of this, tells browsers that it may."""
        headers = Headers(scope=scope)
        if not self._with_key or not scope["path"].startswith(API_PREFIXES) or "origin" not in headers:
            return False
        return not self._is_own_origin(headers["origin"], headers.get("host", ""))

    def _find_length(self, headers: Headers) -> tuple[int, Sentence] | None:
        declared = headers.get("content-length", "0")
        if not LENGTH.fullmatch(declared):
            return 400, say("guard.length", "This request has an invalid Content-Length. Send a number.")
        if int(declared) > self._most_bytes:
            return 413, self._too_large()
        return None

    def _is_own_origin(self, origin: str | None, host: str) -> bool:
        """Accept no Origin (a program), the Host itself, or, where a tunnel rewrote the Host, a public name of ours."""
        if origin is None:
            return True
        try:
            netloc = urlsplit(origin).netloc.lower()
        except ValueError:  # such as http://[
            return False
        name = parse_host(netloc)
        public = bool(name) and name not in LOOPBACK and not is_address(name)
        return netloc == host.lower() or (public and self._is_own_host(name))

    def _too_large(self) -> Sentence:
        return say(
            "guard.large",
            "This is larger than {most} MB, the most that Hearth accepts. Send something smaller.",
            most=self._most_bytes >> 20,
        )

    async def _serve_within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun_s, received_bytes, complete, started = time.monotonic(), 0, False, False
        scope[NONCE] = secrets.token_urlsafe(16)
        fault: tuple[int, Sentence] | None = None

        async def receive_counted() -> Message:
            nonlocal received_bytes, complete, fault
            if complete:
                return await receive()
            left_s = begun_s + GRACE_S + received_bytes / SLOWEST_BYTES_PER_S - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, left_s))
            except TimeoutError as late:
                fault = 408, say("guard.slow", "The upload was too slow. Try again on a faster connection.")
                raise BodyRefused from late
            body = message.get("body", b"")
            received_bytes += len(body)
            if received_bytes > self._most_bytes:
                fault = 413, self._too_large()
                raise BodyRefused
            complete = not message.get("more_body", False)
            if not complete:
                async with self._turn:
                    await asyncio.sleep(0)
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if fault is not None and not started:
                return  # the inner app's answer to a broken body is dropped
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers["Content-Security-Policy"] = POLICY.format(nonce=scope[NONCE])
            await send(message)

        with contextlib.suppress(BodyRefused, ClientDisconnect):  # answered below, or to nobody
            await self._app(scope, receive_counted, send_with_headers)
        if fault is not None and not started:
            await refusal(scope, *fault)(scope, receive, send)


def refusal(scope: Scope, status: int, sentence: Sentence, code: str = "refused") -> Response:
    """Word a refusal in the reader's language; for another program, in its API's shape."""
    # After a 413 the connection stays open and uvicorn discards the rest of the body: a client that sends everything before
    # it reads, as frpc does, would otherwise meet a reset instead of the answer. close_idle_connections ends it later.
    headers = {**SECURITY_HEADERS, "Connection": "close"} if status == 408 else dict(SECURITY_HEADERS)
    words = translate(sentence, language(Request(scope)))
    if scope["path"].startswith(API_PREFIXES):
        return JSONResponse(shape_error(scope["path"], words, status, code), status, headers)
    return PlainTextResponse(words, status, headers)


def parse_host(netloc: str) -> str:
    """Strip the port, and an IPv6 address's brackets; return "" if it is not a valid host."""
    found = HOST.fullmatch(netloc.strip().lower())
    return (found[1] or found[2]) if found else ""


async def close_idle_connections(server: Any, idle_s: float = IDLE_S, every_s: float = 1.0) -> None:
    """Close connections without a complete request while uvicorn's `server` runs: it reads headers before any middleware does."""
    since: dict[Any, tuple[Any, float]] = {}
    """It holds by connection its last request, and when it started waiting for the next."""
    while not server.should_exit:
        now_s = time.monotonic()
        idle = {each: each.cycle for each in server.server_state.connections if each.cycle is None or each.cycle.response_complete}
        since = {each: since[each] if each in since and since[each][0] is cycle else (cycle, now_s) for each, cycle in idle.items()}
        oldest_first = sorted(since, key=lambda each: since[each][1])
        for place, each in enumerate(oldest_first):
            if now_s - since[each][1] > idle_s or place < len(oldest_first) - IDLE_MOST:
                each.transport.abort()
        await asyncio.sleep(every_s)


def limit_idle_connections(server: Any, idle_s: float = IDLE_S) -> None:
    """Start close_idle_connections on a running server's loop, from another thread. Once the server is to end, it waits
    LAST_ANSWERS_S for answers that nobody reads: the process would wait for them, with no server."""
    server.config.timeout_graceful_shutdown = LAST_ANSWERS_S
    asyncio.run_coroutine_threadsafe(close_idle_connections(server, idle_s), server.servers[0].get_loop())
