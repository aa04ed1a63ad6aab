"""Open the window: one instance, the engine in the background, the server, the page; and a page that explains a failed start."""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import sys
import time
import webbrowser
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
from starlette.middleware import Middleware
from starlette.routing import Route

from app.base.duration import word_duration
from app.base.languages import word_for
from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs import backups
from app.engine.keeper.keeper import Keeper
from app.launcher.supervisor import RESTART
from app.ui import own_window, share, single_instance, start_failure
from app.ui import routes as page_routes
from app.ui.access.gradio_fence import GradioFence
from app.ui.access.guesses import require_hard_to_guess, require_text
from app.ui.access.login import LoginRequired, Logins, digest_key, digest_password, make_password
from app.ui.access.request_guard import OWNER_BYTES, Guard, OwnerOnly, is_loopback, recognise_hosts
from app.ui.access.tunnel import open_tunnel
from app.ui.access.uploads import CheckUploads
from app.ui.api import a1111, assistants, gradio_endpoints, openai
from app.ui.api.pacing import Pacing
from app.ui.own_window import OwnWindow
from app.ui.page.translate import Language
from app.ui.patient_start import require_port
from app.ui.process_limits import ENDS_S, allow_many_files, end_in_time, prepare_environment
from app.ui.share import Share
from app.ui.single_instance import Instance
from app.ui.state import pausing
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from app.ui.state.upkeep import ASSISTANTS
from app.ui.tabs import disk, loras, models, notify, other_machines, pause, shelf, styles, upkeep, welcome
from app.ui.window import Serving, build, configure_queue, serve_window
from app.window import choice

KEY_VARIABLE = "HEARTH_API_KEY"
PASSWORD_VARIABLE = "HEARTH_PASSWORD"
CALLS_AT_ONCE = 300
"""Gradio's queue works on so many calls at once: on more than jobs may wait, so that each reaches the journal. They wait without a thread;
threads are started only for functions that run."""
MANY_CORES = 4
BACKUP_LOOK_S = 3600.0
SPARE_S = 2.0
"""Of the time that the end may take, so much is left for what comes before it is measured and after it."""
WAIT_S = 1.0
"""Windows notices Ctrl+C only between two waits."""
PAGE_FIRST_S = 3.0
"""On fewer cores the engine, which takes seconds to import torch, starts this much later, so that the page comes first."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The options of `hearth open`."""

    home: Home
    pretend: str = ""
    """It names another machine to plan for, or its report's file."""
    host: str = "127.0.0.1"
    port: int | None = None
    browser: bool = True
    """False: the page is not shown. Else it opens in a window of its own where that can be had, or in the browser."""
    own_window: bool = True
    language: Language | None = None
    share_hours: float | None = None
    certificate: Path | None = None
    key: Path | None = None
    assistants: bool = False


def launch(options: LaunchOptions) -> int:
    """Open the window and serve it until it is closed; if that fails, write a page with the reason."""
    home, log = options.home, None
    try:
        log = start_failure.start_log(home.create())
        return open_once(options)
    except Exception as fault:
        page = start_failure.write_page(home, fault, options.language or "en")
        if options.browser and not start_failure.is_supervised():
            webbrowser.open(page.as_uri())
        if known := start_failure.explain(home, fault):
            raise Trouble(*known) from fault
        raise Trouble(
            say(
                "open.failed",
                "Hearth could not start: {fault}. The full report is in {page}.",
                fault=str(fault) or type(fault).__name__,
                page=str(page),
            )
        ) from fault
    finally:
        if log is not None:
            logging.getLogger().removeHandler(log)
            log.close()


def open_once(options: LaunchOptions) -> int:
    """Serve, or show the window that is already open."""
    instance = Instance(options.home.root)
    if not instance.acquire():
        address = instance.find_running()
        tell(say("open.already", "Hearth is already open at {address}", address=address))
        if dropped := name_serving_options(options):
            tell(
                say(
                    "open.dropped",
                    "It stays as it is, without {options}. To open it with them, close that window first (Ctrl+C where it was started).",
                    options=tuple(dropped),
                )
            )
        opens = choose_opening(options)
        if opens != "nothing" and not (opens == "window" and single_instance.bring_to_front(address)):
            webbrowser.open(address)
        return 0
    try:
        return serve(options, instance)
    finally:
        instance.release()


def choose_opening(options: LaunchOptions) -> choice.Opens:
    there = choice.Circumstances(
        opens_nothing=not options.browser,
        wants_browser=not options.own_window,
        on_network=not is_loopback(options.host),
        has_certificate=options.certificate is not None,
        shared=bool(options.share_hours),
        has_web_view=choice.has_web_view(),
        has_display=choice.has_display(),
    )
    return choice.choose(there)


