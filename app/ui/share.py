"""Share Hearth with guests: a second server with its own window, in this machine's own network or by a tunnel to that server only."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import gradio as gr
import psutil
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.base.home_address import find_home_address, find_way_out
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.owners import is_guest
from app.ui import routes as page_routes
from app.ui.access.gradio_fence import GradioFence
from app.ui.access.guest_allowlist import GuestAllowlist
from app.ui.access.login import TICKET, LoginRequired, Logins, digest_password, make_password
from app.ui.access.login_form import LOGIN_PATH
from app.ui.access.request_guard import GUEST_BYTES, Guard, is_address, is_loopback, recognise_hosts
from app.ui.access.tunnel import OpenTunnel
from app.ui.access.uploads import CheckUploads
from app.ui.page.qr import draw_qr
from app.ui.page.translate import Language, language, translate
from app.ui.page.view_types.machine import ShareView
from app.ui.state.asked import Asked, Word
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import RANGES, SAVED, read_allowance
from app.ui.state.json_routes import owner_route
from app.ui.state.kept_guests import KeptGuests
from app.ui.tabs import shelf
from app.ui.window import Serving, build_guest_window, configure_queue, serve_window

HOURS: Final = (1, 4, 12, 72)
EVERYWHERE: Final = ("0.0.0.0", "::")
"""Whoever listens there is found by each of the machine's addresses."""
OpensTunnel = Callable[[int], OpenTunnel]
FIREWALLS: Final = {
    "darwin": say("share.firewall-mac", "If macOS asks whether Python may accept incoming connections, allow it."),
    "win32": say(
        "share.firewall-windows", "If Windows asks about Python, allow it for private networks; your Wi-Fi must be set to private."
    ),
}
FIREWALL: Final = say("share.firewall", "If a firewall is on, it must let others reach this port.")


@dataclass(slots=True)
class OpenShare:
    logins: Logins
    password: str
    server: gr.Blocks
    tunnel: OpenTunnel
    at_home: bool
    timer: threading.Timer
    password_shown: bool = False


class Share:
    """At most one open share. `begin` and `end` may be called from any thread."""

    def __init__(self, desk: Desk, open_tunnel: OpensTunnel, host: str = "127.0.0.1", tls: tuple[str, str] | None = None) -> None:
        """With a `host` other than loopback Hearth is on the network already, and guests connect directly, without a tunnel."""
        self._desk, self._open_tunnel, self._host, self._tls = desk, open_tunnel, host, tls
        self._lock = threading.Lock()
        self._open: OpenShare | None = None
        self._public_host = ""
        self._guests = KeptGuests(desk.settings)
        desk.jobs.find_nickname = self._find_nickname

    def begin(self, hours: float, at_home: bool = False) -> None:
        """Share through a tunnel, or `at_home`: with those in this machine's own network only, and without internet."""
        with self._lock:
            if self._open is not None:
                raise Trouble(say("share.already", "Hearth is already shared. End that share first."))
            host = require_home_address() if at_home and is_loopback(self._host) else self._host
            words = make_password()
            logins = Logins(
                digest_password(words),
                owner=False,
                until_s=time.monotonic() + hours * 3600,
                secure=is_loopback(host) or bool(self._tls),
                behind_tunnel=is_loopback(host),
                secret=self._guests.read_key("household"),  # a household counts as one over all shares, as its guests come again
                guests=self._guests,
                list_busy=lambda: {job.owner for job in self._desk.keeper.journal.list_live()},
            )
            self._public_host = ""
            server = self._serve(logins, host)
            try:
                tunnel = self._reach(server, host)
            except BaseException:
                server.close(verbose=False)
                raise
            self._public_host = urlsplit(tunnel.address).hostname or ""
            timer = threading.Timer(hours * 3600, self.end)
            timer.daemon = True
            timer.start()
            self._open = OpenShare(logins, words, server, tunnel, not is_loopback(host), timer)

    def end(self) -> None:
        with self._lock:
            ended, self._open = self._open, None
        if ended is not None:
            ended.logins.close()
            ended.timer.cancel()
            ended.tunnel.close()
            ended.server.close(verbose=False)
            self._stop_jobs(is_guest)

    def _find_nickname(self, owner: str) -> str:
        now = self._open
        logins = [] if now is None else list(now.logins.by_token.values())
        return next((each.nickname for each in logins if each.person.name == owner), "") or self._guests.find_name(owner)

    def _stop_jobs(self, of: Callable[[str], bool]) -> None:
        """Stop jobs that nobody can fetch any more; what is finished of them stays on the owner's shelf."""
        with contextlib.suppress(sqlite3.Error):
            for job in self._desk.keeper.journal.list_live():
                if of(job.owner):
                    self._desk.keeper.stop(job.id)

    def is_open(self) -> bool:
        now = self._open
        return now is not None and not now.logins.closed

    def view(self, spoken: Language = "en") -> ShareView:
        """Describe the share for the owner's panel. Include the password the first time only."""
        now, limits = self._open, dataclasses.asdict(read_allowance(self._desk.settings.get(SAVED, {})))
        if now is None or now.logins.closed:
            return {"open": False, "hours": HOURS, "limits": limits, "ways": ("home", "link") if is_loopback(self._host) else ("home",)}
        first, now.password_shown = not now.password_shown, True
        guests = sorted(now.logins.by_token.values(), key=lambda login: login.since_s)
        # The QR code has a ticket for the password, which is of use for two minutes: a photo of the screen gives no access later.
        clock_s, address, fault = now.logins.clock(), now.tunnel.address, now.tunnel.find_fault()
        entrance = f"{address.rstrip('/')}{LOGIN_PATH}?{TICKET}={now.logins.show_ticket()}"
        view: ShareView = {
            "open": True, "limits": limits, "address": address, "qr": draw_qr(entrance), "left_s": max(0.0, (now.logins.until_s or 0) - clock_s),
            "lost": translate(fault, spoken) if fault else "", "at_home": now.at_home,
            "advice": translate(FIREWALLS.get(sys.platform, FIREWALL), spoken) if now.at_home else "",
            "guests": [
                {"id": each.person.name, "name": each.nickname or "", "since_s": clock_s - each.since_s, "seen_s": clock_s - each.seen_s}
                for each in guests
            ],
        }  # fmt: skip
        if first:
            view["password"] = now.password
        return view

    def send_away(self, name: str, for_good: bool = False) -> None:
        """Log a guest out. `for_good`: change the password, which they know. Whoever else is in stays, and so does a second login of theirs: from
        one address several may have come, and one person may come from several."""
        if (now := self._open) is not None:
            if for_good:
                now.password, now.password_shown = make_password(), False
                now.logins.change_password(now.password)
            now.logins.log_out(name)
            self._stop_jobs(lambda owner: owner == name)

    def limit(self, changes: Mapping[str, Any]) -> None:
        """Change the guests' limits; a value out of range becomes the nearest allowed one."""
        wanted = {name: clamp(changes[name], *RANGES[name]) for name in RANGES if name in changes}
        self._desk.settings.change(SAVED, {}, lambda kept: dataclasses.asdict(read_allowance({**kept, **wanted})))

    def _serve(self, logins: Logins, host: str) -> gr.Blocks:
        files_by_person: dict[str, set[str]] = {}
        uploads = self._desk.keeper.home.scratch / "uploads"
        server = build_guest_window(self._desk)
        configure_queue(server, most=64)
        middleware = [
            Middleware(Guard, is_own_host=partial(self._is_own_host, host), most_bytes=GUEST_BYTES),
            Middleware(LoginRequired, logins=logins),
            Middleware(GuestAllowlist, files_by_person=files_by_person),
            Middleware(CheckUploads, folder=uploads, files_by_person=files_by_person, guest_files=self._desk.jobs.guest_files),
            Middleware(GradioFence),
        ]
        own = Serving(
            host=host,
            port=find_free_port(host),
            tls=self._tls,
            routes=[*page_routes.routes(self._desk), *shelf.guest_routes(self._desk)],
            middleware=middleware,
            most_bytes=GUEST_BYTES,
        )
        serve_window(server, own)
        return server

    def _is_own_host(self, own: str, host: str) -> bool:
        is_local = is_loopback if is_loopback(own) else recognise_hosts(own)
        return is_local(host) or (bool(host) and host == self._public_host)  # not all of .gradio.live, where others share too

    def _reach(self, server: gr.Blocks, host: str) -> OpenTunnel:
        """Make the server reachable: through a tunnel on loopback, else by this machine's own address."""
        port = server.server_port
        if is_loopback(host):
            return self._open_tunnel(port)
        named = name_this_machine() if host in EVERYWHERE else host
        return OpenTunnel(f"{'https' if self._tls else 'http'}://{named}:{port}/", find_fault=partial(find_move, named))


