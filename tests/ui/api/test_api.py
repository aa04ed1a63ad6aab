"""Other programs, with their real clients: openai, gradio_client, and what A1111's clients send. A real engine with tiny models."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sys
import threading
import time
import wave
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import openai
import pytest
import soundfile
from gradio_client import Client
from PIL import Image

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.keeper import worker
from app.engine.keeper.keeper import Keeper
from app.engine.speech.sound import stream_encoding
from app.ui import routes
from app.ui.api import a1111, assistants, gradio_endpoints
from app.ui.api import openai as api_openai
from app.ui.launch import build_guards
from app.ui.state.desk import Desk
from app.ui.state.settings import Settings
from tests.support import patient_engine, patient_http
from tests.support.guests import launch
from tests.support.places import TOP
from tests.support.tiny_pictures import save
from tests.support.tiny_voices import STARTER
from tests.support.waiting import until
from tests.support.window import small_voice

pytestmark = [
    pytest.mark.long,
    # Gradio's launch leaves sockets and loops to the garbage collector, and its servers warn about themselves.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


MCP = find_spec("mcp") is not None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    top = tmp_path_factory.mktemp("api")
    voice, painter = small_voice(top / "tiny-voice"), save("sd15", top / "tiny-painter")
    place = home(top / "home").create()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(place.scratch / "uploads"))
        patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
        patch.setattr(worker, "main", patient_engine.main)
        keeper = Keeper(place)
        desk = Desk(keeper, Settings(place.settings))
        desk.settings.put({"models": [str(voice), str(painter)], "paint": {"model": str(painter)}})
        with gr.Blocks(analytics_enabled=False) as blocks:
            gradio_endpoints.build(desk)
        blocks.queue(default_concurrency_limit=None)
        app_kwargs = {"routes": [*routes.routes(desk), *api_openai.routes(desk), *a1111.routes(desk)], "middleware": build_guards(place)[0]}
        address = launch(blocks, mcp_server=MCP, app_kwargs=app_kwargs)
        assistants.answer_in_content(blocks)
        until(lambda: keeper.state.ready, 240)
        yield desk, address
        blocks.close(verbose=False)
        keeper.close()


@pytest.fixture(scope="module")
def client(served: tuple[Desk, str]) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served[1]}v1", api_key="none on loopback", max_retries=0, timeout=240) as client:
        yield client


def test_models(client: openai.OpenAI) -> None:
    ids = [each.id for each in client.models.list()]
    assert {"tiny-voice", "tiny-painter"} <= set(ids), "no path is told"
    assert client.models.retrieve("tiny-voice").id == "tiny-voice"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-none")


needs_av = pytest.mark.skipif(find_spec("av") is None, reason="an extra")
PAUSE_S = 30.0
"""All that the tiny voice says is shorter."""
TWO_PARTS = f"[S1] Hello there. (pause {PAUSE_S:g}s) [S2] Hi."
FOUR_PARTS = f"{TWO_PARTS} (pause 0.1s) [S1] Well then. (pause 0.1s) [S2] Bye."
FORMATS = [
    "mp3",
    "pcm",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("opus", "flac", "wav")),
    pytest.param("aac", marks=[needs_av, pytest.mark.slow]),
]
"""OpenAI's page lists all of these. test_stream_encoding.py has each of them without a server."""


def seconds(heard: bytes, wanted: str) -> float:
    """Read by a decoder of its own, to its end; a stream does not say at its beginning how long it is."""
    if wanted == "pcm":
        assert len(heard) % 2 == 0
        return len(heard) / 48_000
    if wanted in ("aac", "flac"):
        av = pytest.importorskip("av")
        with av.open(io.BytesIO(heard)) as read:
            assert read.format.name == wanted
            return sum(frame.samples / frame.sample_rate for frame in read.decode(audio=0))
    names = {"wav": "WAV", "mp3": "MP3", "opus": "OGG"}
    with soundfile.SoundFile(io.BytesIO(heard)) as read:
        assert read.format in names[wanted] or read.format.startswith(names[wanted])
        return sum(len(block) for block in read.blocks(4096)) / read.samplerate


