"""Other programs on a network: A1111's clients by Basic, OpenAI's and Gradio's by key or password, each refused in its own API's shape. No engine."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import openai
import pytest
from gradio_client import Client
from gradio_client.exceptions import AuthenticationError
from PIL import Image

from app.engine.jobs.events import Finished
from app.engine.jobs.journal import Job
from app.engine.jobs.request import PictureRequest
from app.engine.pictures.files import picture_settings
from app.ui import launch
from app.ui.access import guesses
from app.ui.launch import LaunchOptions
from app.ui.state.desk import Desk
from tests.support import patient_http
from tests.support.both_servers import CPU, keep_creations
from tests.support.guests import desk_at
from tests.support.places import TOP

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
PASSWORD, SECRET = "a kiln of nine embers", "a key of nine embers"
BEARER = {"Authorization": f"Bearer {SECRET}"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("network")) as desk:
        yield desk


@pytest.fixture(scope="module")
def address(desk: Desk) -> Iterator[str]:
    """The owner's server as `--listen` guards it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEARTH_PASSWORD", PASSWORD)
        patch.setenv("HEARTH_API_KEY", SECRET)
        middleware, _ = launch.build_guards(desk.keeper.home, "0.0.0.0")
        keep_creations(desk)
        desk.keeper.status.set(hardware=CPU)
        yield launch.start_server(LaunchOptions(desk.keeper.home), desk, None, [], middleware)
        gr.close_all(verbose=False)


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong key is answered later than the one before, which test_guesses.py is about."""
    monkeypatch.setattr(guesses, "DELAY_S", 0.0)


@pytest.fixture
def begun(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[PictureRequest]:
    """What was queued: the engine's part is done at once, with a picture that has these settings."""
    submit, begun = desk.keeper.submit, list[PictureRequest]()

    def paint_at_once(request: PictureRequest, *given: Any) -> Job:
        begun.append(request)
        job = submit(request, *given)
        made = replace(request, width=256, height=256, steps=request.steps or 2, guidance=request.guidance or 1.0, seed=7)
        size = Image.open(request.image).size if request.image else (256, 256)
        picture_settings.write(Image.new("RGB", size, "red"), path := tmp_path / f"{job.id}.png", made, "tiny")
        desk.keeper.board.post(job.id, Finished((str(path),), 0.0, 0.0, "steps", 0))
        return job

    monkeypatch.setattr(desk.keeper, "submit", paint_at_once)
    return begun


@pytest.mark.parametrize(
    ("name", "route"), [("webuiapi_txt2img", "txt2img"), ("webuiapi_img2img", "img2img"), ("webuiapi_extra", "extra-single-image")]
)
def test_what_webuiapi_sends_is_done_for_who_logs_in(address: str, begun: list[PictureRequest], name: str, route: str) -> None:
    """Byte for byte as the client wrote it, with the Basic login that it has."""
    body = (TOP / "tests/fixtures/clients" / f"{name}.json").read_bytes()
    for login in (None, ("anybody", "wrong")):
        assert patient_http.post(f"{address}sdapi/v1/{route}", content=body, auth=login).status_code == 401 and not begun
    answer = httpx.post(f"{address}sdapi/v1/{route}", content=body, auth=("anybody", PASSWORD), timeout=60).json()
    picture = Image.open(io.BytesIO(base64.b64decode(answer["image"] if name == "webuiapi_extra" else answer["images"][0])))
    if name == "webuiapi_extra":
        assert picture.size == (48, 24) and not begun
        return
    (request,) = begun
    assert picture.size == (answer["parameters"]["width"], answer["parameters"]["height"]) and request.prompt == "a red ball"
    assert bool(request.image) is bool(request.mask) is (route == "img2img")


def test_openais_client_logs_in_by_the_key(address: str, begun: list[PictureRequest]) -> None:
    with openai.OpenAI(base_url=f"{address}v1", api_key=SECRET, max_retries=0, timeout=60) as client:
        assert {"starter-voice", "starter-painter"} <= {each.id for each in client.models.list()}
        made = client.images.generate(model="starter-painter", prompt="a red ball", response_format="b64_json")
        assert made.data and Image.open(io.BytesIO(base64.b64decode(made.data[0].b64_json or ""))).size == (256, 256)
        edited = client.images.edit(model="starter-painter", prompt="a red ball", image=("a.png", save_png()), mask=("m.png", save_png()))
        assert edited.data and [bool(each.mask) for each in begun] == [False, True]
        with pytest.raises(openai.BadRequestError) as refused:
            client.audio.speech.create(model="tts-1", voice="nobody", input="Hello.")
        assert refused.value.param == "voice"
    for wrong in ("wrong", PASSWORD):
        with openai.OpenAI(base_url=f"{address}v1", api_key=wrong, max_retries=0, timeout=60) as stranger:
            with pytest.raises(openai.AuthenticationError) as turned_away:
                stranger.images.generate(model="starter-painter", prompt="a red ball")
            assert turned_away.value.code == "invalid_api_key" and len(begun) == 2


