"""Sharing: a second window, for visitors, on a port of its own; a tunnel to it and to nothing else; and its end."""

from __future__ import annotations

import dataclasses
import io
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import gradio as gr
import segno
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.sentence import Trouble, say
from app.ui import routes as page_routes
from app.ui.access.login import Door, Keys, digest, password
from app.ui.access.request_guard import VISITOR_BYTES, Guard, loopback, reached_by, watch
from app.ui.access.tunnel import Reached
from app.ui.access.uploads import Uploads
from app.ui.access.visitor_fence import Fence
from app.ui.page.theme import theme
from app.ui.page.translate import Language, i18n, language, translate, word
from app.ui.state.desk import Desk
from app.ui.state.person import who
from app.ui.state.visitor_limits import RANGES, read_allowance
from app.ui.tabs import paint, speak
from app.ui.window import HEAD, HeadInjection, configure_queue

HOURS: Final = (1, 4, 12, 72)
Tunnel = Callable[[int], Reached]
"""Of a port."""


def window(desk: Desk) -> gr.Blocks:
    """Speak and paint; nothing else is in it that could be found."""
    visitors: gr.Blocks
    with gr.Blocks(title="Hearth", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)) as visitors:
        gr.HTML(HEAD, elem_id="h-head", apply_default_css=False)
        gr.HTML('<div id="h-strip"></div>', elem_id="h-under-head", apply_default_css=False)
        with gr.Tabs(elem_id="h-rooms"):
            with gr.Tab(word("tab.speak", "Speak"), id="speak"):
                speak.build(desk, visitor=True)
            with gr.Tab(word("tab.paint", "Paint"), id="paint"):
                paint.build(desk, visitor=True)
    return visitors


@dataclass(slots=True)
class Open:
    keys: Keys
    password: str
    server: gr.Blocks
    reached: Reached
    timer: threading.Timer
    shown: bool = False


