"""The window for tests of guards and sharing: a real server each for owner and guests, an engine that is never asked to think."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base.home_address import find_home_address
from app.base.paths import home
from app.ui import routes as page_routes
from app.ui.access.tunnel import OpenTunnel
from app.ui.page.translate import Language
from app.ui.page.view_types.machine import MachineView
from app.ui.patient_start import patient_start
from app.ui.share import Share
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, Person
from app.ui.state.settings import Settings
from app.ui.tabs import machine_view
from tests.support import patient_http
from tests.support.waiting import Idle

AT_HOME = find_home_address() or "127.0.0.2"
"""Without a network Linux has a second one on loopback."""

CONFIGS: dict[httpx.Client, Any] = {}
"""A page asks for it once."""

OPEN: list[Idle] = []
"""Engines of the desks that are open now, one within another."""


@contextmanager
def desk_at(folder: Path) -> Iterator[Desk]:
    place = home(folder).create()
    os.environ["GRADIO_TEMP_DIR"] = str(place.scratch / "uploads")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    gc.collect()
    if not OPEN:  # The collection at the end walks over what came since, not over all that earlier tests left: half of a short test's time.
        gc.freeze()
    idle = Idle(place)
    OPEN.append(idle)
    try:
        yield Desk(idle, Settings(place.settings))
    finally:
        OPEN.remove(idle)
        idle.close()
        gc.collect()  # What Gradio left open says so now, where it is expected, and not in somebody else's test.


def machine_tab(desk: Desk, model: str, looked_at: str, spoken: Language) -> MachineView:
    """Draw the Machine tab of a machine that is known."""
    view = machine_view.tab_view(desk, model, looked_at, spoken)
    assert view is not None
    return view


def page_of(desk: Desk, person: Person) -> TestClient:
    """The page's own routes, as this person reaches them."""
    routes = Starlette(routes=page_routes.routes(desk))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = person
        await routes(scope, receive, send)

    return TestClient(app)


def no_tunnel(port: int) -> OpenTunnel:
    return OpenTunnel(f"http://127.0.0.1:{port}/")


@contextmanager
def shared(desk: Desk, hours: float = 1) -> Iterator[tuple[str, str, Share]]:
    """Address and password."""
    share = Share(desk, no_tunnel)
    share.begin(hours)
    seen = share.view()
    try:
        yield seen["address"], seen["password"], share
    finally:
        share.end()


@contextmanager
def guest_client(address: str, words: str, name: str = "", via: str = "") -> Iterator[httpx.Client]:
    """`via`: the address that the tunnel tells."""
    with patient_http.Client(base_url=address, headers={"X-Forwarded-For": via} if via else {}) as client:
        entered = client.post("/hearth/login", data={"password": words, "name": name})
        assert entered.status_code == 303, entered.text
        yield client


def launch(blocks: gr.Blocks, **more: Any) -> str:
    """Serve it in the background, and return its address. Gradio by itself gives up where the server does not listen within five seconds, or
    its page does not come within three."""
    with patient_start():
        _, address, _ = blocks.launch(prevent_thread_lock=True, quiet=True, run_history=False, _frontend=False, **more)
    return str(address)


@contextmanager
def plain() -> Iterator[str]:
    """What Gradio does when nobody adds anything: the attacks have to succeed here."""
    with gr.Blocks(analytics_enabled=False) as blocks:
        words = gr.Textbox()
        file = gr.File()
        gr.Button().click(lambda text: text, words, words, api_name="hidden")
        gr.Button().click(lambda path: "got it", file, words)
    blocks.queue()
    address = launch(blocks, auth=("owner", "secret"))
    try:
        yield address
    finally:
        blocks.close(verbose=False)


def config_of(client: httpx.Client) -> Any:
    CONFIGS[client] = CONFIGS.get(client) or client.get("/config").json()
    return CONFIGS[client]


def call(client: httpx.Client, name: str, carried: object) -> httpx.Response:
    """What the page does when a script asks a tab's handlers for something."""
    (found,) = [
        each for each in config_of(client)["dependencies"] if each["backend_fn"] and name in [event for _, event in each["targets"]]
    ]
    return client.post("/gradio_api/run/predict", json={"fn_index": found["id"], "data": [carried], "session_hash": f"s{id(client)}"})


def press(client: httpx.Client, button: str, values: dict[str, object] | None = None, path: str = "run/predict") -> httpx.Response:
    """What the page does when a button is pressed; `values` by the element's id or by its label's key."""
    config = config_of(client)
    by_id = {each["id"]: each["props"] for each in config["components"]}
    target = next(id_ for id_, props in by_id.items() if props.get("elem_id") == button)
    (found,) = [each for each in config["dependencies"] if [target, "click"] in each["targets"]]
    data = [by_id[id_].get("value") for id_ in found["inputs"]]
    for place, id_ in enumerate(found["inputs"]):
        name = by_id[id_].get("elem_id")
        if values and name in values:
            data[place] = values[name]
    return client.post(f"/gradio_api/{path}", json={"fn_index": found["id"], "data": data, "session_hash": f"s{id(client)}"})