@pytest.mark.parametrize("wanted", FORMATS)
def test_speech_streamed(client: openai.OpenAI, wanted: str) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tiny-voice",
        voice="alloy",
        input=TWO_PARTS,
        response_format=wanted,  # type: ignore[arg-type]
    ) as answer:
        assert seconds(b"".join(answer.iter_bytes()), wanted) > PAUSE_S


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["mp3", "pcm", pytest.param("aac", marks=needs_av)])
def test_speech_in_one_piece(client: openai.OpenAI, wanted: str) -> None:
    heard = client.audio.speech.create(model="tiny-voice", voice="alloy", input="Hello.", response_format=wanted)  # type: ignore[arg-type]
    assert seconds(heard.content, wanted) > 0.05


@pytest.mark.slow
def test_speech_as_events(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tiny-voice", voice="alloy", input=TWO_PARTS, response_format="opus", stream_format="sse"
    ) as answer:
        told = [json.loads(line.removeprefix("data: ")) for line in answer.read().decode().split("\n\n") if line]
    assert told[-1]["type"] == "speech.audio.done" and len(told) > 2, "part by part"
    assert seconds(b"".join(base64.b64decode(each["audio"]) for each in told[:-1]), "opus") > PAUSE_S


@pytest.mark.slow
def test_streamed_speech_comes_in_parts(client: openai.OpenAI) -> None:
    """Beside other programs whoever asks may be woken only when all is there: one of three must see it come."""
    apart_s = []
    for _ in range(3):
        with client.audio.speech.with_streaming_response.create(
            model="tiny-voice", voice="alloy", input=FOUR_PARTS, response_format="wav", stream_format="audio"
        ) as answer:
            came = [(time.monotonic(), piece) for piece in answer.iter_bytes()]
        sound = b"".join(piece for _, piece in came)
        assert sound[:4] == b"RIFF" and sound[8:12] == b"WAVE" and sound.count(b"RIFF") == 1
        with wave.open(io.BytesIO(sound)) as read:
            assert read.getframerate() == STARTER.rate
        apart_s.append(came[-1][0] - came[0][0])
        if apart_s[-1] > 0.05:
            return
    raise AssertionError(f"the first part was there before the last: {apart_s}")


def test_what_is_wrong_is_said(client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(openai.BadRequestError, match="script is empty"):
        client.audio.speech.create(model="tiny-voice", voice="alloy", input=" ")
    with pytest.raises(openai.BadRequestError, match=r"The format wma is not available\. Choose one of mp3, opus, aac, flac, wav, pcm"):
        client.audio.speech.create(model="tiny-voice", voice="alloy", input="x", response_format="wma")  # type: ignore[arg-type]
    monkeypatch.setattr(stream_encoding, "find_spec", lambda name: None)
    with pytest.raises(openai.BadRequestError, match="AAC needs the library PyAV"):
        client.audio.speech.create(model="tiny-voice", voice="alloy", input="x", response_format="aac")
    with pytest.raises(openai.BadRequestError, match="is not a valid size"):
        client.images.generate(model="tiny-painter", prompt="x", size="large")


def test_pictures(client: openai.OpenAI, served: tuple[Desk, str]) -> None:
    made_ = client.images.generate(model="tiny-painter", prompt="a red ball", n=2, size="64x64", extra_body={"steps": 2, "seed": 4})
    pictures = [Image.open(io.BytesIO(base64.b64decode(each.b64_json or ""))) for each in made_.data or ()]
    assert [each.size for each in pictures] == [(64, 64)] * 2
    linked = client.images.generate(model="tiny-painter", prompt="a red ball", size="64x64", response_format="url", extra_body={"steps": 2})
    assert linked.data and linked.data[0].url
    assert patient_http.get(linked.data[0].url).headers["content-type"] == "image/png"
    streamed = client.images.generate(
        model="tiny-painter",
        prompt="a red ball",
        n=2,
        size="64x64",
        output_format="webp",
        stream=True,
        partial_images=2,
        extra_body={"steps": 8, "seed": 4},
    )
    events = list(streamed)
    assert [each.type.rpartition(".")[2] for each in events][-2:] == ["completed"] * 2
    assert Image.open(io.BytesIO(base64.b64decode(events[-1].b64_json))).format == "WEBP"
    with pytest.raises(openai.BadRequestError, match="must be a number from 64"):
        client.images.generate(model="tiny-painter", prompt="a red ball", size="64x60", stream=True)


def test_edits(client: openai.OpenAI) -> None:
    start, mask = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (64, 64), "blue").save(start, "PNG")
    clear = Image.new("RGBA", (64, 64), (0, 0, 0, 255))
    clear.paste((0, 0, 0, 0), (0, 0, 32, 64))
    clear.save(mask, "PNG")
    edited = client.images.edit(
        model="tiny-painter",
        image=("a.png", start.getvalue()),
        mask=("m.png", mask.getvalue()),
        prompt="a red ball",
        size="64x64",
        extra_body={"steps": 2},
    )
    assert edited.data and edited.data[0].b64_json
    picture = Image.open(io.BytesIO(base64.b64decode(edited.data[0].b64_json))).convert("RGB")
    assert picture.size == (64, 64)
    kept, new = picture.crop((40, 0, 64, 64)), picture.crop((0, 0, 24, 64))
    assert distance(kept, "blue") < distance(new, "blue"), "only what was clear is painted anew"
    with pytest.raises(openai.BadRequestError, match="not a picture"):
        client.images.edit(model="tiny-painter", image=("a.png", b"PK\3\4 zip"), prompt="x")
    for kind in ("multipart/form-data", "multipart/form-data; boundary=b"):
        broken = patient_http.post(f"{client.base_url}images/edits", content=b"--b\r\n\r\n", headers={"Content-Type": kind})
        assert broken.status_code == 400 and "form cannot be read" in broken.json()["error"]["message"], broken.text


