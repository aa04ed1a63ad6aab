"""An outsider's attacks over HTTP: each succeeds against Gradio as it comes, and fails here."""

from __future__ import annotations

import http.client
import io
import json
import re
import socket
import struct
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import anyio
import gradio as gr
import httpx
import numpy as np
import pytest
import soundfile
from PIL import Image
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.owners import new_guest
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.models import catalog
from app.ui import routes
from app.ui.access import request_guard, uploads
from app.ui.access.login import LOGINS_MOST, Logins, digest_password, make_password, password_words
from app.ui.launch import build_guards
from app.ui.state import guest_files
from app.ui.state.desk import Desk
from app.ui.state.guest_limits import QUEUE_MOST
from app.ui.state.person import KEY, NOBODY, OWNER, Person, who
from app.ui.tabs import shelf, start_picture
from tests.support import patient_http
from tests.support.guests import desk_at, guest_client, launch, plain, press, shared
from tests.support.nasty import make_chunk
from tests.support.waiting import WAIT_S, until

pytestmark = [
    pytest.mark.long,
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PNG = bytes.fromhex("89504e470d0a1a0a")


@pytest.fixture(scope="module")
def desk(naive: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Opened after the naive one, which would else put its files into this one's folder."""
    with desk_at(tmp_path_factory.mktemp("home")) as desk:
        yield desk


@pytest.fixture(scope="module")
def naive() -> Iterator[str]:
    with plain() as address:
        yield address


@contextmanager
def owners_server(desk: Desk, idle_s: float = request_guard.IDLE_S) -> Iterator[str]:
    """The owner's server with the real guards; its window is small, for the guards do not look at it."""
    with gr.Blocks(analytics_enabled=False) as blocks:
        words = gr.Textbox()
        gr.Button().click(lambda text: text, words, words, api_name="hidden")
    app_kwargs = {
        "routes": [*routes.routes(desk), *shelf.routes(desk)],
        "middleware": build_guards(desk.keeper.home)[0],
        "openapi_url": None,
    }
    address = launch(blocks, app_kwargs=app_kwargs)
    request_guard.limit_idle_connections(blocks.server, idle_s)
    try:
        yield address
    finally:
        blocks.close(verbose=False)


@pytest.fixture(scope="module")
def owners(desk: Desk) -> Iterator[str]:
    with owners_server(desk) as address:
        yield address


@pytest.fixture(scope="module")
def share(desk: Desk) -> Iterator[tuple[str, str]]:
    with shared(desk) as (address, words, _):
        yield address, words


@pytest.fixture(scope="module")
def ada(share: tuple[str, str]) -> Iterator[httpx.Client]:
    with guest_client(*share, "Ada") as client:
        yield client


@pytest.fixture(scope="module")
def eve(share: tuple[str, str]) -> Iterator[httpx.Client]:
    with guest_client(*share, "Eve") as client:
        yield client


def kept(desk: Desk, owner: str, words: str = "hello") -> int:
    """A creation of somebody's on the shelf."""
    job = desk.keeper.journal.queue(SpeechRequest(words), desk.machine.read_choice(OWNER), owner)
    desk.keeper.journal.withdraw(job.id)
    folder = desk.keeper.folder(job.id)
    folder.mkdir(parents=True)
    (folder / "part.wav").write_bytes(b"RIFF" + bytes(40))
    made = RunSummary(model="", seconds=0.0, rate=0.0, unit="", elapsed_s=0.0, highest_bytes=0, whole=True, plan="{}")
    (folder / "whole.wav").write_bytes(b"RIFF" + bytes(40))
    return desk.keeper.shelf.keep(job, [str(folder / "whole.wav")], made)[0].id


def name_of(client: httpx.Client, desk: Desk) -> str:
    """Whom the server takes this client for: found by a job that it asks for."""
    before = {job.id for job in desk.keeper.journal.list_waiting()}
    assert press(client, "speak-go", {"speak-text": "[S1] I am here."}).status_code == 200
    (job,) = [job for job in desk.keeper.journal.list_waiting() if job.id not in before]
    desk.keeper.stop(job.id)
    return job.owner


@pytest.mark.slow
def test_a_server_ends_though_a_reader_does_not_read() -> None:
    """uvicorn waited for the rest of its answer for ever, and the threads of anyio, which no exit ends, waited for uvicorn."""
    with gr.Blocks(analytics_enabled=False) as blocks:
        gr.Textbox()
    large = Route("/large", lambda _: Response(bytes(64 << 20)))
    address = launch(blocks, app_kwargs={"routes": [large]})
    request_guard.limit_idle_connections(blocks.server)
    with socket.create_connection(("127.0.0.1", urlsplit(address).port)) as reader:
        reader.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert reader.recv(12) == b"HTTP/1.1 200"
        blocks.close(verbose=False)
        until(lambda: not blocks.server.thread.is_alive(), seconds=20)


# Logging in.


def test_passwords_are_words_and_never_the_same() -> None:
    made = {make_password() for _ in range(50)}
    assert len(made) == 50 and all(set(each.split()) <= set(password_words()) for each in made)
    assert len(set(password_words())) == len(password_words()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("owner", [True, False])
def test_room_for_logins(owner: bool) -> None:
    """Who logs in every day is never shut out: the one longest gone makes room."""
    now_s = 0.0
    logins, tokens = Logins(digest_password("words"), owner=owner, clock=lambda: now_s), []
    for _ in range(LOGINS_MOST):
        now_s += 10
        tokens.append(logins.log_in("words", ""))
    assert all(isinstance(each, str) for each in tokens)
    assert logins.find_person(tokens[0])  # was seen just now, so the second is the one longest gone
    assert logins.log_in("words", "")
    assert logins.find_person(tokens[0]) and not logins.find_person(tokens[1])


def test_nothing_without_the_password(share: tuple[str, str]) -> None:
    with patient_http.Client(base_url=share[0]) as client:
        assert client.get("/").headers["location"] == "/hearth/login"
        assert "password" in client.get("/hearth/login").text
        for path in ("/config", "/hearth/live", "/gradio_api/info", "/hearth/static/hearth.js", "/v1/models", "/sdapi/v1/options"):
            assert client.get(path).status_code == 401, path
        assert client.get("/config", headers={"Authorization": "Bearer anything"}).status_code == 401
        assert client.get("/config", cookies={"hearth_guest": "a" * 43}).status_code == 401


def test_the_cookie_is_not_for_scripts(share: tuple[str, str]) -> None:
    answer = patient_http.post(f"{share[0]}hearth/login", data={"password": share[1]})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=lax" in cookie and share[1] not in str(answer.headers)


# Other websites.


def test_cross_site_upload(naive: str, owners: str) -> None:
    evil = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    file = {"files": ("a.png", png(4, 4), "image/png")}
    with patient_http.Client() as victim:
        victim.post(f"{naive}login", data={"username": "owner", "password": "secret"})
        assert victim.post(f"{naive}gradio_api/upload", files=file, headers=evil).status_code == 200
    assert patient_http.post(f"{owners}gradio_api/upload", files=file, headers=evil).status_code == 403
    for header in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost:1"},
    ):
        assert patient_http.post(f"{owners}gradio_api/upload", files=file, headers=header).status_code == 403, header
    assert patient_http.post(f"{owners}gradio_api/upload", files=file).status_code == 200
    own = {"Origin": owners.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert patient_http.post(f"{owners}gradio_api/upload", files=file, headers=own).status_code == 200
    picture = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert patient_http.get(f"{owners}hearth/live", headers=picture).status_code == 403
    assert patient_http.get(owners, headers=picture | {"Sec-Fetch-Mode": "navigate"}).status_code == 200, "a link may lead here"


def test_rebinding(naive: str, owners: str, share: tuple[str, str]) -> None:
    port = urlsplit(owners).port
    rebound = {"Host": f"evil.example:{urlsplit(naive).port}", "Origin": "http://evil.example"}
    assert patient_http.get(f"{naive}login_check", headers=rebound).headers.get("access-control-allow-origin")
    for host in (f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example", "169.254.169.254", "", "[::1].evil.example"):
        assert patient_http.get(f"{owners}config", headers={"Host": host}).status_code == 421, host
        assert patient_http.get(f"{share[0]}hearth/login", headers={"Host": host}).status_code == 421, host
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert patient_http.get(f"{owners}config", headers={"Host": host}).status_code == 200, host


def test_two_hosts_are_none(owners: str) -> None:
    said = raw(owners, b"GET /config HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert b" 421 " in said or b" 400 " in said


# Files.

SPELLINGS = [
    "../{0}", "../../{0}", "../../../{0}", "..%2f{0}", "..%2F..%2F{0}", "%2e%2e/{0}", "%2e%2e%2f{0}", "%252e%252e%252f{0}", "..\\{0}", "..%5c{0}",
    "..%5c..%5c{0}", "....//{0}", "..;/{0}", "./../{0}", "..//{0}", "..%c0%af{0}", "%c0%ae%c0%ae/{0}", "..%00/{0}", "{0}%00.png", "/{0}",
    "//{0}", "%2f{0}", "file:///{0}", "~/{0}", "..%u2215{0}", "a/../../{0}", "a%2f..%2f..%2f{0}", "..%2f%2e%2e%2f{0}", ".%2e/{0}", "%2e./{0}",
    "..%255c{0}", "\\\\localhost\\{0}",
]  # fmt: skip


def test_traversal_in_many_spellings(desk: Desk, owners: str, ada: httpx.Client, tmp_path: Path) -> None:
    """Against a folder handed out by its name alone, as many a program does it, half of these work; here none."""
    secret = "kept from everybody"
    (desk.keeper.home.root / "secret.wav").write_text(secret)
    desk.keeper.home.settings.write_text(json.dumps({"speak": {"text": secret}}))
    job = desk.keeper.journal.queue(SpeechRequest("one"), desk.machine.read_choice(OWNER), "owner")
    desk.keeper.journal.withdraw(job.id)
    desk.keeper.folder(job.id).mkdir(parents=True)
    naive = [each for each in ("../../../secret.wav", "../../../settings.json") if (desk.keeper.folder(job.id) / each).is_file()]
    assert len(naive) == 2, "a mere join reaches both"
    assert len(SPELLINGS) >= 30
    absolute = str(desk.keeper.home.root / "secret.wav")
    places = [
        f"/hearth/made/{job.id}/",
        "/hearth/made/",
        "/hearth/static/",
        "/hearth/creation/",
        "/gradio_api/file=",
        "/static/",
        "/assets/",
    ]
    paths = [
        place + spelling.format(target)
        for spelling in SPELLINGS
        for target in ("secret.wav", "settings.json", absolute.lstrip("/"))
        for place in places
    ]
    for address in (owners, str(ada.base_url)):
        assert b"--h-" in told(address, ["/hearth/static/hearth.css"], cookies(ada))[0], "the way of asking is right"
        for path, said in zip(paths, told(address, paths, cookies(ada)), strict=True):
            assert secret.encode() not in said, (address, path)


def test_a_symlink_leads_nowhere(desk: Desk, owners: str) -> None:
    id_ = kept(desk, "owner")
    path = desk.keeper.shelf.get(id_).path
    assert patient_http.get(f"{owners}hearth/creation/{id_}").status_code == 200
    target = path.with_name("other.wav")
    path.rename(target)
    path.symlink_to(target)
    assert patient_http.get(f"{owners}hearth/creation/{id_}").status_code == 404


def test_a_guest_reads_only_what_is_theirs(desk: Desk, ada: httpx.Client, eve: httpx.Client) -> None:
    adas, eves = name_of(ada, desk), name_of(eve, desk)
    assert adas != eves and adas.startswith("visitor-")
    for client, own, other in ((ada, adas, eves), (eve, eves, adas)):
        mine, theirs, owners = kept(desk, own), kept(desk, other), kept(desk, "owner")
        assert client.get(f"/hearth/creation/{mine}").status_code == 200
        assert client.get(f"/hearth/creation/{theirs}").status_code == 404
        assert client.get(f"/hearth/creation/{owners}").status_code == 404
        job = desk.keeper.shelf.get(theirs).job
        assert client.get(f"/hearth/made/{job}/part.wav").status_code == 404
        assert client.get(f"/hearth/made/{desk.keeper.shelf.get(mine).job}/part.wav").status_code == 200


def test_an_upload_is_its_senders_alone(naive: str, ada: httpx.Client, eve: httpx.Client) -> None:
    file = {"files": ("a.png", png(5, 5), "image/png")}
    with patient_http.Client() as one, patient_http.Client() as two:
        for each in (one, two):
            each.post(f"{naive}login", data={"username": "owner", "password": "secret"})
        (path,) = one.post(f"{naive}gradio_api/upload", files=file).json()
        assert two.get(f"{naive}gradio_api/file={path}").status_code == 200
    (path,) = ada.post("/gradio_api/upload", files=file).json()
    assert ada.get(f"/gradio_api/file={path}").status_code == 200
    assert eve.get(f"/gradio_api/file={path}").status_code == 404
    clip = {"path": path, "meta": {"_type": "gradio.FileData"}}
    body = {"fn_index": 0, "data": [clip], "session_hash": "mine"}
    assert eve.post("/gradio_api/run/predict", json=body).status_code == 403
    assert eve.post("/gradio_api/queue/join", json=body).status_code == 403


# What does not exist for a guest.


@pytest.mark.parametrize(
    "path",
    [
        "hearth/models",
        "hearth/shelf/1/delete",
        "hearth/machine",
        "hearth/upkeep",
        "hearth/upkeep/restart",
        "hearth/upkeep/assistants",
        "hearth/share",
        "hearth/export",
        "hearth/sheet",
        "hearth/queue/x/up",
        "hearth/engine/repair",
        "hearth/voices",
        "gradio_api/info",
        "gradio_api/openapi.json",
        "openapi.json",
        "docs",
        "redoc",
        "monitoring",
        "monitoring/summary",
        "gradio_api/runs",
        "gradio_api/process_recording",
        "gradio_api/proxy=http://127.0.0.1:1/",
        "gradio_api/call/hidden",
        "gradio_api/deep_link",
        "v1/models",
        "sdapi/v1/options",
        "gradio_api/mcp/",
        "gradio_api/vibe-code",
        "gradio_api/dev/reload",
        "login",
        "gradio_api/component_server",
    ],
)
def test_hidden_places_do_not_exist(ada: httpx.Client, path: str) -> None:
    for answer in (ada.get(f"/{path}"), ada.post(f"/{path}", json={})):
        assert answer.status_code in (401, 404, 405) and "secret" not in answer.text


def test_every_event_of_the_guests_window_is_a_guests(desk: Desk, ada: httpx.Client, naive: str) -> None:
    """All events of the window, by their numbers: none downloads, forces a plan, changes settings or sees the shelf."""
    with patient_http.Client() as client:
        client.post(f"{naive}login", data={"username": "owner", "password": "secret"})
        hidden = client.post(f"{naive}gradio_api/run/predict", json={"fn_index": 0, "data": ["reached"]})
        assert hidden.json()["data"] == ["reached"]
    before = desk.keeper.home.settings.read_bytes() if desk.keeper.home.settings.exists() else b""
    config = ada.get("/config").json()
    ids = {each["props"].get("elem_id", "") for each in config["components"]}
    assert not any(each.startswith(("machine-", "models-")) for each in ids if each)
    for number in range(len(config["dependencies"]) + 40):
        for data in ([], ["dia-1.6b"], [1.0], [None] * 16):
            ada.post(
                "/gradio_api/run/predict", json={"fn_index": number, "data": data, "session_hash": "probe"}, headers={"Connection": "close"}
            )
    after = desk.keeper.home.settings.read_bytes() if desk.keeper.home.settings.exists() else b""
    assert before == after and desk.machine.read_choice(OWNER) == desk.machine.read_choice(Person("x", False))
    assert not any(desk.keeper.home.models.iterdir()) and not desk.measuring.job


def test_the_owners_drafts_and_voices_are_not_in_the_page(desk: Desk, tmp_path: Path) -> None:
    desk.settings.put({"speak": {"text": "a private draft"}, "paint": {"prompt": "a private prompt"}})
    with shared(desk) as (address, words, _), guest_client(address, words) as client:
        page = client.get("/").text + client.get("/config").text
        assert "private" not in re.sub(r'"api_visibility": ?"private"', "", page)
        assert str(desk.keeper.home.root) not in page
        seen = client.get("/hearth/live").json()
        assert (
            set(seen) <= {"strip", "queue", "speech", "picture", "making"}
            and seen["making"] is None
            and seen["strip"]["memory"] is None
            and seen["strip"]["machine"] == ""
        )


def test_another_persons_events_are_not_heard(ada: httpx.Client, eve: httpx.Client) -> None:
    joined = ada.post("/gradio_api/queue/join", json={"fn_index": 999, "data": [], "session_hash": "adas"})
    assert joined.status_code != 403
    assert eve.get("/gradio_api/queue/data", params={"session_hash": "adas"}).status_code == 404
    assert eve.get("/gradio_api/heartbeat/adas").status_code == 404
    assert eve.post("/gradio_api/cancel", json={"session_hash": "adas", "fn_index": 0, "event_id": "x"}).status_code == 404


# Limits.


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (SpeechRequest("one " * 501), "guest.letters"),
        (PictureRequest("a red circle", width=2048), "guest.side"),
        (PictureRequest("a red circle", width=512, upscale=4), "guest.side"),
        (PictureRequest("a red circle", steps=51), "guest.steps"),
        (PictureRequest("a red circle", batch=3), "guest.batch"),
        (PictureRequest("a red circle", image="/etc/passwd"), "guest.files"),
    ],
)
def test_a_guests_limits(desk: Desk, asked: SpeechRequest | PictureRequest, key: str) -> None:
    with pytest.raises(Trouble) as caught:
        desk.jobs.begin(asked, Person("visitor-1", False))
    assert caught.value.sentence.key == key
    if key != "guest.files":
        desk.keeper.stop(desk.jobs.begin(asked, OWNER))


def test_what_a_guest_leaves_open_is_within_the_limits(desk: Desk) -> None:
    """The page sends a size with everything; a request made by hand need not, and its model's own would be taken."""
    starter = catalog.find("starter-painter").settings
    desk.settings.put({"visitors": {"steps": 5, "side": 256}})
    try:
        job = desk.jobs.begin(PictureRequest("a red circle"), Person("visitor-4", False))
        asked = desk.keeper.journal.get(job).request
        desk.keeper.stop(job)
        assert isinstance(asked, PictureRequest)
        assert (asked.width, asked.height, asked.steps) == (starter.width, starter.height, 5)
        with pytest.raises(Trouble) as caught:
            desk.jobs.begin(PictureRequest("a red circle", upscale=4), Person("visitor-4", False))
        assert caught.value.sentence.key == "guest.side"
    finally:
        desk.settings.put({"visitors": {}})


def test_a_guest_who_must_wait_writes_nothing(desk: Desk, ada: httpx.Client) -> None:
    values: dict[str, object] = {"paint-prompt": "a red circle", "paint-image": [file_data(uploaded(ada, "a.png", png(64, 64)))]}
    for _ in range(2):
        assert press(ada, "paint-go", values).status_code == 200
    folders = set((desk.keeper.home.scratch / "uploads").iterdir())
    assert "queue already" in press(ada, "paint-go", values).text
    fresh = [each for each in set((desk.keeper.home.scratch / "uploads").iterdir()) - folders if (each / "start.png").exists()]
    waiting = desk.keeper.journal.list_waiting()
    for job in waiting:
        desk.keeper.stop(job.id)
    assert len(waiting) == 2 and all(isinstance(job.request, PictureRequest) and job.request.image for job in waiting)
    assert not fresh


def test_a_starting_picture_has_one_mask(desk: Desk, ada: httpx.Client) -> None:
    """Twenty layers of 36 million pixels took 3.4 GB, sixty 8 GB: Gradio decoded all before anybody could refuse the request."""
    large, small = (file_data(uploaded(ada, "large.png", png(*sides))) for sides in ((6000, 6000), (64, 32)))
    folders = set((desk.keeper.home.scratch / "uploads").glob("*/start.png"))

    def paint(picture: object, layers: list[object]) -> str:
        return press(ada, "paint-go", {"paint-prompt": "a boat", "paint-image": [picture, *layers]}).text

    with patch.object(Image.Image, "load", side_effect=AssertionError("decoded")):
        assert "can have one mask, not 5" in paint(large, [large] * 5)
        assert "names 61 files" in paint(large, [large] * 60)
        assert "has another shape" in paint(large, [small])
    assert set((desk.keeper.home.scratch / "uploads").glob("*/start.png")) == folders


def test_guests_take_turns_at_decoding() -> None:
    """One picture for each household; guests in all their places keep the owner waiting no moment."""
    turns = start_picture.Turns()
    one, two, other = (Person(new_guest(household), False) for household in ("ada", "ada", "eve"))

    def decode_as_owner() -> None:
        with turns.take(OWNER):
            pass

    with turns.take(one):
        with pytest.raises(Trouble, match="still being read"), turns.take(two):
            pass
        with turns.take(other):
            owner = threading.Thread(target=decode_as_owner, daemon=True)
            owner.start()
            owner.join(WAIT_S)
            assert not owner.is_alive()
    with turns.take(two):
        pass


def test_a_mask_is_what_was_painted(desk: Desk, tmp_path: Path) -> None:
    start, layer, empty = (tmp_path / f"{name}.png" for name in ("start", "layer", "empty"))
    Image.new("RGBA", (64, 64), "red").save(start)
    drawn = Image.new("RGBA", (64, 64))
    drawn.save(empty)
    drawn.paste((184, 66, 15, 153), (0, 0, 32, 64))
    drawn.save(layer)

    def save(*layers: Path) -> tuple[str | None, str | None]:
        return start_picture.save_pictures(desk, [str(start), *map(str, layers)], OWNER)

    picture, mask = save(layer)
    assert picture and mask
    assert Image.open(picture).getpixel((0, 0)) == (255, 0, 0)
    assert Image.open(mask).mode == "L" and Image.open(mask).getcolors() == [(2048, 0), (2048, 255)]
    assert save(empty)[1] is None and save()[1] is None and start_picture.save_pictures(desk, None, OWNER) == (None, None)
    start.write_bytes(start.read_bytes()[:60])
    with pytest.raises(Trouble, match="may be damaged"):
        save()


def test_a_guest_takes_out_what_is_theirs(desk: Desk, ada: httpx.Client, eve: httpx.Client) -> None:
    assert press(ada, "speak-go", {"speak-text": "[S1] Hello."}).status_code == 200
    (job,) = desk.keeper.journal.list_waiting()
    assert eve.post(f"/hearth/queue/{job.id}/remove").status_code == 404
    assert ada.post(f"/hearth/queue/{job.id}/up").status_code == 404
    assert [each.id for each in desk.keeper.journal.list_waiting()] == [job.id]
    assert ada.post(f"/hearth/queue/{job.id}/remove").status_code == 200 and not desk.keeper.journal.list_waiting()


def test_a_sound_in_another_format_leaves_nothing_behind(desk: Desk, ada: httpx.Client) -> None:
    made = kept(desk, name_of(ada, desk))
    soundfile.write(desk.jobs.find_creation(made, OWNER).path, np.zeros(4410), 44100)
    folders = set((desk.keeper.home.scratch / "uploads").iterdir())
    assert ada.get(f"/hearth/creation/{made}?format=flac").content[:4] == b"fLaC"
    until(lambda: set((desk.keeper.home.scratch / "uploads").iterdir()) == folders)


def test_a_guest_has_no_say_in_model_or_plan(desk: Desk) -> None:
    job = desk.jobs.begin(SpeechRequest("one", model="/etc/passwd"), Person("visitor-2", False))
    known = desk.keeper.journal.get(job)
    desk.keeper.stop(job)
    assert isinstance(known.request, SpeechRequest) and known.request.model == "starter-voice"


def test_a_flood_of_jobs(desk: Desk, eve: httpx.Client, naive: str) -> None:
    """Gradio's own queue takes all of them; of one guest two may wait."""
    with patient_http.Client(base_url=naive) as client:
        client.post("login", data={"username": "owner", "password": "secret"})
        asked = {"data": ["again"], "fn_index": 0, "session_hash": "flood"}
        assert {client.post("gradio_api/queue/join", json=asked).status_code for _ in range(60)} == {200}
    before = len(desk.keeper.journal.list_waiting())
    answers = [press_fast(eve, "speak-go", {"speak-text": "[S1] Again."}) for _ in range(30)]
    waiting = [job for job in desk.keeper.journal.list_waiting() if job.owner.startswith("visitor-")]
    assert len(waiting) - before <= 2 and sum("queue already" in each.text for each in answers) >= 27
    for job in waiting:
        desk.keeper.stop(job.id)
    refused = 0
    for n in range(2 * QUEUE_MOST):
        try:
            desk.jobs.begin(SpeechRequest("one"), Person(f"visitor-{n}", False))
        except Trouble:
            refused += 1
    waiting = desk.keeper.journal.list_waiting()
    assert len(waiting) == QUEUE_MOST and refused >= QUEUE_MOST, "one of each address, up to a bound"
    mine = desk.jobs.begin(SpeechRequest("hello"), OWNER)
    assert desk.keeper.journal.list_waiting()[0].id == mine, "the owner's goes first"
    for job in desk.keeper.journal.list_waiting():
        desk.keeper.stop(job.id)


def test_a_share_of_the_time(desk: Desk) -> None:
    job = desk.keeper.journal.queue(SpeechRequest("one"), desk.machine.read_choice(OWNER), "visitor-9")
    now_s = time.time()
    desk.keeper.database.write("UPDATE jobs SET state='finished', started_s=?, ended_s=? WHERE id=?", now_s - 2000, now_s - 100, job.id)
    with pytest.raises(Trouble) as caught:
        desk.jobs.begin(SpeechRequest("one"), Person("visitor-9", False))
    assert caught.value.sentence.key == "guest.share"
    desk.keeper.database.write("DELETE FROM jobs WHERE id=?", job.id)


# What is too large, too dense, too slow.


def test_a_gigabyte(owners: str, ada: httpx.Client, desk: Desk) -> None:
    """Declared, it is refused before a byte; undeclared, as soon as it is too much; and nothing of it stays."""
    said = raw(
        owners,
        b"POST /gradio_api/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n",
    )
    assert b" 413 " in said
    uploads = desk.keeper.home.scratch / "uploads"
    before = {each for each in uploads.rglob("*") if each.is_file()}

    def much() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
        for _ in range(34):
            yield bytes(1 << 20)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert ada.post("/gradio_api/upload", content=much(), headers=headers).status_code == 413
    assert {each for each in uploads.rglob("*") if each.is_file() and each.stat().st_size > 1 << 20} <= before
    assert ada.get("/hearth/live").status_code == 200


def test_who_sends_all_before_reading_is_told(share: tuple[str, str]) -> None:
    """As the tunnel's program does: on a line closed at once it would meet a reset in place of the answer."""
    body = bytes(request_guard.GUEST_BYTES + 1)
    host = urlsplit(share[0]).netloc
    head = f"POST /gradio_api/upload HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    assert b" 413 " in raw(share[0], head.encode() + body)


def test_gradio_itself_takes_any_size(naive: str) -> None:
    with patient_http.Client() as client:
        client.post(f"{naive}login", data={"username": "owner", "password": "secret"})
        assert client.post(f"{naive}gradio_api/upload", files={"files": ("a.png", bytes(40 << 20))}).status_code == 200


def test_bombs(naive: str, owners: str, ada: httpx.Client, desk: Desk) -> None:
    large = png(20_000, 20_000)
    assert len(large) < 2 << 20
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", bytes(16 << 20))
    with patient_http.Client() as client:
        client.post(f"{naive}login", data={"username": "owner", "password": "secret"})
        for name, data in (("a.png", large), ("b.png", packed.getvalue())):
            assert client.post(f"{naive}gradio_api/upload", files={"files": (name, data, "image/png")}).status_code == 200
    for post in (
        lambda **more: patient_http.post(f"{owners}gradio_api/upload", **more),
        lambda **more: ada.post("/gradio_api/upload", **more),
    ):
        for name, data in (("a.png", large), ("b.png", packed.getvalue()), ("c.wav", packed.getvalue()), ("d.png", b"<script>alert(1)</script>"),
                           ("e.mp3", b"#!/bin/sh\n"), ("f.png", text_bomb())):  # fmt: skip
            answer = post(files={"files": (name, data, "image/png")})
            assert answer.status_code == 415, name
        assert post(files={"files": ("g.png", png(8, 8), "image/png")}).status_code == 200
    left = [each for each in (desk.keeper.home.scratch / "uploads").rglob("[abcdef].*") if each.stat().st_size > 1000]
    assert not left


def test_a_household_holds_one_of_the_threads_that_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another guest's small file waited 19 s for those of one who sent bombs."""
    checked: list[str] = []
    ends = threading.Event()

    def check(self: object, scope: Scope, paths: list[Path]) -> None:
        if (name := uploads.household(scope)) == "visitor-ada":
            ends.wait(2 * WAIT_S)
        checked.append(name)

    monkeypatch.setattr(uploads.CheckUploads, "_check", check)

    async def send() -> None:
        guard = uploads.CheckUploads(Response(), tmp_path, {})
        async with anyio.create_task_group() as tasks:
            for household in ("ada", "ada", "ada"):
                tasks.start_soon(guard._check_in_time, {KEY: Person(new_guest(household), False)}, [])
            await anyio.wait_all_tasks_blocked()
            with anyio.move_on_after(WAIT_S):
                await guard._check_in_time({KEY: Person(new_guest("eve"), False)}, [])
            ends.set()

    anyio.run(send)
    assert checked == ["visitor-eve", *["visitor-ada"] * 3]


def test_weights_are_the_owners_to_send(owners: str, ada: httpx.Client) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    file = {"files": ("lora.safetensors", struct.pack("<Q", len(header)) + header + bytes(4))}
    (path,) = patient_http.post(f"{owners}gradio_api/upload", files=file).json()
    assert ada.post("/gradio_api/upload", files=file).status_code == 415
    assert Path(path).is_file(), "what a guest may not send is not taken from the owner, who sent the same"
    Path(path).unlink()
    assert ada.post("/gradio_api/upload", files=file).status_code == 415 and not Path(path).exists()


def test_a_refused_upload_removes_only_what_it_wrote(share: tuple[str, str], ada: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two guests send one picture: the second is refused while the first one's is there, checked or still being checked."""
    with guest_client(*share, "Eve", via="198.51.100.7") as eve:  # of another household: one is checked at a time
        refuse_one(ada, eve, monkeypatch)


def refuse_one(ada: httpx.Client, eve: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    file = {"files": ("a.png", png(7, 9), "image/png")}
    (path,) = ada.post("/gradio_api/upload", files=file).json()
    monkeypatch.setattr(guest_files, "HOUSEHOLD_FILES", 0)
    assert eve.post("/gradio_api/upload", files=file).status_code == 415 and Path(path).is_file()
    assert ada.get(f"/gradio_api/file={path}").status_code == 200
    monkeypatch.undo()
    real, begun, both = uploads.check_upload, threading.Barrier(2, timeout=30), {"files": ("b.png", png(9, 7), "image/png")}
    refused = threading.Event()

    def check(path: Path, weights: bool) -> None:
        real(path, weights)
        if begun.wait() == 0:
            raise Trouble(say("upload.none", "This file no longer exists. Send it again."))
        assert refused.wait(30), "the other one's refusal comes first"

    def send(client: httpx.Client) -> httpx.Response:
        answer = client.post("/gradio_api/upload", files=both)
        if answer.status_code == 415:
            refused.set()
        return answer

    monkeypatch.setattr(uploads, "check_upload", check)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(send, (ada, eve)))
    assert sorted(each.status_code for each in answers) == [200, 415]
    (path,) = next(each for each in answers if each.status_code == 200).json()
    assert Path(path).is_file() and not uploads.ARRIVALS._requests


def test_slow_loris(naive: str, desk: Desk) -> None:
    """Connections that never send a whole request: Gradio keeps them, here they are closed after a while."""
    with owners_server(desk, idle_s=1.0) as owners:
        held = [slowly(naive) for _ in range(5)]
        mine = [slowly(owners) for _ in range(20)]
        until(lambda: all(map(closed, mine)), 60)
        assert not any(map(closed, held))
        for each in (*held, *mine):
            each.close()


def test_a_body_that_drips_is_cut_off(owners: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "GRACE_S", 0.5)
    said = raw(owners, b"POST /hearth/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{")
    assert b" 408 " in said


def test_every_answer_is_taken_as_what_it_says(owners: str, ada: httpx.Client) -> None:
    for answer in (patient_http.get(f"{owners}hearth/live"), ada.get("/hearth/static/hearth.css"), ada.get("/nowhere")):
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["x-frame-options"] == "SAMEORIGIN"


def test_every_page_says_what_it_may_run(owners: str, ada: httpx.Client, share: tuple[str, str]) -> None:
    """The guest's own names its scripts, each of them, by a word that is new each time; all others have none that run."""
    words = set()
    own, others = (
        [ada.get("/"), ada.get("/")],
        [ada.get("/login"), patient_http.get(share[0]), patient_http.get(owners), ada.get("/nowhere")],
    )
    for answer in (*own, *others):
        policy = dict(each.strip().split(" ", 1) for each in answer.headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["object-src"], policy["frame-ancestors"]) == ("'self'", "'none'", "'self'")
        assert "unsafe-inline" not in policy["script-src"]
        (word,) = re.findall(r"'nonce-([\w-]{20,})'", policy["script-src"])
        words.add(word)
        scripts = re.findall("<script[^>]*>", answer.text)
        if answer in own:
            assert len(scripts) > 5 and all(f'nonce="{word}"' in each for each in scripts)
        else:
            assert word not in answer.text
    assert len(words) == 6


def test_a_server_without_a_guard_serves_nobody(desk: Desk) -> None:
    assert who(object()) == NOBODY
    with pytest.raises(Trouble):
        desk.jobs.find_creation(kept(desk, "owner"), who(object()))


# Small things.


def png(width: int, height: int) -> bytes:
    """A valid picture of one colour, as small as it goes."""
    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)) + rows.flush()
    return (
        PNG
        + make_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
        + make_chunk(b"IDAT", data)
        + make_chunk(b"IEND", b"")
    )


def file_data(path: str) -> dict[str, object]:
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


def uploaded(client: httpx.Client, name: str, body: bytes) -> str:
    return str(client.post("/gradio_api/upload", files={"files": (name, body)}).json()[0])


def text_bomb() -> bytes:
    head = make_chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 1, 0, 0, 0, 0))
    return PNG + head + make_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(80 << 20), 9)) + make_chunk(b"IEND", b"")