def name_this_machine() -> str:
    """Return what others in its network find this machine by."""
    return find_home_address() or find_way_out() or socket.gethostname()


def require_home_address() -> str:
    if found := find_home_address():
        return found
    raise Trouble(
        say("share.no-network", "This machine is in no network at home. Connect it to your Wi-Fi or router, then create the link again.")
    )


def find_move(address: str) -> Sentence | None:
    """Tell whether this machine is no longer to be found at an address that its guests were given."""
    ours = {each.address for addresses in psutil.net_if_addrs().values() for each in addresses}
    if not is_address(address) or address in ours:
        return None
    return say(
        "share.moved",
        "This machine has left the network it had the address {address} in. Stop sharing, create a new link and give it to your guests.",
        address=address,
    )


def clamp(value: Any, low: float, high: float) -> Any:
    """Clamp a number; return anything else unchanged, for `read_allowance` to ignore."""
    return min(max(value, low), high) if isinstance(value, int | float) else value


def find_free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class ShareAsked(Asked):
    """An act on the share; the numbers are the guests' limits."""

    act: Word
    hours: float | None = None
    at_home: bool = False
    id: str = ""
    for_good: bool = False
    letters: float | None = None
    side: float | None = None
    steps: float | None = None
    batch: float | None = None
    waiting: float | None = None
    waiting_all: float | None = None
    share: float | None = None


def routes(share: Share) -> list[Route]:
    """Return the routes of the owner's panel. Only the owner's server has them, and each checks the person again."""
    return [owner_route(share, "/hearth/share", answer_view), owner_route(share, "/hearth/share/{act}", answer_act, ["POST"], ShareAsked)]


def answer_view(share: Share, request: Request) -> Response:
    return JSONResponse(share.view(language(request)), headers={"Cache-Control": "no-store"})


def answer_act(share: Share, request: Request, asked: ShareAsked) -> Response:
    if asked.act == "begin":
        share.begin(next((each for each in HOURS if each == asked.hours), HOURS[0]), asked.at_home)
    elif asked.act == "end":
        share.end()
    elif asked.act == "send-away":
        share.send_away(asked.id, asked.for_good)
    elif asked.act == "limits":
        share.limit(asked.model_dump(include=set(RANGES), exclude_none=True))
    else:
        return Response(status_code=404)
    return answer_view(share, request)
