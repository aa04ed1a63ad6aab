"""A share from its beginning to its end, and the tunnel against stand-ins of its server and its program; test_real_tunnel.py has the real program."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import gradio as gr
import httpx
import pytest

from app.sentence import Sentence, Trouble
from app.ui import routes, share
from app.ui.access.login import Keys, digest
from app.ui.access.tunnel import Reached, fetched, tunnel
from app.ui.launch import guards
from app.ui.share import Share
from app.ui.state.desk import Desk
from app.ui.state.visitor_limits import Allowance, read_allowance
from tests.support.guests import desk_at, no_tunnel, press, shared, until, visitor

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
unix = pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        yield desk


def test_a_share_from_beginning_to_end(desk: Desk) -> None:
    ended = []

    sharing = Share(desk, lambda port: Reached(f"http://127.0.0.1:{port}/", lambda: ended.append(port)))
    assert sharing.view()["open"] is False
    sharing.begin(1)
    first, second = sharing.view(), sharing.view()
    assert "password" in first and "password" not in second, "shown once"
    assert first["password"] not in first["address"] + first["qr"] and 3500 < first["left_s"] <= 3600
    assert ElementTree.fromstring(first["qr"]).tag.endswith("svg")
    with pytest.raises(Trouble):
        sharing.begin(1)
    with (
        visitor(first["address"], first["password"], "Ada") as ada,
        visitor(first["address"], first["password"]) as eve,
    ):
        assert [each["name"] for each in sharing.view()["guests"]] == ["Ada", ""]
        assert press(ada, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
        assert desk.keeper.journal.waiting()[-1].owner == sharing.view()["guests"][0]["id"]
        assert ada.get("/hearth/live").json()["speech"]["place"] == 1 and "speech" not in eve.get("/hearth/live").json()
        sharing.send_away(sharing.view()["guests"][1]["id"])
        assert eve.get("/hearth/live").status_code == 401 and ada.get("/hearth/live").status_code == 200
        sharing.end()
        with pytest.raises(httpx.TransportError):
            ada.get("/hearth/live")
    assert ended and sharing.view()["open"] is False
    sharing.end()
    for job in desk.keeper.journal.waiting():
        desk.keeper.stop(job.id)


def test_time_ends_it() -> None:
    now_s = 0.0
    keys = Keys(digest("a b"), owner=False, until_s=3600.0, clock=lambda: now_s)
    token = keys.enter("a b", "Ada")
    assert isinstance(token, str) and keys.person(token)
    now_s = 3601.0
    assert keys.person(token) is None and not isinstance(keys.enter("a b", ""), str)


def test_nobody_is_shared_with_where_the_tunnel_fails(desk: Desk) -> None:
    def blocked(port: int) -> Reached:
        raise Trouble(Sentence("tunnel.test", "blocked"))

    sharing = Share(desk, blocked)
    before = set(threading.enumerate())
    with pytest.raises(Trouble):
        sharing.begin(1)
    assert sharing.view()["open"] is False
    left = [
        each for each in set(threading.enumerate()) - before if each.is_alive() and isinstance(each, threading.Timer)
    ]
    assert not left
    sharing.end()


def test_the_panel_is_the_owners(desk: Desk) -> None:
    sharing = Share(desk, no_tunnel)
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Textbox()
    app_kwargs = {"routes": [*routes.routes(desk), *share.routes(sharing)], "middleware": guards(desk.keeper.home)[0]}
    _, address, _ = blocks.launch(prevent_thread_lock=True, quiet=True, run_history=False, app_kwargs=app_kwargs)
    try:
        with httpx.Client(base_url=address, timeout=60) as owner:
            begun = owner.post("/hearth/share/begin", json={"hours": 4})
            assert (
                begun.json()["open"]
                and begun.headers["cache-control"] == "no-store"
                and begun.json()["left_s"] > 4 * 3600 - 60
            )
            assert owner.post("/hearth/share/begin", json={"hours": 4}).status_code == 409
            assert (
                owner.post("/hearth/share/limits", json={"letters": 77, "steps": "many", "owner": True}).json()[
                    "limits"
                ]["letters"]
                == 77
            )
            nearest = owner.post("/hearth/share/limits", json={"letters": 20, "share": 0}).json()["limits"]
            assert (nearest["letters"], nearest["share"]) == (50, 0.05), "what is wished tighter is not made looser"
            assert owner.post("/hearth/share/nothing", json={}).status_code == 404
            assert (
                owner.post("/hearth/share/end", json={}, headers={"Origin": "https://evil.example"}).status_code == 403
            )
            assert owner.post("/hearth/share/end", json={}).json()["open"] is False
    finally:
        sharing.end()
        blocks.close(verbose=False)
        desk.settings.put({"visitors": {}})


def test_the_allowance_takes_only_what_makes_sense() -> None:
    assert read_allowance({}) == Allowance()
    assert read_allowance({"letters": 10**9, "steps": True, "side": "large", "share": 0.25, "batch": 3.0}) == Allowance(
        share=0.25, batch=3
    )


# The tunnel. Its program and its server are stand-ins; what they say is what frpc 0.3 and Gradio's server say.

PROGRAM = """#!/usr/bin/env python3
import sys, time
open(sys.argv[0] + ".said", "w").write("\\n".join(sys.argv[1:]))
print("[I] login to server success", flush=True)
"""
GOOD = PROGRAM + 'print("[I] start proxy success: http://abc.gradio.live", flush=True)\ntime.sleep(60)\n'
SILENT = PROGRAM + "time.sleep(60)\n"
REFUSED = PROGRAM + 'print("[W] login to server failed: EOF", flush=True)\ntime.sleep(60)\n'
DEAD = PROGRAM
TALKS = (
    PROGRAM
    + """
