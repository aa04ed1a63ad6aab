"""What programs send is done or refused in their API's own words, never passed over: real clients' requests, without an engine."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import numpy as np
import openai
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.base.trouble import BadRequest, NotThere, Trouble
from app.engine.jobs.control import Control
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.schedulers import NAMES
from app.engine.jobs.tasks import Enlarge, MaintenanceTask, new_task_id
from app.engine.pictures.files import picture_settings
from app.engine.pictures.files.encoded import Wanted, encode_picture
from app.engine.pictures.run import enlarge
from app.ui.api import a1111, gradio_endpoints
from app.ui.api import openai as api_openai
from app.ui.api.a1111 import PaintAsked, find_sampler, is_on, picture_request, save_start
from app.ui.api.answered_pictures import fit_size, refuse_unused
from app.ui.api.openai import SpeechAsked, speech_request
from app.ui.api.shared import find_model
from app.ui.state.asked import fit
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from tests.support.guests import desk_at

SENT = Path(__file__).parents[2] / "fixtures" / "clients"
"""These are bodies as the clients wrote them, byte for byte (webuiapi 0.9.17, openai 3.52), or as their sources do."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("sent")) as desk:
        yield desk


@pytest.fixture(scope="module")
def web(desk: Desk) -> TestClient:
    routes = Starlette(routes=[*api_openai.routes(desk), *a1111.routes(desk)])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = OWNER
        await routes(scope, receive, send)

    return TestClient(app, base_url="http://127.0.0.1")


@pytest.fixture(scope="module")
def client(web: TestClient) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url="http://127.0.0.1/v1", api_key="none", max_retries=0, http_client=web) as client:
        yield client


def read_sent(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SENT / f"{name}.json").read_bytes())
    return found


def png(size: tuple[int, int], colour: str = "blue") -> str:
    made = io.BytesIO()
    Image.new("RGB", size, colour).save(made, "PNG")
    return base64.b64encode(made.getvalue()).decode()


@pytest.mark.parametrize("name", ["webuiapi_txt2img", "sillytavern_txt2img"])
def test_a_clients_usual_request_asks_for_nothing_else(desk: Desk, name: str) -> None:
    given = fit(PaintAsked, read_sent(name) | {"width": 256, "height": 256})
    request, size = picture_request(desk, given, a1111.Start())
    assert size is None and (request.prompt, request.steps, request.guidance, request.scheduler) == ("a red ball", 2, 7.0, "Euler a")


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({"sampler_name": "Nope"}, 404, "sampler Nope"),
        ({"sampler_name": "Euler a", "scheduler": "karras"}, 404, "Euler a karras"),
        ({"override_settings": {"sd_model_checkpoint": "nope"}}, 404, "GET /sdapi/v1/sd-models"),
        ({"override_settings": {"CLIP_stop_at_last_layers": 2}}, 400, "CLIP_stop_at_last_layers 2"),
        ({"enable_hr": True, "hr_upscaler": "R-ESRGAN 4x+"}, 404, "upscaler R-ESRGAN"),
        ({"enable_hr": True, "hr_second_pass_steps": 9}, 400, "hr_second_pass_steps 9"),
        ({"styles": ["oil"]}, 400, "styles"),
        ({"tiling": True}, 400, "tiling"),
        ({"restore_faces": True}, 400, "restore_faces"),
        ({"subseed_strength": 0.5}, 400, "subseed_strength"),
        ({"mask_blur_x": 9}, 400, "mask_blur_x 9"),
        ({"alwayson_scripts": {"ControlNet": {"args": [{"image": "x", "enabled": True}]}}}, 400, "extension ControlNet"),
        ({"batch_size": 0}, 400, "number of pictures is 0"),
        ({"prompt": "a ball <lora:foo:0.8>"}, 400, "no LoRA foo"),
        ({"width": 512, "height": 768}, 400, "Ask for 256x256"),
    ],
)
def test_what_a1111_would_do_and_hearth_cannot_is_refused(web: TestClient, sent: dict[str, Any], status: int, words: str) -> None:
    answer = web.post("/sdapi/v1/txt2img", json=read_sent("webuiapi_txt2img") | {"width": 256, "height": 256} | sent)
    told = answer.json()
    assert answer.status_code == status and words in told["detail"] and isinstance(told["error"], str) and told["errors"] == told["detail"]


