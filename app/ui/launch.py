"""hearth open: one instance, the engine in the background, the server, the page; and what is left to see where that fails."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import webbrowser
from functools import partial
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from app.cli.job import common
from app.engine.process.keeper import Keeper
from app.paths import Home, assets, home
from app.sentence import Trouble, say
from app.ui import routes as page_routes
from app.ui import share, single_instance, start_failure
from app.ui.access.login import Door, Keys, digest, password
from app.ui.access.request_guard import OWNER_BYTES, Guard, Owner, loopback, reached_by, watch
from app.ui.access.tunnel import tunnel
from app.ui.access.uploads import Uploads
from app.ui.api import a1111, gradio_endpoints, openai
from app.ui.page.theme import theme
from app.ui.page.translate import i18n
from app.ui.share import Share
from app.ui.single_instance import Instance
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from app.ui.tabs import models, shelf, welcome
from app.ui.window import Early, build, queued

KEY_VARIABLE = "HEARTH_API_KEY"
PASSWORD_VARIABLE = "HEARTH_PASSWORD"
MANY_CORES = 4
WAIT_S = 1.0
"""Windows hears Ctrl+C only between two waits."""
PAGE_FIRST_S = 3.0
"""On fewer cores the engine, which takes seconds to import torch, waits so long that the page is there first."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help="by default the first free one from 7860")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    parser.add_argument("--lang", choices=("en", "zh"), help="by default what the browser prefers")
    parser.add_argument("--share", type=float, nargs="?", const=1.0, metavar="HOURS", help="let others speak and paint here through a link with a password, for an hour if not said otherwise")  # fmt: skip
    parser.add_argument("--listen", metavar="HOST", default="127.0.0.1", help=f"be reached from the network, with a login; the password is made up, or taken from ${PASSWORD_VARIABLE}; programs need the key in ${KEY_VARIABLE}")  # fmt: skip
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="for https with --listen, in PEM")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the certificate's private key, in PEM")
    parser.add_argument(
        "--mcp", action="store_true", help="let assistants speak and paint here by MCP (needs hearth[mcp])"
    )
    common(parser)


def main(args: argparse.Namespace) -> int:
    place, log = home(args.home), None
    try:
        log = start_failure.logged(place.made())
        return opened(args, place)
    except Exception as fault:
        page = start_failure.left(place, fault, args.lang or "en")
        if not (args.no_browser or start_failure.watched()):
            webbrowser.open(page.as_uri())
        if isinstance(fault, Trouble):
            raise
        raise Trouble(say("open.failed", "Hearth could not start: {fault}. The whole story is in {page}.", fault=str(fault) or type(fault).__name__, page=str(page))) from fault  # fmt: skip
    finally:
        if log is not None:
            logging.getLogger().removeHandler(log)
            log.close()


def opened(args: argparse.Namespace, place: Home) -> int:
    alone = Instance(place.root)
    if not alone.take():
        address = alone.other()
        print(f"Hearth is open already, at {address}", flush=True)
        if not args.no_browser:
            webbrowser.open(address)
        return 0
    try:
        return served(args, place, alone)
    finally:
        alone.leave()


def served(args: argparse.Namespace, place: Home, alone: Instance) -> int:
    tls, assistants = certificates(args), gradio_endpoints.mcp(args)
    surroundings(place)
    keeper = Keeper(place, args.pretend, rest_s=0.0 if (os.cpu_count() or 1) >= MANY_CORES else PAGE_FIRST_S)
    desk = Desk(keeper, Settings(place.settings))
    sharing = Share(desk, partial(tunnel, folder=place.root / "tunnel"), args.listen, tls)
    try:
        window = build(desk)
        with window:
            gradio_endpoints.build(desk)
        queued(window)
        guards_, words = guards(place, args, tls)
        routes = [
            single_instance.route(alone.id), *page_routes.routes(desk), *shelf.routes(desk), *models.routes(desk), *welcome.routes(desk), *share.routes(sharing),
            *openai.routes(desk), *a1111.routes(desk),
        ]  # fmt: skip
        _, address, _ = window.launch(
            server_name=args.listen, server_port=args.port, prevent_thread_lock=True, quiet=True, theme=theme(), i18n=i18n(),
            footer_links=[], favicon_path=favicon(), show_error=False, run_history=False, enable_monitoring=False, ssr_mode=False,
            strict_cors=True, max_file_size=OWNER_BYTES, ssl_verify=False, ssl_certfile=tls and tls[0], ssl_keyfile=tls and tls[1],
            mcp_server=assistants,
            app_kwargs={"routes": routes, "middleware": [*guards_, Middleware(Early)], "openapi_url": None, "docs_url": None, "redoc_url": None},
        )  # fmt: skip
        watch(window.server)
        alone.tell(address)
        print(f"Hearth is open at {address}", flush=True)
        if assistants:
            print(f"Assistants (MCP): {address}gradio_api/mcp/", flush=True)
        if words:
            print(f"Log in with: {words}", flush=True)
        if not args.no_browser:
            webbrowser.open(address)
        if args.share:
            shared(sharing, args.share)
        while not desk.leaving.wait(WAIT_S):
            pass
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        sharing.end()
        gr.close_all(verbose=False)
        keeper.close()


def shared(sharing: Share, hours: float) -> None:
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


def certificates(args: argparse.Namespace) -> tuple[str, str] | None:
    """Whole paths: the current folder changes."""
    if args.certificate is None and args.key is None:
        return None
    for file in (args.certificate, args.key):
        if file is None or not file.is_file():
            raise Trouble(say("open.certificate", "https needs both --certificate and --key, each a file in PEM; {file} is not there.", file=str(file or "one")))  # fmt: skip
    return str(args.certificate.resolve()), str(args.key.resolve())


def guards(
    place: Home, args: argparse.Namespace | None = None, tls: tuple[str, str] | None = None
) -> tuple[list[Middleware], str]:
    """On loopback whoever passes is the owner, and nothing tunnels there. On the network everybody logs in, from this machine, too: a proxy in
    front would make all look as if they were here. With the password where one was made up."""
    uploads = Middleware(Uploads, folder=place.scratch / "uploads", mine={})
    if args is None or loopback(args.listen):
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
        Middleware(Guard, knows=reached_by(args.listen)),
        Middleware(Door, keys=keys),
        uploads,
    ], "" if given else words


def favicon() -> Path | None:
    icon = assets() / "icons" / "icon-256.png"
    return icon if icon.is_file() else None