class Share:
    """At most one at a time. `begin` and `end` may come from any thread."""

    def __init__(self, desk: Desk, tunnel: Tunnel, host: str = "127.0.0.1", tls: tuple[str, str] | None = None) -> None:
        """`host` other than loopback: the visitors' window is on the network itself, and no tunnel is made."""
        self._desk, self._tunnel, self._host, self._tls = desk, tunnel, host, tls
        self._lock = threading.Lock()
        self._open: Open | None = None
        self._public = ""

    def begin(self, hours: float) -> None:
        with self._lock:
            if self._open is not None:
                raise Trouble(say("share.already", "You are sharing already. End that first."))
            words = password()
            keys = Keys(
                digest(words),
                owner=False,
                until_s=time.monotonic() + hours * 3600,
                secure=loopback(self._host) or bool(self._tls),
            )
            self._public = ""
            server = self._serve(keys)
            try:
                reached = self._reached(server)
            except BaseException:
                server.close(verbose=False)
                raise
            self._public = urlsplit(reached.address).hostname or ""
            timer = threading.Timer(hours * 3600, self.end)
            timer.daemon = True
            timer.start()
            self._open = Open(keys, words, server, reached, timer)

    def end(self) -> None:
        with self._lock:
            ended, self._open = self._open, None
        if ended is not None:
            ended.keys.close()
            ended.timer.cancel()
            ended.reached.take_down()
            ended.server.close(verbose=False)

    def view(self, spoken: Language = "en") -> dict[str, Any]:
        """For the owner's panel. The password is in it once."""
        now, limits = self._open, dataclasses.asdict(read_allowance(self._desk.settings.get("visitors", {})))
        if now is None or now.keys.closed:
            return {"open": False, "hours": HOURS, "limits": limits}
        first, now.shown = not now.shown, True
        guests = sorted(now.keys.guests.values(), key=lambda guest: guest.since_s)
        clock_s, address, lost = now.keys.clock(), now.reached.address, now.reached.lost()
        return {
            "open": True, "limits": limits, "address": address, "qr": qr(address), "left_s": max(0.0, (now.keys.until_s or 0) - clock_s),
            "lost": translate(lost, spoken) if lost else "",
            "guests": [
                {"id": each.person.name, "name": each.nickname, "since_s": clock_s - each.since_s, "seen_s": clock_s - each.seen_s}
                for each in guests
            ],
        } | ({"password": now.password} if first else {})  # fmt: skip

    def send_away(self, name: str) -> None:
        if self._open is not None:
            self._open.keys.leave(name)

    def limit(self, changes: Mapping[str, Any]) -> None:
        """What the owner grants visitors; of what is out of range the nearest that is not."""
        wanted = {name: within(changes[name], *RANGES[name]) for name in RANGES if name in changes}
        self._desk.settings.change("visitors", {}, lambda kept: dataclasses.asdict(read_allowance({**kept, **wanted})))

    def _serve(self, keys: Keys) -> gr.Blocks:
        mine: dict[str, set[str]] = {}
        uploads = self._desk.keeper.home.scratch / "uploads"
        server = window(self._desk)
        configure_queue(server, most=64)
        middleware = [
            Middleware(Guard, knows=self._knows, most_bytes=VISITOR_BYTES), Middleware(Door, keys=keys), Middleware(Fence, mine=mine),
            Middleware(Uploads, folder=uploads, mine=mine), Middleware(HeadInjection),
        ]  # fmt: skip
        server.launch(
            server_name=self._host, server_port=free_port(self._host), prevent_thread_lock=True, quiet=True, theme=theme(), i18n=i18n(),
            footer_links=[], show_error=False, run_history=False, enable_monitoring=False, ssr_mode=False, max_file_size=VISITOR_BYTES,
            strict_cors=True, ssl_verify=False, ssl_certfile=self._tls and self._tls[0], ssl_keyfile=self._tls and self._tls[1], share=False,
            app_kwargs={"routes": page_routes.routes(self._desk), "middleware": middleware, "openapi_url": None, "docs_url": None, "redoc_url": None},
        )  # fmt: skip
        watch(server.server)
        return server

    def _knows(self, host: str) -> bool:
        here = loopback if loopback(self._host) else reached_by(self._host)
        return here(host) or (bool(host) and host == self._public)  # not .gradio.live: others share there, too

    def _reached(self, server: gr.Blocks) -> Reached:
        port = server.server_port
        if loopback(self._host):
            return self._tunnel(port)
        named = socket.gethostname() if self._host in ("0.0.0.0", "::") else self._host
        return Reached(f"{'https' if self._tls else 'http'}://{named}:{port}/")


def within(value: Any, low: float, high: float) -> Any:
    """What is no number is left for `allowance` to leave out."""
    return min(max(value, low), high) if isinstance(value, int | float) else value


def free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def qr(address: str) -> str:
    """The address as a picture for a phone. The password is not in it: who photographs the screen has only half."""
    drawn = io.BytesIO()
    segno.make(address, error="m").save(
        drawn, kind="svg", xmldecl=False, svgns=True, border=2, scale=4, dark="#221d18", light="#fffdfa"
    )
    return drawn.getvalue().decode()


def routes(share: Share) -> list[Route]:
    """The owner's panel. They are on the owner's server only, and ask once more."""

    def view(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        return JSONResponse(share.view(language(request)), headers={"Cache-Control": "no-store"})

    async def act(request: Request) -> Response:
        if not who(request).owner:
            return Response(status_code=404)
        asked, wanted = await request.json(), request.path_params["act"]
        try:
            if wanted == "begin":
                hours = asked.get("hours")
                await run_in_threadpool(share.begin, hours if hours in HOURS else HOURS[0])
            elif wanted == "end":
                await run_in_threadpool(share.end)
            elif wanted == "send-away":
                share.send_away(str(asked.get("id", "")))
            elif wanted == "limits":
                share.limit(asked)
            else:
                return Response(status_code=404)
        except Trouble as trouble:
            return JSONResponse({"trouble": translate(trouble.sentence, language(request))}, status_code=409)
        return JSONResponse(share.view(language(request)), headers={"Cache-Control": "no-store"})

    return [Route("/hearth/share", view), Route("/hearth/share/{act}", act, methods=["POST"])]