def test_an_extension_that_is_switched_off_asks_for_nothing() -> None:
    assert not any(map(is_on, ([], [False], {}, None, [{"enabled": False}], [{"enabled": False}, {"enable": False}, "none"])))
    assert all(map(is_on, ([True, {}], [{"image": ""}], "x", [{"enabled": False}, {"enabled": True}])))


def test_samplers_are_found_by_their_names_and_schedules() -> None:
    assert all(find_sampler(each.lower(), "Automatic") == each for each in NAMES) and find_sampler("", "Karras") is None
    assert find_sampler("DPM++ 2M", "karras") == find_sampler("dpmpp_2m", "Karras") == "DPM++ 2M Karras"
    assert find_sampler("Euler", "sgm_uniform") == "Euler trailing" and find_sampler("DPM++ 2M Karras", "Karras") == "DPM++ 2M Karras"
    assert find_sampler("DPM++ 2M SDE", "Karras") == find_sampler("DPM++ 2M SDE Karras", "Automatic") == "DPM++ 2M SDE Karras"
    with pytest.raises(NotThere):  # Hearth's adds no noise
        find_sampler("DPM++ 2S a", "Automatic")


def test_masks_are_inverted_and_starts_stretched(desk: Desk) -> None:
    sent = read_sent("webuiapi_img2img")
    given = fit(PaintAsked, sent | {"inpaint_full_res": False})
    start = save_start(desk, given, sent["init_images"][0])
    assert start.image and start.mask
    with Image.open(start.mask) as mask:
        assert mask.getpixel((8, 8)) == 0 and mask.getpixel((56, 8)) == 255, "the left half is kept"
    wide = save_start(desk, given, png((128, 64)))
    assert wide.image and Image.open(wide.image).size == (64, 64)
    cropped = save_start(desk, given.model_copy(update={"resize_mode": 1}), png((128, 64)))
    assert cropped.image and Image.open(cropped.image).size == (128, 64), "the run crops"
    with pytest.raises(Trouble, match=r"strength is 0\.0"):
        picture_request(desk, given.model_copy(update={"denoising_strength": 0.0, "width": 256, "height": 256}), start)


def test_masks_and_pictures_of_16_bits_keep_their_greys(desk: Desk, web: TestClient) -> None:
    """All that was brighter than 1 of 256 turned white, so such a mask had everything painted anew."""
    ramp = np.linspace(0, 65535, 256, dtype=np.uint16).reshape(1, 256).repeat(64, 0)
    made = io.BytesIO()
    Image.fromarray(ramp).save(made, "PNG")
    sent = base64.b64encode(made.getvalue()).decode()
    given = fit(PaintAsked, read_sent("webuiapi_img2img") | {"inpaint_full_res": False, "width": 256, "height": 128, "mask": sent})
    for inverted in (0, 1):
        start = save_start(desk, given.model_copy(update={"inpainting_mask_invert": inverted}), sent)
        assert start.image and start.mask
        for path, turned in ((start.image, False), (start.mask, bool(inverted))):
            with Image.open(path) as opened:
                levels = np.asarray(opened.convert("L"), np.int16)[64]
            assert opened.size == (256, 128) and np.abs((levels[::-1] if turned else levels) - np.arange(256)).max() <= 2, path
    asked = {"image": sent, "upscaler_1": "Nearest", "upscaling_resize": 2}
    larger = web.post("/sdapi/v1/extra-single-image", json=asked).json()["image"]
    levels = np.asarray(Image.open(io.BytesIO(base64.b64decode(larger))).convert("L"), np.int16)[0]
    assert np.abs(levels - np.arange(256).repeat(2)).max() <= 1


