"""What a hostile reader of the guards tried: each way in was open once, or is open in Gradio as it comes, and is shut here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import gradio as gr
import httpx
import pytest

from app.ui.access import guest_allowlist
from app.ui.access.guest_allowlist import GuestAllowlist
from app.ui.access.tunnel import OpenTunnel
from app.ui.launch import build_guards
from app.ui.share import Share
from app.ui.state import guest_files
from app.ui.state.desk import Desk
from tests.support import patient_http
from tests.support.guests import desk_at, guest_client, launch, plain, shared
from tests.ui.access.test_request_guard import png

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
FILE = {"files": ("a.png", png(5, 5), "image/png")}
DISGUISES = [{"Content-Type": "application/vnd.x+json"}, {"Content-Type": "Application/JSON"}, {"Content-Type": "text/plain"}, {}]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        yield desk


@pytest.fixture(scope="module")
def two(desk: Desk) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with shared(desk) as (address, words, _), guest_client(address, words) as ada, guest_client(address, words) as eve:
        yield ada, eve


@pytest.fixture(scope="module")
def naive() -> Iterator[httpx.Client]:
    with plain() as address, patient_http.Client(base_url=address) as client:
        client.post("login", data={"username": "owner", "password": "secret"})
        yield client


def sent(client: httpx.Client, path: str, body: bytes, headers: dict[str, str]) -> int:
    request = client.build_request("POST", path, content=body, headers=headers)
    if not headers:
        request.headers.pop("content-type", None)
    return client.send(request).status_code


@pytest.mark.parametrize("disguise", DISGUISES, ids=str)
def test_json_by_another_name(two: tuple[httpx.Client, httpx.Client], disguise: dict[str, str]) -> None:
    """The fence looked only at what was called application/json."""
    ada, eve = two
    (path,) = ada.post("/gradio_api/upload", files=FILE).json()
    body = f'{{"fn_index": 0, "data": [{{"path": "{path}", "meta": {{"_type": "gradio.FileData"}}}}], "session_hash": "x"}}'
    assert sent(eve, "/gradio_api/run/predict", body.encode(), disguise) == 403
    assert sent(eve, "/gradio_api/queue/join", body.encode(), disguise) == 403
    joined = b'{"fn_index": 999, "data": [], "session_hash": "adas1"}'
    sent(ada, "/gradio_api/queue/join", joined, {"Content-Type": "application/json"})
    assert sent(eve, "/gradio_api/queue/join", joined, disguise) == 404


def test_gradio_takes_json_by_another_name(naive: httpx.Client) -> None:
    body = b'{"data": ["read"], "fn_index": 0, "session_hash": "x"}'
    assert sent(naive, "/gradio_api/run/predict", body, DISGUISES[0]) == 200


def test_another_program_of_this_computer_cannot_read_along(desk: Desk, naive: httpx.Client) -> None:
    other = {"Origin": "http://localhost:1"}
    assert naive.get("config", headers=other).headers.get("access-control-allow-origin") == other["Origin"]
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Textbox()
    app_kwargs: dict[str, Any] = {"middleware": build_guards(desk.keeper.home)[0]}
    address = launch(blocks, app_kwargs=app_kwargs)
    answer = patient_http.get(f"{address}config", headers=other)
    assert patient_http.get(f"{address}config", headers={"Origin": address.rstrip("/")}).status_code == 200
    blocks.close(verbose=False)
    assert answer.status_code == 403 and "components" not in answer.text


@pytest.mark.slow
def test_who_shares_by_the_same_service_is_not_us(desk: Desk) -> None:
    """Each link is a subdomain of one name, and to a browser all of them are one site: cookies go along."""
    sharing = Share(desk, lambda port: OpenTunnel("https://abc.gradio.live"))
    sharing.begin(1)
    try:
        assert sharing._open is not None
        at = f"http://127.0.0.1:{sharing._open.server.server_port}/hearth/login"
        ours, theirs = {"Host": "abc.gradio.live"}, {"Host": "evil.gradio.live"}
        assert patient_http.get(at, headers=ours).status_code == 200 and patient_http.get(at, headers=theirs).status_code == 421
        for host in (ours, {}):  # the tunnel may keep the name or write its own
            for origin, status in (("https://abc.gradio.live", 401), ("https://evil.gradio.live", 403)):
                answer = patient_http.post(at, data={"password": "no"}, headers={**host, "Origin": origin})
                assert answer.status_code == status, (host, origin)
    finally:
        sharing.end()


def test_the_disk_cannot_be_filled(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logging in again gives no more room."""
    monkeypatch.setattr(guest_files, "HOUSEHOLD_BYTES", 3 * len(png(6, 6)))
    with shared(desk) as (address, words, _), guest_client(address, words) as first, guest_client(address, words) as again:
        answers = [
            guest.post("/gradio_api/upload", files={"files": (f"{n}.png", png(6, 6 + n), "image/png")})
            for n, guest in enumerate((first, first, again, again, first, again))
        ]
        codes = [each.status_code for each in answers]
        assert codes[:2] == [200, 200] and codes[-1] == 415 and "upload space" in answers[-1].text


def test_one_guest_cannot_hold_every_line(two: tuple[httpx.Client, httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_allowlist, "OPEN_MOST", 3)
    ada, eve = two
    with ExitStack() as held:
        lines = [held.enter_context(eve.stream("GET", f"/gradio_api/heartbeat/eves{n}")) for n in range(4)]
        assert [each.status_code for each in lines] == [200, 200, 200, 429]
        assert ada.get("/hearth/live").status_code == 200


def test_names_of_sessions_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_allowlist, "SESSIONS_MOST", 3)
    kept = GuestAllowlist(lambda *_: None, {})  # type: ignore[arg-type]
    assert all(kept._owns_session(f"s{n}", "eve") for n in range(10)) and len(kept._sessions) == 3
    assert not kept._owns_session("x" * 65, "eve") and not kept._owns_session(["s9"], "eve") and not kept._owns_session("s9", "ada")
