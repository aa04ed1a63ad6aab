"""Open the window: one instance, the engine in the background, the server, the page; and what is left to see where that fails."""

from __future__ import annotations

import hashlib
import logging
import os
import webbrowser
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from app.engine.process.keeper import Keeper
from app.paths import Home, assets
from app.sentence import Trouble, say
from app.ui import routes as page_routes
from app.ui import share, single_instance, start_failure
from app.ui.access.login import Door, Keys, digest, password
from app.ui.access.request_guard import OWNER_BYTES, Guard, Owner, loopback, reached_by, watch
from app.ui.access.tunnel import tunnel
from app.ui.access.uploads import Uploads
from app.ui.api import a1111, gradio_endpoints, openai
from app.ui.page.theme import theme
from app.ui.page.translate import Language, i18n
from app.ui.share import Share
from app.ui.single_instance import Instance
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from app.ui.tabs import models, shelf, welcome
from app.ui.window import HeadInjection, build, configure_queue

KEY_VARIABLE = "HEARTH_API_KEY"
PASSWORD_VARIABLE = "HEARTH_PASSWORD"
MANY_CORES = 4
WAIT_S = 1.0
"""Windows hears Ctrl+C only between two waits."""
PAGE_FIRST_S = 3.0
"""On fewer cores the engine, which takes seconds to import torch, waits so long that the page is there first."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How the window was asked to open."""

    place: Home
    pretend: str = ""
    """Another machine's name, to plan as that one would."""
    host: str = "127.0.0.1"
    port: int | None = None
    browser: bool = True
    language: Language | None = None
    share_hours: float | None = None
    certificate: Path | None = None
    key: Path | None = None
    assistants: bool = False


def launch(wish: Wish) -> int:
    """Open the window and serve it until it is closed; what stands in the way is left as a page."""
    place, log = wish.place, None
    try:
        log = start_failure.logged(place.made())
        return open_once(wish)
    except Exception as fault:
        page = start_failure.left(place, fault, wish.language or "en")
        if wish.browser and not start_failure.watched():
            webbrowser.open(page.as_uri())
        if isinstance(fault, Trouble):
            raise
        raise Trouble(say("open.failed", "Hearth could not start: {fault}. The whole story is in {page}.", fault=str(fault) or type(fault).__name__, page=str(page))) from fault  # fmt: skip
    finally:
        if log is not None:
            logging.getLogger().removeHandler(log)
            log.close()


def open_once(wish: Wish) -> int:
    """Serve, or show the window that is open already."""
    alone = Instance(wish.place.root)
    if not alone.take():
        address = alone.other()
        print(f"Hearth is open already, at {address}", flush=True)
        if wish.browser:
            webbrowser.open(address)
        return 0
    try:
        return serve(wish, alone)
    finally:
        alone.leave()


def serve(wish: Wish, alone: Instance) -> int:
    place, tls = wish.place, certificates(wish)
    gradio_endpoints.check_assistants(wish.assistants, wish.host)
    surroundings(place)
    keeper = Keeper(place, wish.pretend, rest_s=0.0 if (os.cpu_count() or 1) >= MANY_CORES else PAGE_FIRST_S)
    desk = Desk(keeper, Settings(place.settings))
    sharing = Share(desk, partial(tunnel, folder=place.root / "tunnel"), wish.host, tls)
    try:
        window = build(desk)
        with window:
            gradio_endpoints.build(desk)
        configure_queue(window)
        guards_, words = guards(place, wish.host, tls)
        routes = [
            single_instance.route(alone.id), *page_routes.routes(desk), *shelf.routes(desk), *models.routes(desk), *welcome.routes(desk), *share.routes(sharing),
            *openai.routes(desk), *a1111.routes(desk),
        ]  # fmt: skip
        _, address, _ = window.launch(
            server_name=wish.host, server_port=wish.port, prevent_thread_lock=True, quiet=True, theme=theme(), i18n=i18n(),
            footer_links=[], favicon_path=favicon(), show_error=False, run_history=False, enable_monitoring=False, ssr_mode=False,
            strict_cors=True, max_file_size=OWNER_BYTES, ssl_verify=False, ssl_certfile=tls and tls[0], ssl_keyfile=tls and tls[1],
            mcp_server=wish.assistants,
            app_kwargs={"routes": routes, "middleware": [*guards_, Middleware(HeadInjection)], "openapi_url": None, "docs_url": None, "redoc_url": None},
        )  # fmt: skip
        watch(window.server)
        alone.tell(address)
        print(f"Hearth is open at {address}", flush=True)
        if wish.assistants:
            print(f"Assistants (MCP): {address}gradio_api/mcp/", flush=True)
        if words:
            print(f"Log in with: {words}", flush=True)
        if wish.browser:
            webbrowser.open(address)
        if wish.share_hours:
            share_at_once(sharing, wish.share_hours)
        while not desk.leaving.wait(WAIT_S):
            pass
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        sharing.end()
        gr.close_all(verbose=False)
        keeper.close()


def share_at_once(sharing: Share, hours: float) -> None:
    """From the command line. What goes wrong is said; the window goes on."""
    try:
        sharing.begin(hours)
    except Trouble as trouble:
        print(f"hearth: {trouble}", flush=True)
        return
    seen = sharing.view()
    print(f"Shared for {hours:g} h at {seen['address']} with the password: {seen['password']}", flush=True)


def surroundings(place: Home) -> None:
    """What Gradio takes from the environment and from the current folder. A dead proxy must not stand between us and ourselves."""
    os.environ["GRADIO_TEMP_DIR"] = str(place.scratch / "uploads")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1,localhost,::1")))
    os.chdir(place.root)


def certificates(wish: Wish) -> tuple[str, str] | None:
    """Whole paths: the current folder changes."""
    if wish.certificate is None and wish.key is None:
        return None
    files = [file for file in (wish.certificate, wish.key) if file is not None]
    missing = next((str(file) for file in files if not file.is_file()), "one" if len(files) < 2 else "")
    if missing:
        raise Trouble(say("open.certificate", "https needs both --certificate and --key, each a file in PEM; {file} is not there.", file=missing))  # fmt: skip
    certificate, key = (str(file.resolve()) for file in files)
    return certificate, key


def guards(
    place: Home, host: str = "127.0.0.1", tls: tuple[str, str] | None = None
) -> tuple[list[Middleware], str]:
    """On loopback whoever passes is the owner, and nothing tunnels there. On the network everybody logs in, from this machine, too: a proxy in
    front would make all look as if they were here. With the password where one was made up."""
    uploads = Middleware(Uploads, folder=place.scratch / "uploads", mine={})
    if loopback(host):
        return [Middleware(Guard), Middleware(Owner), uploads], ""
    given = os.environ.get(PASSWORD_VARIABLE, "")
    words, key = given or password(), os.environ.get(KEY_VARIABLE, "")
    keys = Keys(
        digest(words),
        owner=True,
        program=hashlib.sha256(key.encode()).digest() if key else None,
        secure=tls is not None,
    )
    return [
        Middleware(Guard, knows=reached_by(host)),
        Middleware(Door, keys=keys),
        uploads,
    ], "" if given else words


def favicon() -> Path | None:
    icon = assets() / "icons" / "icon-256.png"
    return icon if icon.is_file() else None