def name_serving_options(options: LaunchOptions) -> list[str]:
    """Name the options given that only a window of its own could follow."""
    usual = LaunchOptions(options.home)
    names = {
        "pretend": "--pretend", "host": "--listen", "port": "--port", "share_hours": "--share", "certificate": "--certificate",
        "assistants": "--mcp",
    }  # fmt: skip
    return [name for field, name in names.items() if getattr(options, field) != getattr(usual, field)]


def serve(options: LaunchOptions, instance: Instance) -> int:
    home, tls = options.home, find_certificates(options)
    options = replace(options, port=choose_port(options, instance))
    gradio_endpoints.check_assistants(options.assistants, options.host)
    middleware, password = build_guards(home, options.host, tls)
    prepare_environment(home)
    allow_many_files()
    opens = choose_opening(options)
    own = OwnWindow(home, options.language) if opens == "window" else None
    if own is not None:
        own.start()
    rest_s = 0.0 if (os.cpu_count() or 1) >= MANY_CORES else PAGE_FIRST_S
    settings = Settings(home.settings)
    fixed = gradio_endpoints.explain_assistants(options.assistants, options.host)
    if fixed is None and settings.get(ASSISTANTS):
        fixed = gradio_endpoints.explain_broken()
        options = replace(options, assistants=fixed is None)
    keeper = Keeper(
        home, options.pretend, rest_s=rest_s, paused=pausing.find_reason(settings.get(pausing.SAVED, {}), datetime.now(), idle_s=0.0)
    )
    desk = Desk(keeper, settings)
    desk.upkeep.assistants_fixed = fixed
    sharing = Share(desk, partial(open_tunnel, folder=home.root / "tunnel"), options.host, tls)
    code = 1
    with end_in_time(desk.leaving, lambda: RESTART if desk.upkeep.restarts else code):
        try:
            more_routes = [single_instance.ping_route(instance.id), *share.routes(sharing)]
            if own is not None:
                more_routes += [*own_window.routes(own), own_window.front_route(own)]
            address = start_server(options, desk, tls, more_routes, middleware)
            with suppress(OSError):  # On a full disk a second start does not find this window.
                instance.publish(address)
            announce(options, address, password)
            if own is not None:
                own.open(address, desk, sharing.is_open)
            elif opens == "browser":
                webbrowser.open(address)
            desk.others.resume()
            if options.share_hours:
                start_sharing(sharing, options.share_hours)
            look_until_left(desk)
            code = 0 if own is not None and own.ended else 1
        except KeyboardInterrupt:
            code = 0
        finally:
            desk.leaving.set()
            end_s = time.monotonic() + ENDS_S - SPARE_S
            desk.upkeep.close()
            desk.disk.close()
            if own is not None:
                own.close()
            sharing.end()
            gr.close_all(verbose=False)
            desk.others.close()
            keeper.close()
            desk.notifying.close(end_s)  # last, as a phone that does not answer takes its time
    return RESTART if desk.upkeep.restarts else code


def choose_port(options: LaunchOptions, instance: Instance) -> int | None:
    """Return the port that was asked for, else that of the last time where it is free: a page that is still open looks for Hearth there."""
    last = instance.find_last_port()
    if options.port is not None or last is None:
        return options.port
    try:
        for host in (options.host, "127.0.0.1"):  # Gradio asks loopback, whatever the host
            require_port(host, last)
    except Trouble:
        return None
    return last


def look_until_left(desk: Desk) -> None:
    """Wait until the window is to end; look each second whether jobs may run and whether to tell of their end, once an hour whether the database
    needs its daily backup, and whether a newer version is to be looked for."""
    looked_s = -math.inf
    desk.notifying.listen()
    while not desk.leaving.wait(WAIT_S):
        with suppress(Trouble, OSError, sqlite3.Error):
            desk.pausing.look()
            desk.notifying.look()
        if time.monotonic() - looked_s > BACKUP_LOOK_S:
            backups.make_daily_backup(desk.keeper.home)
            desk.upkeep.look_if_due()
            looked_s = time.monotonic()
    with suppress(Trouble, OSError, sqlite3.Error):
        desk.notifying.tell_ends()