def raw(address: str, request: bytes) -> bytes:
    with socket.create_connection((urlsplit(address).hostname or "", urlsplit(address).port or 0), timeout=60) as line:
        line.sendall(request)
        said = b""
        while b"\r\n\r\n" not in said or b"connection: close" in said.lower():
            piece = line.recv(65536)
            if not piece:
                break
            said += piece
        return said


def told(address: str, paths: list[str], cookie: str) -> list[bytes]:
    """What is answered to each, asked as it is written, over one line while it holds."""
    line = http.client.HTTPConnection(urlsplit(address).hostname or "", urlsplit(address).port, timeout=60)
    said = []
    for path in paths:
        try:
            line.putrequest("GET", path, skip_accept_encoding=True)
            line.putheader("Cookie", cookie)
            line.endheaders()
            said.append(line.getresponse().read())
        except http.client.HTTPException:
            line.close()  # so badly written that the server hung up
            said.append(b"")
    line.close()
    return said


def cookies(client: httpx.Client) -> str:
    return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def slowly(address: str) -> socket.socket:
    line = socket.create_connection((urlsplit(address).hostname or "", urlsplit(address).port or 0), timeout=WAIT_S)
    line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-")
    line.setblocking(False)
    return line


def closed(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def press_fast(client: httpx.Client, button: str, values: dict[str, Any]) -> httpx.Response:
    return press(client, button, values)