def distance(picture: Image.Image, colour: str) -> float:
    flat = Image.new("RGB", picture.size, colour).tobytes()
    return sum(abs(a - b) for a, b in zip(picture.tobytes(), flat, strict=True)) / len(flat)


def test_a1111(served: tuple[Desk, str]) -> None:
    _, address = served
    with httpx.Client(base_url=f"{address}sdapi/v1", timeout=240) as client:
        assert "DPM++ 2M Karras" in [each["name"] for each in client.get("/samplers").json()]
        assert [each["title"] for each in client.get("/sd-models").json()].count("tiny-painter") == 1
        assert client.get("/options").json()["sd_model_checkpoint"] == "tiny-painter"
        assert client.post("/options", json={"sd_model_checkpoint": "tiny-painter"}).status_code == 200
        assert client.post("/options", json={"sd_model_checkpoint": "/etc/passwd"}).status_code == 404
        asked = {
            "prompt": "a red ball",
            "steps": 2,
            "width": 64,
            "height": 64,
            "seed": 7,
            "sampler_name": "Euler a",
            "batch_size": 1,
            "n_iter": 2,
            "cfg_scale": 5,
        }
        painted = client.post("/txt2img", json=asked).json()
        info = json.loads(painted["info"])
        assert len(painted["images"]) == len(info["infotexts"]) == 2 and (info["seed"], info["steps"], info["sampler_name"]) == (
            7,
            2,
            "Euler a",
        )
        assert (info["width"], info["height"], info["cfg_scale"]) == (64, 64, 5.0) and "a red ball\nSteps: 2" in info["infotexts"][0]
        again = client.post("/txt2img", json=asked).json()
        assert pixels(again["images"][0]) == pixels(painted["images"][0]), "the same seed, the same picture"
        start = "data:image/png;base64," + painted["images"][0]
        changed = client.post("/img2img", json={**asked, "init_images": [start], "n_iter": 1, "steps": 4, "denoising_strength": 0.6}).json()
        assert len(changed["images"]) == 1 and pixels(changed["images"][0]) != pixels(painted["images"][0])
        assert client.post("/img2img", json={**asked, "init_images": []}).status_code == 400
        assert client.post("/img2img", json={**asked, "init_images": ["&&&"]}).status_code == 400
        assert client.post("/txt2img", json={**asked, "batch_size": 100}).status_code == 400
        idle = client.get("/progress").json()
        assert idle["progress"] == 0 and idle["state"]["job_count"] == 0