def start_server(
    options: LaunchOptions, desk: Desk, tls: tuple[str, str] | None, more_routes: list[Route], middleware: list[Middleware]
) -> str:
    """Build the owner's window, serve it in the background, and return its address."""
    window = build(desk)
    with window:
        gradio_endpoints.build(desk)
    configure_queue(window)
    gradio_endpoints.answer_when_begun(window, desk)
    routes = [
        *more_routes, *page_routes.routes(desk), *shelf.routes(desk), *models.routes(desk), *loras.routes(desk), *styles.routes(desk), *welcome.routes(desk),
        *other_machines.routes(desk), *pause.routes(desk), *notify.routes(desk), *upkeep.routes(desk), *disk.routes(desk),
        *openai.routes(desk), *a1111.routes(desk),
    ]  # fmt: skip
    paced = [*middleware, Middleware(Pacing)]
    own = Serving(
        host=options.host,
        port=options.port,
        tls=tls,
        routes=routes,
        middleware=paced,
        most_bytes=OWNER_BYTES,
        assistants=options.assistants,
        calls_at_once=CALLS_AT_ONCE,
    )
    address = serve_window(window, own)
    assistants.answer_in_content(window)
    if options.assistants:
        desk.upkeep.assistants_address = f"{address}{assistants.PATH}"
    return address


def announce(options: LaunchOptions, address: str, password: str) -> None:
    """Print the address, the password if one was generated, and on a network the address there and whose password it is."""
    tell(say("open.at", "Hearth is open at {address}", address=address))
    if is_loopback(options.host):
        for variable in (PASSWORD_VARIABLE, KEY_VARIABLE):
            if os.environ.get(variable):
                tell(
                    say(
                        "open.no-login",
                        "On this computer alone nobody logs in, so {variable} is not used. It is with --listen.",
                        variable=variable,
                    )
                )
    if options.assistants:
        tell(say("open.mcp", "Assistants (MCP): {address}", address=f"{address}{assistants.PATH}"))
    if password:
        tell(say("open.password", "Log in with: {password}", password=password))
    if is_loopback(options.host):
        return
    if options.host in share.EVERYWHERE:
        there = urlsplit(address)
        tell(say("open.network", "From other devices: {address}", address=f"{there.scheme}://{share.name_this_machine()}:{there.port}/"))
    tell(say("open.owners", "Whoever has the password may do all that you may. For guests there is Share, at the top of the page."))


def start_sharing(sharing: Share, hours: float) -> None:
    """Share from the command line. A failure is printed, and the window stays open."""
    try:
        sharing.begin(hours)
    except Trouble as trouble:
        tell(trouble.sentence, before="hearth: ")
        return
    view = sharing.view()
    shared = say(
        "open.shared",
        "Shared for {time} at {address} with the password: {password}",
        time=word_duration(3600 * hours),
        address=view["address"],
        password=view["password"],
    )
    tell(shared)


def tell(sentence: Sentence, before: str = "") -> None:
    print(before + word_for(sys.stdout, sentence), flush=True)


def find_certificates(options: LaunchOptions) -> tuple[str, str] | None:
    """Return absolute paths, because the current folder changes."""
    if options.certificate is None and options.key is None:
        return None
    files = [file for file in (options.certificate, options.key) if file is not None]
    missing = next((str(file) for file in files if not file.is_file()), "one" if len(files) < 2 else "")
    if missing:
        raise Trouble(
            say("open.certificate", "https needs both --certificate and --key, each a PEM file; {file} is missing.", file=missing)
        )
    certificate, key = (str(file.resolve()) for file in files)
    return certificate, key


def build_guards(home: Home, host: str = "127.0.0.1", tls: tuple[str, str] | None = None) -> tuple[list[Middleware], str]:
    """Return the owner's middleware, and the password if one was generated. On loopback everyone is the owner, and no
    tunnel leads there. On the network everyone logs in, even from this machine: behind a proxy all clients look
    local."""
    uploads = Middleware(CheckUploads, folder=home.scratch / "uploads", files_by_person={})
    if is_loopback(host):
        return [Middleware(Guard), Middleware(OwnerOnly), uploads, Middleware(GradioFence)], ""
    given, key = os.environ.get(PASSWORD_VARIABLE, ""), os.environ.get(KEY_VARIABLE, "")
    for variable, secret in ((PASSWORD_VARIABLE, given), (KEY_VARIABLE, key)):
        if secret:
            require_text(variable, secret)
            require_hard_to_guess(variable, secret.strip())
    password = given or make_password()
    logins = Logins(digest_password(password), owner=True, api_key_digest=digest_key(key) if key else None, secure=tls is not None)
    guard = Middleware(Guard, is_own_host=recognise_hosts(host), with_key=bool(key))
    return [guard, Middleware(LoginRequired, logins=logins), uploads, Middleware(GradioFence)], "" if given else password
