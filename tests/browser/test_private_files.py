"""Nothing that leaves the machine names a folder of it: each format of the Shelf, the zip, the report, what a program gets."""

from __future__ import annotations

import base64
import io
import json
import platform
import wave
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from PIL import Image
from playwright.sync_api import expect

from app.engine.jobs.request import FORMATS
from tests.support.waiting import LOADING_S
from tests.support.window import Open, Visit, go, needs_chromium, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium

BESIDE = "a folder of mine"
SHORTEST = 6
"""A shorter name of this computer may stand anywhere in a picture's bytes."""


def sent(name: str, body: bytes) -> Iterator[tuple[str, bytes]]:
    """A file and, of a zip, each file in it."""
    yield name, body
    if body.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(body)) as packed:
            for each in packed.namelist():
                yield f"{name}: {each}", each.encode() + packed.read(each)


def make_clip(file: Path) -> Path:
    with wave.open(str(file), "wb") as clip:
        clip.setparams((1, 2, 44_100, 0, "NONE", ""))
        clip.writeframes(b"\0\x10" * 44_100)
    return file


@pytest.mark.slow
def test_what_leaves_the_machine_names_no_folder_of_it(visit: Visit, opened: Open, tmp_path: Path) -> None:
    """A PNG named its start picture by its whole path."""
    mine = tmp_path / BESIDE
    mine.mkdir()
    Image.new("RGB", (128, 128), "green").save(mine / "start.png")
    before = opened.rows("SELECT max(id) FROM creations")[0][0] or 0
    query = f"SELECT id, kind FROM creations WHERE id > {before}"
    page = visit("paint")
    unfold(page, "Start from a picture")
    page.set_input_files("#h-sketch input[type=file]", mine / "start.png")
    page.fill("#paint-prompt textarea", "a green hill")
    expect(page.locator(".h-force").locator("visible=true")).to_contain_text("starting from start.png")
    page.click("#paint-go")
    go(page, "speak")
    unfold(page, "Create a voice from a recording")
    page.locator("#speak-clip input[type=file]").set_input_files(make_clip(mine / "clip.wav"))
    expect(page.locator(".h-force").locator("visible=true")).to_contain_text("clip.wav")
    page.get_by_label("Exactly what is said in the recording").fill("It is warm, you know.")
    page.fill("#speak-text textarea", "[S1] It is warm, you know.")
    page.click("#speak-go")
    until_seen(page, lambda: {kind for _, kind in opened.rows(query)} == {"speech", "picture"}, LOADING_S)

    begun = [json.loads(request) for (request,) in opened.rows(f"SELECT request FROM creations WHERE id > {before}")]
    assert any(each.get("image") for each in begun) and any(each.get("voice") for each in begun)
    with httpx.Client(base_url=opened.address, timeout=LOADING_S, headers={"Origin": opened.address.rstrip("/")}) as program:
        made: dict[int, str] = dict(opened.rows(query))
        files: dict[str, bytes] = {"zip": program.get("hearth/export", params={"ids": ",".join(map(str, made))}).content}
        for id_, kind in made.items():
            for form in FORMATS if kind == "speech" else [""]:
                answer = program.get(f"hearth/creation/{id_}", params={"format": form, "download": ""}).raise_for_status()
                files[f"{kind} {id_} {form} {answer.headers['content-disposition']}"] = answer.content
        files["report"] = program.get("hearth/report").content
        picture = base64.b64encode((mine / "start.png").read_bytes()).decode()
        asked = {"init_images": [picture], "prompt": "a green hill", "steps": 2, "width": 128, "height": 128}
        files["a1111"] = program.post("sdapi/v1/img2img", json=asked).raise_for_status().content
        files["a1111, its picture"] = base64.b64decode(json.loads(files["a1111"])["images"][0])
        files["openai"] = (
            program.post("v1/audio/speech", json={"input": "It is warm, you know.", "model": "tts-1"}).raise_for_status().content
        )
        for path in ("v1/models", "sdapi/v1/sd-models", "sdapi/v1/options", "sdapi/v1/progress"):
            files[path] = program.get(path).content
    assert len(files["zip"]) > 1000
    private = [str(opened.home.parent), str(mine), BESIDE, f"{Path.home()}/", *[platform.node()][: len(platform.node()) > SHORTEST]]
    found = [(name, each) for file in files.items() for name, body in sent(*file) for each in private if each.encode() in body]
    assert not found
