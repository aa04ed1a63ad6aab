"""hearth open: starts the engine in the background, the server, and shows the page."""

from __future__ import annotations

import argparse
import os
import time
import webbrowser
from pathlib import Path

import gradio as gr
from starlette.middleware import Middleware

from app.engine.command.running import common
from app.engine.process import Keeper
from app.paths import Home, assets, home
from app.ui import greeting, live, models, shelf
from app.ui.desk import Desk, Settings
from app.ui.guard import OWNER_BYTES, Guard, Owner, watch
from app.ui.theme import theme
from app.ui.uploads import Uploads
from app.ui.window import Early, build
from app.ui.words import i18n


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, help="by default the first free one from 7860")
    parser.add_argument("--no-browser", action="store_true", help="do not open the page")
    parser.add_argument("--lang", choices=("en", "zh"), help="by default what the browser prefers")
    common(parser)


def main(args: argparse.Namespace) -> int:
    place = home(args.home).made()
    os.environ["GRADIO_TEMP_DIR"] = str(place.scratch / "uploads")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.chdir(place.root)
    keeper = Keeper(place, args.pretend)
    desk = Desk(keeper, Settings(place.settings))
    window = build(desk)
    window.queue(default_concurrency_limit=None)
    _, address, _ = window.launch(
        server_name="127.0.0.1", server_port=args.port, prevent_thread_lock=True, quiet=True, theme=theme(), i18n=i18n(),
        footer_links=[], favicon_path=favicon(), show_error=False, run_history=False, enable_monitoring=False, ssr_mode=False,
        strict_cors=True, max_file_size=OWNER_BYTES,
        app_kwargs={"routes": [*live.routes(desk), *shelf.routes(desk), *models.routes(desk), *greeting.routes(desk)], "middleware": [*guards(place), Middleware(Early)], "openapi_url": None, "docs_url": None, "redoc_url": None},
    )  # fmt: skip
    watch(window.server)
    print(f"Hearth is open at {address}", flush=True)
    if not args.no_browser:
        webbrowser.open(address)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return 0
    finally:
        gr.close_all(verbose=False)
        keeper.close()


def guards(place: Home) -> list[Middleware]:
    """For the owner's window: on loopback, and never tunnelled. Whoever passes is the owner."""
    uploads = place.scratch / "uploads"
    return [Middleware(Guard), Middleware(Owner), Middleware(Uploads, folder=uploads, mine={})]


def favicon() -> Path | None:
    icon = assets() / "icons" / "icon-256.png"
    return icon if icon.is_file() else None