@pytest.mark.parametrize(
    ("name", "route"), [("webuiapi_txt2img", "txt2img"), ("sillytavern_txt2img", "txt2img"), ("webuiapi_img2img", "img2img")]
)
def test_a_real_clients_request_is_painted(served: tuple[Desk, str], name: str, route: str) -> None:
    body = (TOP / "tests" / "fixtures" / "clients" / f"{name}.json").read_bytes()
    answer = httpx.post(f"{served[1]}sdapi/v1/{route}", content=body, timeout=240).json()
    with Image.open(io.BytesIO(base64.b64decode(answer["images"][0]))) as opened:
        picture = opened.convert("RGB")
    assert picture.size == (64, 64) and (answer["parameters"]["width"], json.loads(answer["info"])["steps"]) == (64, 2)
    if route == "img2img":
        kept, new = picture.crop((0, 0, 24, 64)), picture.crop((40, 0, 64, 64))
        assert distance(kept, "blue") < distance(new, "blue"), "the mask was to be inverted"


def test_what_had_no_effect_is_told_and_not_echoed_as_done(served: tuple[Desk, str], tmp_path: Path) -> None:
    desk, address = served
    flux = save("flux", tmp_path / "tiny-flux")
    desk.settings.change("models", [], lambda known: [*known, str(flux)])
    asked = {"prompt": "a ball", "negative_prompt": "fog", "sampler_name": "Euler a", "steps": 1, "width": 64, "height": 64}
    chosen = {"override_settings": {"sd_model_checkpoint": "tiny-flux"}}
    answer = httpx.post(f"{address}sdapi/v1/txt2img", json=asked | chosen, timeout=240).json()
    info, picture = json.loads(answer["info"]), Image.open(io.BytesIO(base64.b64decode(answer["images"][0])))
    assert (info["negative_prompt"], info["sampler_name"]) == ("", "Automatic") and "no negative prompt" in info["comments"]
    assert (answer["parameters"]["negative_prompt"], answer["parameters"]["sampler_name"]) == ("", "Automatic")
    assert "a ball" in str(picture.info) and "fog" not in str(picture.info) and "fog" not in str(info["infotexts"])
    client = Client(address, verbose=False)
    painted = client.submit("a ball", negative="fog", width=64, height=64, steps=1, model="tiny-flux", api_name="/paint").result()
    assert any("no negative prompt" in each for each in painted["notes"])
    client.close()


def pixels(text: str) -> bytes:
    return Image.open(io.BytesIO(base64.b64decode(text))).tobytes()


def test_a1111_progress_and_interrupt(served: tuple[Desk, str]) -> None:
    _, address = served
    answers: list[httpx.Response] = []
    asked = {"prompt": "a red ball", "steps": 150, "width": 256, "height": 256}
    with httpx.Client(base_url=f"{address}sdapi/v1", timeout=240) as client:
        worker = threading.Thread(target=lambda: answers.append(client.post("/txt2img", json={**asked, "batch_size": 8})))
        worker.start()
        until(lambda: 0 < patient_http.get(f"{address}sdapi/v1/progress").json()["progress"] < 1, 120)
        patient_http.post(f"{address}sdapi/v1/interrupt", json={})
        worker.join(timeout=120)
    assert not worker.is_alive() and answers[0].status_code in (200, 400)


def test_gradio_client(served: tuple[Desk, str]) -> None:
    _, address = served
    client = Client(address, verbose=False)
    assert client.predict(api_name="/machine")["ready"] is True
    job = client.submit("a red ball", width=64, height=64, steps=3, model="tiny-painter", api_name="/paint")
    events = list(job)
    assert [each["event"] for each in events].count("step") >= 1 and events[-1]["event"] == "finished"
    assert Path(events[-1]["files"][0]).suffix == ".png" and patient_http.get(address + events[-1]["urls"][0]).status_code == 200
    spoken = client.submit("Hello.", model="tiny-voice", api_name="/speak").result()
    assert spoken["event"] == "finished"
    with pytest.raises(Exception, match="empty"):
        client.predict("", api_name="/speak")
    holders = {
        each.state_holder for each in gr.Blocks.get_instances() if each.local_url == address
    }  # an earlier server may have had the port
    assert holders and all(client.session_hash not in each.session_data for each in holders), (
        "Gradio keeps a copy of the page's configuration for each"
    )
    docs = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert {"/speak", "/paint", "/stop", "/machine", "/voices", "/models"} <= set(docs)
    assert next(each for each in docs["/speak"]["parameters"] if each["parameter_name"] == "text")["type"]
    client.close()