def test_the_masked_part_alone_is_painted_as_a1111_does(desk: Desk) -> None:
    """They were accepted, echoed, and without effect. A1111 paints the masked part alone unless it is told not to."""
    sent = read_sent("webuiapi_img2img") | {"width": 256, "height": 256}
    given = fit(PaintAsked, sent | {"mask_blur": 9, "inpaint_full_res_padding": 48})
    start = save_start(desk, given, png((128, 64)))
    assert start.image and Image.open(start.image).size == (128, 64), "the picture keeps its own shape"
    request, size = picture_request(desk, given, start)
    assert size is None and (request.masked_only, request.masked_padding, request.mask_blur) == (True, 48, 9)
    bare = {name: value for name, value in sent.items() if not name.startswith(("inpaint_full", "mask_blur"))}
    request, _ = picture_request(desk, fit(PaintAsked, bare), start)
    assert (request.masked_only, request.masked_padding, request.mask_blur) == (True, 0, 4), "A1111's own"
    whole, _ = picture_request(desk, fit(PaintAsked, sent | {"inpaint_full_res": 0}), start)
    unmasked, _ = picture_request(desk, fit(PaintAsked, sent | {"mask": None}), start)
    assert not whole.masked_only and not unmasked.masked_only
    with pytest.raises(Trouble, match="soft edge of the mask is 999"):
        picture_request(desk, fit(PaintAsked, sent | {"mask_blur": 999}), start)


@pytest.mark.parametrize(("denoising", "hires", "strength"), [(0.7, True, 0.7), (None, True, 0.35), (0, False, 0.35)])
def test_detail_is_added_as_strongly_as_was_asked(desk: Desk, denoising: float | None, hires: bool, strength: float) -> None:
    sent = read_sent("webuiapi_txt2img") | {"width": 256, "height": 256, "enable_hr": True, "denoising_strength": denoising}
    request, _ = picture_request(desk, fit(PaintAsked, sent), a1111.Start())
    assert (request.hires, request.hires_strength, request.upscale) == (hires, strength, 2)


@pytest.mark.parametrize(
    ("scale", "upscale", "size"), [(1.5, 1.5, (384, 384)), (1.33, 1.33, (340, 340)), (6.0, 4, (1536, 1536)), (1.0, 1, None), (0.5, 1, None)]
)
def test_the_scale_of_hires_is_the_one_asked_for(desk: Desk, scale: float, upscale: float, size: tuple[int, int] | None) -> None:
    sent = read_sent("webuiapi_txt2img") | {"width": 256, "height": 256, "enable_hr": True, "hr_scale": scale}
    request, to = picture_request(desk, fit(PaintAsked, sent), a1111.Start())
    assert (request.upscale, request.hires, to) == (upscale, upscale > 1, size)


def test_damaged_pictures_and_odd_sizes_are_refused(web: TestClient) -> None:
    noise = io.BytesIO()
    Image.effect_noise((256, 256), 90).save(noise, "PNG")
    broken = base64.b64encode(noise.getvalue()[:9000]).decode()
    sent = read_sent("webuiapi_img2img") | {"width": 256, "height": 256}
    for more in ({"init_images": [broken], "width": 128}, {"mask": broken}, {"width": -5}, {"width": 0, "height": -3}, {"hr_scale": "x"}):
        answer = web.post("/sdapi/v1/img2img", json=sent | more)
        assert answer.status_code == 400 and answer.json()["detail"], more
    for more in ({"image": broken}, {"resize_mode": 1, "upscaling_crop": False, "image": png((4000, 16)), "upscaling_resize_w": 16}):
        assert web.post("/sdapi/v1/extra-single-image", json={"upscaler_1": "Lanczos", **more}).status_code == 400, list(more)
    for size in ("0x0", "-8x8", "9" * 150 + "x8", "1x2x3"):
        assert web.post("/v1/images/generations", json={"model": "starter-painter", "prompt": "x", "size": size}).status_code == 400, size
    assert web.post("/v1/images/generations", json={"model": "starter-voice", "prompt": "x", "size": "512x512"}).status_code == 400


