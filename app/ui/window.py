"""Build the window: head, strip and tabs; put our style and scripts before Gradio's."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

import gradio as gr
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.base.languages import languages
from app.base.palette import variables
from app.base.paths import assets
from app.ui.access.request_guard import NONCE, limit_idle_connections
from app.ui.page.bundle import head
from app.ui.page.theme import theme
from app.ui.page.translate import i18n, word
from app.ui.patient_start import patient_start, require_port
from app.ui.state.desk import Desk
from app.ui.state.json_routes import answer_not_stored
from app.ui.tabs import machine, models, paint, shelf, speak, welcome
from app.ui.tabs.shared_controls import LATEST, QUICK, Refresh

SESSIONS_MOST: Final = 128
"""Gradio keeps so many pages' configurations, 350 KB each, long after they were closed. The oldest goes, and a page of it that is still open
would choose among the models and voices there were at the start."""
QUEUE_REST_S: Final = 0.1
"""Gradio, by itself, polls its queue, which only programs use here, a thousand times a second: 4 % of a core."""


def build(desk: Desk) -> gr.Blocks:
    """Build the owner's window."""
    window: gr.Blocks
    refreshed: list[tuple[gr.Tab, Refresh]] = []
    with empty_window() as window:
        build_head()
        with gr.Tabs(elem_id="h-rooms"):
            with gr.Tab(word("tab.speak", "Speak"), id="speak") as tab:
                welcome.build(desk)
                refreshed.append((tab, speak.build(desk)))
            with gr.Tab(word("tab.paint", "Paint"), id="paint") as tab:
                refreshed.append((tab, paint.build(desk)))
            with gr.Tab(word("tab.shelf", "Shelf"), id="shelf"):
                shelf.build(desk)
            with gr.Tab(word("tab.models", "Models"), id="models"):
                models.build(desk)
            with gr.Tab(word("tab.machine", "Machine"), id="machine") as tab:
                refreshed.append((tab, machine.build(desk)))
        # One request when the page loads, rather than one per tab.
        filled = [field for _, each in refreshed for field in each.filled]
        load = window.load(lambda: [value for _, each in refreshed for value in each.fill()], None, filled, **QUICK)
        load.then(None, None, None, js="() => { Hearth.stay('speak'); Hearth.stay('paint'); }", **QUICK)
        for tab, each in refreshed:
            tab.select(each.offer, None, [*each.offered], **LATEST)
    return window


def build_guest_window(desk: Desk) -> gr.Blocks:
    """Build a window with Speak, Paint and what the guest made, so that nothing else can be reached through it."""
    window: gr.Blocks
    with empty_window() as window:
        build_head()
        with gr.Tabs(elem_id="h-rooms"):
            with gr.Tab(word("tab.speak", "Speak"), id="speak"):
                speak.build(desk, guest=True)
            with gr.Tab(word("tab.paint", "Paint"), id="paint"):
                paint.build(desk, guest=True)
            with gr.Tab(word("tab.shelf", "Shelf"), id="shelf"):
                shelf.build(desk)
    return window


def empty_window() -> gr.Blocks:
    return gr.Blocks(title="Hearth", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400))


def build_head() -> None:
    names = "".join(f'<option value="{code}" lang="{each.tags[0]}">{each.name}</option>' for code, each in languages().items())
    gr.HTML(
        f"""
<h1><a class="h-brand" href="./" aria-label="Hearth"><img src="hearth/static/icon-64.png" alt=""><span>Hearth</span></a></h1>
<div class="h-switches"><button data-h-act="help" aria-label="?">?</button><select data-h-act="language" aria-label="language">{names}</select>
<button data-h-act="chime" aria-label="chime">&#9834;</button>
<button data-h-act="light" aria-label="light / dark">&#9680;</button></div>
<div class="h-away-note" role="alert"></div>
""",
        elem_id="h-head",
        apply_default_css=False,
    )
    gr.HTML('<div id="h-strip"></div>', elem_id="h-under-head", apply_default_css=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where and how a window is served."""

    host: str
    port: int | None
    tls: tuple[str, str] | None
    """A certificate's file and its key's stand in it."""
    routes: list[Route]
    middleware: list[Middleware]
    most_bytes: int
    """No larger file may be uploaded."""
    assistants: bool = False
    calls_at_once: int = 40
    """Gradio's queue works on so many calls at once."""


def serve_window(window: gr.Blocks, how: Serving) -> str:
    """Serve a window in the background, and return its address."""
    icon = assets() / "icons" / "icon-256.png"
    middleware = [*how.middleware, Middleware(HeadInjection)]
    if how.port is not None:
        require_port(how.host, how.port)
    with patient_start():
        _, address, _ = window.launch(
            server_name=how.host,
            server_port=how.port,
            prevent_thread_lock=True,
            quiet=True,
            theme=theme(),
            i18n=i18n(),
            footer_links=[],
            favicon_path=icon if icon.is_file() else None,
            show_error=False,
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            strict_cors=True,
            share=False,
            state_session_capacity=SESSIONS_MOST,
            max_file_size=how.most_bytes,
            ssl_verify=False,
            ssl_certfile=how.tls and how.tls[0],
            ssl_keyfile=how.tls and how.tls[1],
            mcp_server=how.assistants,
            max_threads=how.calls_at_once,
            _frontend=False,  # Else the page has to come within three seconds.
            app_kwargs={
                "routes": how.routes,
                "middleware": middleware,
                "openapi_url": None,
                "docs_url": None,
                "redoc_url": None,
                "exception_handlers": {OSError: answer_not_stored, sqlite3.Error: answer_not_stored},
            },
        )
    limit_idle_connections(window.server)
    return str(address)


def configure_queue(window: gr.Blocks, most: int | None = None) -> None:
    window.queue(api_open=False, default_concurrency_limit=None, max_size=most)
    window._queue.sleep_when_free = window._queue.progress_update_sleep_when_free = QUEUE_REST_S


class HeadInjection:
    """Insert our style and scripts at the top of the page's head, so that nothing flashes before Gradio loads; let them and Gradio's run.

    All values in Gradio's page are escaped: each script that stands there as one is of its template."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._lines = head(variables()).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        begin: Message = {}

        async def inject(message: Message) -> None:
            nonlocal begin
            if message["type"] == "http.response.start":
                begin = message
                return
            body = message.get("body", b"")
            if begin:
                before, opened, after = body.partition(b"<head>")
                if opened:
                    body = before + opened + self._lines + after
                    body = body.replace(b"<script", f'<script nonce="{scope[NONCE]}"'.encode())
                length = str(len(body)).encode() if not message.get("more_body") else None
                headers = [(name, value) for name, value in begin["headers"] if name != b"content-length"]
                await send({**begin, "headers": headers + ([(b"content-length", length)] if length else [])})
                begin = {}
            await send({**message, "body": body})

        await self._app(scope, receive, inject)