def test_gradio_client_stops(served: tuple[Desk, str]) -> None:
    _, address = served
    client = Client(address, verbose=False)
    job = client.submit("a red ball", width=256, height=256, steps=150, batch=8, model="tiny-painter", api_name="/paint")
    until(lambda: any(each["event"] == "step" for each in job.outputs()), 120)
    assert client.predict("picture", api_name="/stop")
    until(job.done, 120)
    assert job.outputs()[-1]["event"] == "stopped"
    client.close()


@pytest.mark.parametrize(
    ("name", "made"),
    [
        pytest.param("with_gradio.py", {".wav": 1, ".png": 1}, marks=pytest.mark.slow),
        pytest.param("with_openai.py", {".mp3": 1, ".png": 1}, marks=pytest.mark.slow),
        ("with_a1111.py", {".png": 2}),
        ("own_attention.py", {}),
    ],
)
def test_an_example_runs(served: tuple[Desk, str], name: str, made: dict[str, int], tmp_path: Path) -> None:
    """As a stranger runs it, with the starter models."""
    command = [sys.executable, str(TOP / "examples" / name), served[1]]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(TOP)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert Counter(path.suffix for path in tmp_path.iterdir()) == made and all(path.stat().st_size > 1000 for path in tmp_path.iterdir())


@pytest.mark.skipif(not MCP, reason="an extra")
def test_an_assistant_by_mcp(served: tuple[Desk, str]) -> None:
    """Exactly the six endpoints, through the same guards, with MCP's own client."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    url = f"{served[1]}gradio_api/mcp/"

    async def talk() -> tuple[set[str], Any, Any, list[str]]:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            tools = {each.name for each in (await session.list_tools()).tools}
            asked = {"prompt": "a red ball", "width": 64, "height": 64, "steps": 2, "model": "tiny-painter"}
            painted = await session.call_tool("paint", asked)
            spoken = await session.call_tool("speak", {"text": "Hello.", "model": "tiny-voice"})
            lists = [(await session.call_tool(each, {})).content[0].text for each in ("machine", "voices", "models")]
            return tools, painted.content, spoken.content, lists

    tools, painted, spoken, (machine, voices, models) = asyncio.run(talk())
    assert tools == {"speak", "paint", "stop", "machine", "voices", "models"}
    told = json.loads(painted[0].text)
    assert told["event"] == "finished" and "files" not in told and patient_http.get(told["urls"][0]).headers["content-type"] == "image/png"
    assert painted[1].mimeType == "image/png" and Image.open(io.BytesIO(base64.b64decode(painted[1].data))).size == (64, 64)
    assert spoken[1].type == "audio" and seconds(base64.b64decode(spoken[1].data), "wav") > 0.05
    assert json.loads(machine)["ready"] and json.loads(machine)["memory_bytes"], "an assistant is the owner's"
    assert isinstance(json.loads(voices), list)
    assert any({"id": "tiny-painter", "kind": "picture"}.items() <= each.items() for each in json.loads(models))
    for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)):
        assert patient_http.post(url, json={}, headers=headers).status_code == status


def test_mcp_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Trouble, match="on this computer only"):
        monkeypatch.setattr(gradio_endpoints, "find_spec", lambda name: True)
        gradio_endpoints.check_assistants(True, "0.0.0.0")
    with pytest.raises(Trouble, match="not installed"):
        monkeypatch.setattr(gradio_endpoints, "find_spec", lambda name: None)
        gradio_endpoints.check_assistants(True, "127.0.0.1")
    gradio_endpoints.check_assistants(False, "0.0.0.0")


def test_all_go_through_the_same_queue_and_guards(served: tuple[Desk, str]) -> None:
    desk, address = served
    before = len(desk.keeper.database.query("SELECT id FROM jobs"))
    asked = {"model": "tiny-painter", "prompt": "x", "size": "64x64", "steps": 1}
    assert httpx.post(f"{address}v1/images/generations", json=asked, timeout=240).status_code == 200
    jobs = desk.keeper.database.query("SELECT owner FROM jobs")
    assert len(jobs) == before + 1 and {row["owner"] for row in jobs} == {"owner"}
    evil = {"Origin": "https://evil.example"}
    assert patient_http.post(f"{address}v1/images/generations", json={"prompt": "x"}, headers=evil).status_code == 403
    assert patient_http.post(f"{address}sdapi/v1/txt2img", json={"prompt": "x"}, headers={"Host": "evil.example"}).status_code == 421