LISTS = (
    "samplers", "schedulers", "upscalers", "latent-upscale-modes", "sd-models", "sd-vae", "sd-modules", "loras", "hypernetworks", "face-restorers",
    "realesrgan-models", "prompt-styles", "script-info", "extensions",
)  # fmt: skip


def test_everything_is_there_that_clients_list_at_their_start(web: TestClient) -> None:
    for name in LISTS:
        answer = web.get(f"/sdapi/v1/{name}")
        assert answer.status_code == 200 and isinstance(answer.json(), list), name
    for name in ("options", "cmd-flags", "scripts", "embeddings", "memory", "progress"):
        answer = web.get(f"/sdapi/v1/{name}")
        assert answer.status_code == 200 and isinstance(answer.json(), dict), name
    for name in ("refresh-checkpoints", "refresh-loras", "unload-checkpoint", "reload-checkpoint", "interrupt", "skip"):
        assert web.post(f"/sdapi/v1/{name}").json() == {}, name
    assert web.post("/sdapi/v1/options", json={"sd_model_checkpoint": "Starter-Painter.safetensors [abc]"}).json() == {}
    assert web.post("/sdapi/v1/options", json={"sd_vae": "x.pt"}).status_code == 400
    missing = web.post("/sdapi/v1/interrogate", json={})
    assert missing.status_code == 404 and "POST /sdapi/v1/interrogate" in missing.json()["detail"]


def run_at_once(desk: Desk, task: MaintenanceTask) -> str:
    """What the engine does once the task's turn has come."""
    assert isinstance(task, Enlarge)
    (folder := desk.keeper.folder(id_ := new_task_id())).mkdir(parents=True)
    for event in enlarge.run(task, "cpu", Control(), folder):
        desk.keeper.board.post(id_, event)
    return id_


