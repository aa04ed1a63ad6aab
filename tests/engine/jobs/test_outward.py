"""What leaves the machine inside a file names no folder of it; what comes back from a file finds its model again by name."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.base.paths import assets
from app.engine.jobs.outward import public_name, strip_paths
from app.engine.jobs.request import FORMATS, Actor, Lora, PictureRequest, SpeechRequest, VoicePrompt, from_json, to_json
from app.engine.pictures.files import picture_settings
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.sound.join_sound import Finish, Segment
from app.engine.speech.sound.recode import recode
from app.engine.speech.text import voices
from app.ui import window
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER, Person
from tests.engine.models.test_found import SD15, write
from tests.support.guests import desk_at
from tests.support.speech_fixtures import write_clip

HOME = "/home/olivia/hearth"
PICTURE = PictureRequest(
    "a boat", model=f"{HOME}/models/mine", image=f"{HOME}/scratch/uploads/38e3/me.png", mask=f"{HOME}/scratch/uploads/38e3/mask.png",
    loras=(Lora(f"{HOME}/loras/ink.safetensors", 0.7), Lora("C:\\Users\\olivia\\ice.safetensors")),
)  # fmt: skip
TOLD_PICTURE = dataclasses.replace(
    PICTURE, model="mine", image="me.png", mask="mask.png", loras=(Lora("ink.safetensors", 0.7), Lora("ice.safetensors"))
)
SPEECH = SpeechRequest(
    "[S1] Hello.", model=f"{HOME}/models/dia", voice=VoicePrompt(f"{HOME}/voices/mum.wav", "Hello."), keep=(f"{HOME}/jobs/7/part-000.wav",), only_parts=(1,),
    cast=(Actor("Ann", VoicePrompt(f"{HOME}/voices/ann.wav", "Hi."), f"{HOME}/models/dia"), Actor("Bo")),
)  # fmt: skip
TOLD_SPEECH = dataclasses.replace(
    SPEECH, model="dia", voice=VoicePrompt("mum.wav", "Hello."), keep=("part-000.wav",),
    cast=(Actor("Ann", VoicePrompt("ann.wav", "Hi."), "dia"), Actor("Bo")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("", ""), ("dia-1.6b", "dia-1.6b"), ("/home/olivia/mine", "mine"), ("/home/olivia/mine/", "mine"), ("mine.safetensors", "mine.safetensors"),
        ("C:\\Users\\olivia\\mine", "mine"), ("\\\\server\\olivia\\mine", "mine"), ("~/models/mine", "mine"),
        ("/home/olivia/.cache/huggingface/hub/models--nari-labs--Dia-1.6B/snapshots/0f3c", "nari-labs/Dia-1.6B"),
        ("/home/olivia/hub/models--a--b/snapshots/0f3c/it.safetensors", "it.safetensors"),
    ],
)  # fmt: skip
def test_of_a_path_only_a_name_is_told(path: str, told: str) -> None:
    assert public_name(path) == told


@pytest.mark.parametrize(("request_", "told"), [(PICTURE, TOLD_PICTURE), (SPEECH, TOLD_SPEECH)])
def test_every_path_of_a_request_becomes_a_name_and_all_else_stays(request_: Any, told: Any) -> None:
    before = to_json(request_)
    assert from_json(strip_paths(before)) == told
    assert before == to_json(request_), "what Hearth itself keeps has the paths"
    for plain in (PictureRequest("a boat", "sd15"), SpeechRequest("[S1] Hello.", "dia-1.6b")):
        assert strip_paths(to_json(plain)) == to_json(plain)


def test_a_picture_carries_names(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    picture_settings.write(Image.new("RGB", (8, 8)), path, PICTURE, "mine")
    with Image.open(path) as picture:
        assert "olivia" not in str(picture.info) and "<lora:ink:0.7>" in picture.info["parameters"]
    assert picture_settings.read(path).request == TOLD_PICTURE


@pytest.mark.parametrize("coding", FORMATS)
def test_a_sound_carries_names_and_still_tells_who_spoke_it(coding: str, tmp_path: Path) -> None:
    segment, path = Segment(Path(write_clip(tmp_path / "part.wav", 1))), tmp_path / f"s.{coding}"
    join_sound.join([segment], path, Finish(coding), to_json(SPEECH))
    assert b"olivia" not in path.read_bytes()
    assert from_json(sound.read_settings(path) or {}) == TOLD_SPEECH and voices.find_speaker(path) == "dia"
    join_sound.join([segment], path, Finish(coding), to_json(dataclasses.replace(SPEECH, model="starter-voice")))
    assert voices.find_speaker(path) == "starter-voice"


@pytest.mark.parametrize("wanted", ["flac", "mp3"])
def test_a_sound_in_another_format_carries_names(wanted: str, tmp_path: Path) -> None:
    kept: Any = SimpleNamespace(path=Path(write_clip(tmp_path / "a.wav", 1)), settings=to_json(SPEECH))
    made = recode(kept, wanted, tmp_path / "out")
    assert b"olivia" not in made.read_bytes()
    assert from_json(sound.read_settings(made) or {}) == dataclasses.replace(TOLD_SPEECH, format=wanted)


def asked_by(person: Person) -> Any:
    return SimpleNamespace(request=SimpleNamespace(scope={KEY: person}), cookies={}, headers={})


def listener(desk: Desk, tab: str, called: str) -> Callable[..., list[Any]]:
    """What the page calls."""
    (found,) = {
        each.fn
        for each in window.build(desk).fns.values()
        if each.fn and each.fn.__name__ == called and each.fn.__module__ == f"app.ui.tabs.{tab}"
    }
    return found


def own_painter(folder: Path) -> str:
    return str(shutil.copytree(assets() / "starter" / "painter", folder))


def test_a_dropped_picture_finds_a_model_of_ones_own_by_its_name(tmp_path: Path) -> None:
    """One of that name is taken; with none or two the page says which it was, and what is chosen stays."""
    dropped = tmp_path / "p.png"
    picture_settings.write(Image.new("RGB", (8, 8)), dropped, PICTURE, "mine")
    one, other = own_painter(tmp_path / "a" / "mine"), own_painter(tmp_path / "b" / "mine")
    with desk_at(tmp_path / "home") as desk:
        restored = listener(desk, "paint", "restore_dropped")
        for here, chosen in (([one], one), ([], gr.skip()), ([one, other], gr.skip())):
            desk.settings.put({"models": here})
            fields = restored(str(dropped), asked_by(OWNER))
            assert fields[0] == "a boat" and fields[2] == chosen
            assert ("This was made with mine" in fields[-2]) == (chosen != one)
            assert "olivia" not in str(fields) and "made from another picture" in fields[-2] and "ink, ice" in fields[-2]


@pytest.mark.slow
@pytest.mark.parametrize(("told", "known"), [("Model: dreamy_1.5", True), ("Model: other", False), ("Version: v1.10.1", None)])
def test_a_picture_of_a1111_keeps_or_finds_the_model(told: str, known: bool | None, tmp_path: Path) -> None:
    """The best that is here was chosen in its place, for which neither its LoRAs nor its size are made; Paint refused them then."""
    dropped, info, file = tmp_path / "p.png", PngInfo(), write(tmp_path / "models/dreamy_1.5.safetensors", SD15)
    info.add_text("parameters", f"a boat\nSteps: 4, Sampler: Euler a, {told}")
    Image.new("RGB", (8, 8)).save(dropped, pnginfo=info)
    with desk_at(tmp_path / "home") as desk:
        desk.settings.put({"models": [str(file)]})
        fields = listener(desk, "paint", "restore_dropped")(str(dropped), asked_by(OWNER))
        assert fields[0] == "a boat" and fields[2] == (str(file) if known else gr.skip())
        assert ("This was made with other" in fields[-2]) == (known is False)