def save_png() -> bytes:
    made = io.BytesIO()
    Image.new("RGBA", (256, 256), (0, 0, 255, 0)).save(made, "PNG")
    return made.getvalue()


@pytest.mark.parametrize("secret", [PASSWORD, SECRET])
def test_a_client_of_a1111s_logs_in_by_basic(address: str, secret: str) -> None:
    assert patient_http.get(f"{address}sdapi/v1/options", auth=("anybody", secret)).json()["samples_format"] == "png"
    assert patient_http.get(f"{address}v1/models", auth=("anybody", secret)).status_code == 200
    assert patient_http.get(f"{address}hearth/shelf", auth=("anybody", secret)).status_code == 401, "a page is logged in to by its form"


def test_a_refusal_has_the_shape_of_the_api(address: str) -> None:
    for sent in ({"auth": ("anybody", "wrong")}, {"headers": {"Authorization": "Basic &&&"}}, {}):
        refused = patient_http.get(f"{address}sdapi/v1/options", **sent)
        assert refused.status_code == 401 and isinstance(refused.json()["detail"], str) and refused.json()["error"] == "invalid_api_key", (
            sent
        )
        assert "www-authenticate" not in refused.headers, "no browser is to ask for a password and send it by itself from then on"
    assert patient_http.get(f"{address}v1/models").json()["error"]["code"] == "invalid_api_key"
    assert patient_http.get(f"{address}v1/nothing", headers=BEARER).json()["error"]["code"] == "not_found"


def test_what_an_answer_links_to_opens_with_the_key(address: str) -> None:
    link = f"{address}hearth/creation/2"
    assert (
        patient_http.get(link).status_code == 401 and patient_http.get(link, headers={"Authorization": "Bearer wrong"}).status_code == 401
    )
    assert patient_http.get(link, headers=BEARER).headers["content-type"] == "image/png"
    assert patient_http.get(f"{address}hearth/shelf", headers=BEARER).status_code == 401, "a key is for programs"


def test_a_page_of_another_site_calls_the_apis_with_the_key_and_nothing_else(address: str) -> None:
    """As clients that run in a browser do; its question before was allowed, and then the call refused."""
    site = {"Origin": "http://tavern.example:8000", "Host": "10.9.9.1", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    before = {**site, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    asked = patient_http.options(f"{address}v1/audio/speech", headers=before).headers
    assert asked["access-control-allow-origin"] == site["Origin"] and "authorization" in asked["access-control-allow-headers"]
    listed = patient_http.get(f"{address}v1/models", headers={**site, **BEARER})
    assert listed.status_code == 200 and listed.headers["access-control-allow-origin"] == site["Origin"]
    painted = patient_http.post(f"{address}sdapi/v1/txt2img", json={"steps": -1}, headers={**site, **BEARER})
    assert painted.status_code == 400 and painted.json()["detail"], "heard, and refused for what it asks"
    keyless = patient_http.get(f"{address}v1/models", headers=site)
    assert keyless.status_code == 401 and keyless.headers["access-control-allow-origin"] == site["Origin"]
    login = patient_http.post(f"{address}login", data={"password": PASSWORD}, headers={"Origin": address.rstrip("/")})
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in login.cookies.items())}
    assert login.cookies and patient_http.get(f"{address}hearth/shelf", headers=cookie).status_code == 200
    assert patient_http.get(f"{address}v1/models", headers=site | cookie).status_code == 401, "a login in the same browser lends nothing"
    for word in (PASSWORD, SECRET):
        assert patient_http.get(f"{address}sdapi/v1/samplers", auth=("anybody", word), headers=site).status_code == 401, (
            "nor does a password"
        )
    for own in ("hearth/shelf", "hearth/creation/2", "gradio_api/info", ""):
        refused = patient_http.get(f"{address}{own}", headers={**site, **BEARER})
        assert refused.status_code == 403, own


def test_gradios_client_logs_in(address: str) -> None:
    for client in (Client(address, auth=("anybody", PASSWORD), verbose=False), Client(address, headers=BEARER, verbose=False)):
        assert client.predict(api_name="/machine")["name"] == "light"
        client.close()
    with pytest.raises(AuthenticationError):
        Client(address, auth=("anybody", "wrong"), verbose=False)