def test_a_picture_is_read_and_made_larger(desk: Desk, web: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = PictureRequest("a red ball", negative="blue", width=64, height=64, steps=2, seed=7, guidance=5.0, scheduler="Euler")
    picture_settings.write(Image.new("RGB", (64, 64)), tmp_path / "p.png", request, "tiny")
    told = web.post("/sdapi/v1/png-info", json={"image": base64.b64encode((tmp_path / "p.png").read_bytes()).decode()}).json()
    assert told["info"].startswith("a red ball\nNegative prompt: blue") and told["parameters"]["Sampler"] == "Euler"
    assert web.post("/sdapi/v1/png-info", json={"image": png((64, 64))}).json() == {"info": "", "items": {}, "parameters": {}}
    larger = web.post("/sdapi/v1/extra-single-image", content=(SENT / "webuiapi_extra.json").read_bytes()).json()
    assert Image.open(io.BytesIO(base64.b64decode(larger["image"]))).size == (48, 24)
    monkeypatch.setattr(desk.keeper, "start_task", lambda task: run_at_once(desk, task))
    by_network = json.loads((SENT / "webuiapi_extra.json").read_bytes()) | {"upscaler_1": "starter"}
    larger = web.post("/sdapi/v1/extra-single-image", json=by_network).json()
    assert Image.open(io.BytesIO(base64.b64decode(larger["image"]))).size == (48, 24)
    pictures = [{"data": png((32, 16)), "name": "a.png"}, {"data": png((16, 16)), "name": "b.png"}]
    both = web.post("/sdapi/v1/extra-batch-images", json=by_network | {"upscaling_resize": 3, "imageList": pictures}).json()["images"]
    assert [Image.open(io.BytesIO(base64.b64decode(each))).size for each in both] == [(96, 48), (48, 48)]
    for sent in ({"upscaler_1": "R-ESRGAN 4x+"}, {"upscaling_resize": 1000.0}, {"gfpgan_visibility": 1}, {"image": "&&"}):
        assert web.post("/sdapi/v1/extra-single-image", json={"image": png((32, 16)), **sent}).status_code == 400, sent


def test_a_model_of_one_size_is_enlarged_to_the_size_asked_for(desk: Desk) -> None:
    asked = PictureRequest("a red ball", "starter-painter")
    own = replace(asked, width=256, height=256)
    assert fit_size(desk, asked) == (asked, None) and fit_size(desk, own) == (own, None)
    assert fit_size(desk, replace(asked, width=512, height=512)) == (replace(asked, upscale=2), None)
    assert fit_size(desk, replace(asked, width=1024, height=1024)) == (replace(asked, upscale=4), None)
    assert fit_size(desk, replace(asked, width=768, height=768)) == (replace(asked, upscale=3), None)
    assert fit_size(desk, replace(asked, width=896, height=896)) == (replace(asked, upscale=3.5), None)
    assert fit_size(desk, replace(asked, width=384, height=384)) == (replace(asked, upscale=1.5), None)
    assert fit_size(desk, replace(asked, width=128, height=128)) == (replace(asked, upscale=1), (128, 128))
    for width, height in ((1024, 1536), (2048, 2048)):
        with pytest.raises(Trouble, match="Ask for 256x256"):
            fit_size(desk, replace(asked, width=width, height=height))


def test_pictures_have_the_format_and_size_asked_for_and_their_settings(tmp_path: Path) -> None:
    path, request = tmp_path / "p.png", PictureRequest("a red ball", width=64, height=64, steps=2, seed=7)
    picture_settings.write(Image.new("RGB", (64, 64)), path, request, "tiny")
    assert encode_picture(path, Wanted()) == path.read_bytes()
    for wanted, name in ((Wanted("webp"), "WEBP"), (Wanted("jpeg", 40), "JPEG"), (Wanted(size=(48, 48)), "PNG")):
        made = tmp_path / f"made.{wanted.format}"
        made.write_bytes(encode_picture(path, wanted))
        with Image.open(made) as opened:
            assert opened.format == name and opened.size == (wanted.size or (64, 64))
        assert picture_settings.read(made).request.prompt == "a red ball"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"background": "transparent"}, "background"),
        ({"output_format": "gif"}, "output_format"),
        ({"response_format": "foo"}, "response_format"),
        ({"response_format": "url", "stream": True}, "response_format"),
        ({"response_format": "url", "output_format": "webp"}, "response_format"),
        ({"quality": "high"}, "quality"),
        ({"partial_images": 9, "stream": True}, "partial_images"),
        ({"size": "1024x1536"}, "size"),
        ({"size": "large"}, "size"),
        ({"extra_body": {"foo": 1}}, "foo"),
    ],
)
def test_what_openais_pictures_have_and_hearth_does_not_is_refused(client: openai.OpenAI, asked: dict[str, Any], field: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.images.generate(model="starter-painter", prompt="a red ball", **asked)
    assert refused.value.param == field


def test_settings_that_the_model_has_no_use_for_are_refused(client: openai.OpenAI, desk: Desk) -> None:
    """FLUX takes no negative prompt, klein no strength: both were passed over, and nothing in an answer says so."""
    with pytest.raises(openai.BadRequestError) as refused:
        client.images.generate(model="starter-painter", prompt="a red ball", extra_body={"strength": 0.5})
    assert refused.value.param == "strength", "nothing is there to change"
    fog, blue = PictureRequest("a red ball", "flux1-schnell", "fog"), PictureRequest("a red ball", "flux2-klein", image="blue.png")
    with pytest.raises(BadRequest, match=r"negative_prompt has no effect here with FLUX\.1"):
        refuse_unused(desk, fog, False)
    with pytest.raises(BadRequest, match="strength has no effect here with FLUX"):
        refuse_unused(desk, blue, True)
    for taken, strength in ((replace(fog, model="sd15"), False), (replace(blue, model="sd15"), True), (replace(blue, mask="m.png"), True)):
        refuse_unused(desk, taken, strength)


def test_more_than_one_start_picture_is_refused(client: openai.OpenAI) -> None:
    blue = base64.b64decode(png((64, 64)))
    with pytest.raises(openai.BadRequestError, match="starts from one picture; this request has 2"):
        client.images.edit(model="starter-painter", image=[("a.png", blue), ("b.png", blue)], prompt="x")


def test_what_openais_speech_has_and_hearth_does_not_is_refused(client: openai.OpenAI) -> None:
    for asked, field in (
        ({"voice": "af_bella"}, "voice"),
        ({"instructions": "whisper"}, "instructions"),
        ({"extra_body": {"foo": 1}}, "foo"),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            client.audio.speech.create(**{"model": "tts-1", "voice": "alloy", "input": "Hello.", **asked})  # type: ignore[arg-type]
        assert refused.value.param == field
    with pytest.raises(openai.NotFoundError, match="POST /v1/chat/completions"):
        client.post("/chat/completions", cast_to=object, body={})


def test_an_unknown_model_is_no_other_one(client: openai.OpenAI, desk: Desk) -> None:
    """Each was answered by the best installed model, as if it had been that one."""
    for begin in (
        lambda: client.audio.speech.create(model="dia-9b", voice="alloy", input="Hello."),
        lambda: client.images.generate(model="sdxl-none", prompt="a red ball"),
    ):
        with pytest.raises(openai.NotFoundError, match="GET /v1/models") as refused:
            begin()
        assert refused.value.code == "model_not_found"
    for name in ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "kokoro", "speaches-ai/Kokoro-82M-v1.0-ONNX", "", None):
        assert find_model(desk, name, "speech") == ""
    for name in ("gpt-image-1", "dall-e-3", "chatgpt-image-latest"):
        assert find_model(desk, name, "picture") == ""
    endpoints, owner = gradio_endpoints.Endpoints(desk), cast(gr.Request, SimpleNamespace(scope={KEY: OWNER}))
    assert endpoints.voices("starter-voice", owner) == endpoints.voices("", owner) != []
    with pytest.raises(gr.Error, match="No model called dia-9b"):
        endpoints.voices("dia-9b", owner)


def test_voices_are_found_whatever_their_capitals(desk: Desk, web: TestClient) -> None:
    def chosen(voice: Any) -> str:
        found = speech_request(desk, SpeechAsked(input="Hello.", voice=voice), "mp3").voice
        return Path(found.path).stem if found else ""

    assert chosen("george") == chosen("George") == chosen({"id": "GEORGE"}) == "george" and chosen(None) == chosen("") == ""
    assert len({chosen(each) for each in ("alloy", "echo", "onyx", "nova")}) == 4, "OpenAI's voices are not all the same one"
    listed = web.get("/v1/audio/voices").json()
    assert {"id": "George", "name": "George"} in listed["voices"] and {each["id"] for each in listed["data"]} >= {"Anna", "George"}
    assert "starter-voice" in [each["id"] for each in web.get("/v1/audio/models").json()["models"]]


@pytest.mark.parametrize("name", ["kokoro_speech", "open_webui_speech"])
def test_another_clients_usual_request_for_speech_is_taken(desk: Desk, web: TestClient, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = []

    async def stream(desk: Desk, asked: Any, request: Any, person: Any, wanted: str, events: bool) -> Response:
        streamed.append((request.text, wanted, events))
        return Response(b"")

    monkeypatch.setattr(api_openai, "stream_speech", stream)
    assert web.post("/v1/audio/speech", content=(SENT / f"{name}.json").read_bytes()).status_code == 200
    assert streamed == [("[S1] Hello there.", "mp3", False)], "in parts, though it does not say so"