print("[I] start proxy success: http://abc.gradio.live", flush=True)
for n in range(5000):
    print("[E] connect to local service error: connection refused, once more and at some length", flush=True)
open(sys.argv[0] + ".through", "w").close()
time.sleep(60)
"""
)


class Standin(ThreadingHTTPServer):
    program = b""
    told: object = [{"host": "127.0.0.1", "port": 7000, "root_ca": "-----BEGIN CERTIFICATE-----"}]
    asked = 0


@pytest.fixture
def standin() -> Iterator[Standin]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert isinstance(self.server, Standin)
            self.server.asked += self.path == "/frpc"
            body = self.server.program if self.path == "/frpc" else json.dumps(self.server.told).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = Standin(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def made(server: Standin, folder: Path, program: str, wait_s: float = 30) -> Reached:
    server.program = program.encode()
    at = f"http://127.0.0.1:{server.server_port}"
    return tunnel(4321, folder, f"{at}/api", f"{at}/frpc", hashlib.sha256(server.program).hexdigest(), wait_s)


@unix
def test_the_tunnel_is_made_and_taken_down(standin: Standin, tmp_path: Path) -> None:
    reached = made(standin, tmp_path, GOOD)
    assert reached.address == "https://abc.gradio.live" and reached.lost() is None
    (said,) = tmp_path.glob("*.said")
    given = said.read_text().splitlines()
    assert (
        given[given.index("-l") + 1] == "4321"
        and given[given.index("-i") + 1] == "127.0.0.1"
        and "--tls_enable" in given
    )
    assert (tmp_path / "certificate.pem").read_text().startswith("-----BEGIN")
    reached.take_down()


@unix
def test_a_program_that_talks_never_waits_for_a_reader(standin: Standin, tmp_path: Path) -> None:
    """A pipe holds 64 KB."""
    reached = made(standin, tmp_path, TALKS)
    until(lambda: bool(list(tmp_path.glob("*.through"))), 20)
    assert reached.lost() is None
    reached.take_down()
    assert (said := reached.lost()) is not None and said.key == "tunnel.ended"


@unix
def test_a_program_that_does_not_run_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        made(standin, tmp_path, "for another machine")
    assert caught.value.sentence.key == "tunnel.program" and "does not run here: [Errno 8]" in str(caught.value)


@unix
@pytest.mark.parametrize("program", [SILENT, REFUSED, DEAD])
def test_a_blocked_tunnel_is_a_sentence(standin: Standin, tmp_path: Path, program: str) -> None:
    begun_s = time.monotonic()
    with pytest.raises(Trouble) as caught:
        made(standin, tmp_path, program, wait_s=3)
    assert caught.value.sentence.key == "tunnel.blocked" and time.monotonic() - begun_s < 20


def test_no_network_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Trouble) as caught:
        tunnel(1, tmp_path, "http://127.0.0.1:9/api", "http://127.0.0.1:9/frpc", "0" * 64)
    assert caught.value.sentence.key == "tunnel.fetch"
    assert not list(tmp_path.iterdir())


@unix
def test_a_server_that_makes_no_sense_is_a_sentence(standin: Standin, tmp_path: Path) -> None:
    standin.told = {"nothing": 1}
    with pytest.raises(Trouble) as caught:
        made(standin, tmp_path, GOOD)
    assert caught.value.sentence.key == "tunnel.offline"


def test_the_checksum_is_asked_every_time(standin: Standin, tmp_path: Path) -> None:
    """Gradio looks only after a download: a program that was changed since is run. Here it is fetched again, or refused."""
    standin.program = b"the real one"
    source, right = f"http://127.0.0.1:{standin.server_port}/frpc", hashlib.sha256(b"the real one").hexdigest()
    program = fetched(tmp_path, source, right)
    assert fetched(tmp_path, source, right) == program and standin.asked == 1
    program.write_bytes(b"a wrong one")
    assert fetched(tmp_path, source, right).read_bytes() == b"the real one" and standin.asked == 2
    program.write_bytes(b"a wrong one")
    standin.program = b"meddled with"
    with pytest.raises(Trouble) as caught:
        fetched(tmp_path, source, right)
    assert caught.value.sentence.key == "tunnel.checksum" and not list(tmp_path.iterdir())
    with pytest.raises(Trouble) as caught:
        fetched(tmp_path, source, "")
    assert caught.value.sentence.key == "tunnel.platform"


def test_a_guest_finds_the_window_in_chinese(desk: Desk) -> None:
    with shared(desk) as (address, _, _), httpx.Client(base_url=address) as client:
        page = client.get("/hearth/door", headers={"Accept-Language": "zh-CN"}).text
        assert 'lang="zh-CN"' in page
