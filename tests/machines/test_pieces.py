"""The pieces of a job: which hang on no other, what is asked for each, and what of another machine's is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.base.paths import home
from app.engine.jobs.request import SEED_LIMIT, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.models.voice_limits import DIA
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import script
from app.machines import results
from app.machines.pieces import Parts, Pictures, find_free, find_pieces, is_drawn

LINE = "The red boat is near the old bridge, and the water is calm and clear this morning. "
SCRIPT = f"[S1] {LINE * 3}\n[S2] {LINE * 3}\n[S1] {LINE * 3}"


def test_a_picture_has_the_seed_that_it_has_in_the_batch() -> None:
    request = PictureRequest("a ball", "m", batch=4, seed=SEED_LIMIT - 1)
    assert [Pictures(request, SEED_LIMIT - 1).ask_for(place).seed for place in range(3)] == [SEED_LIMIT - 1, 0, 1]
    assert Pictures(request, 5).ask_for(2) == PictureRequest("a ball", batch=1, seed=7, model="m")


def test_parts_whose_voice_hangs_on_none_before() -> None:
    parts = script.require_speakable(SCRIPT).parts
    assert len(parts) > 2
    every, both = tuple(range(len(parts))), VoicePrompt("clip.wav", "[S1] Hello there. [S2] Good morning.")
    request = SpeechRequest(SCRIPT)
    assert find_free(parts, request, DIA) == (), "each goes on with the voices of the one before"
    assert find_free(parts, replace(request, carry_voice=False), DIA) == every
    assert find_free(parts, request, replace(DIA, carries=False)) == every
    assert find_free(parts, replace(request, voice=both), DIA) == every
    one = find_free(parts, replace(request, voice=VoicePrompt("clip.wav", "[S1] Hello there.")), DIA)
    assert one == tuple(place for place, part in enumerate(parts) if part.speakers == {1}) and 0 < len(one) < len(parts)
    assert find_free(parts, replace(request, voice=VoicePrompt("clip.wav", "")), DIA) == (), "a clip without words is refused here"


def test_what_has_pieces(tmp_path: Path) -> None:
    place = home(tmp_path)
    batch, spoken = PictureRequest("a ball", "starter-painter", batch=3), SpeechRequest("[S1] hello. " * 40, "starter-voice", seed=1)
    assert not is_drawn(batch, tmp_path) and is_drawn(spoken, tmp_path)
    (tmp_path / "seed").write_text("7")
    assert is_drawn(batch, tmp_path)
    found = find_pieces(place, batch, tmp_path)
    assert isinstance(found, Pictures) and found.seed == 7 and list(found.places) == [0, 1, 2]
    one = find_pieces(place, replace(batch, batch=1), tmp_path)
    assert isinstance(one, Pictures) and list(one.places) == [0], "a single picture is one piece"
    parts = find_pieces(place, spoken, tmp_path)
    assert isinstance(parts, Parts) and len(parts.places) == len(parts.parts) > 1 and parts.complete
    assert not replace(parts, places=(0,)).complete and one.complete
    assert parts.ask_for(1) == replace(spoken, only_parts=(1,))
    assert find_pieces(place, replace(spoken, text="[S1] hello."), tmp_path) is None
    assert find_pieces(place, replace(spoken, only_parts=(0,)), tmp_path) is None
    own = find_pieces(place, replace(spoken, text=spoken.text * 5, model="/some/folder", carry_voice=False), tmp_path)
    assert isinstance(own, Parts) and own.request.model == "/some/folder", "a voice of the user's own"
    local = find_pieces(place, replace(batch, model="/some/folder"), tmp_path)
    assert isinstance(local, Pictures) and local.request.model == "/some/folder"


def save_part(folder: Path, **changes: object) -> dict[str, Path]:
    """As a helper sends part 1 of a script with seed 5."""
    path = spoken_parts.sound_path(folder, 1)
    spoken_parts.save(SpokenPart("two", 6, "key", 0.5, True, np.zeros((8, 1), np.int16), path), np.zeros(4000, np.float32), 8000)
    about = path.with_suffix(".json")
    about.write_text(json.dumps({**json.loads(about.read_text()), **changes}))
    return {each.name: each for each in (path, about)}


@pytest.mark.parametrize(
    "changes", [{}, {"text": "other"}, {"seed": 7}, {"whole": False}, {"channels": 0}, {"codes": "?"}, {"text": 5}, {"doubt": "x"}]
)
def test_only_the_part_that_was_asked_for_is_taken(changes: dict[str, object], tmp_path: Path) -> None:
    parts = script.parse_script("[S1] one.").parts
    asked = Parts(
        SpeechRequest("[S1] one.", "starter-voice"),
        5,
        (parts[0], replace(parts[0], turns=(replace(parts[0].turns[0], text="two"),))),
        (0, 1),
    )
    files = save_part(tmp_path, **{"text": asked.parts[1].text, **changes})
    assert (asked.take(1, files) == files) is (not changes)
    assert asked.take(0, files) is None and asked.take(1, {}) is None


def test_what_a_helper_doubts_of_a_part_is_told_here(tmp_path: Path) -> None:
    parts = script.parse_script("[S1] one. (pause 1s) [S1] two.").parts
    asked = Parts(SpeechRequest("[S1] one. (pause 1s) [S1] two.", "starter-voice"), 5, parts, (0, 1))
    assert [asked.tell(1, save_part(tmp_path, **changes)["part-001.wav"]).doubt for changes in ({}, {"doubt": "long"})] == ["", "long"]


def test_sound_that_is_none_is_not_taken(tmp_path: Path) -> None:
    save_part(tmp_path)
    path = spoken_parts.sound_path(tmp_path, 1)
    assert results.is_spoken(path, "two", 6)
    about = path.with_suffix(".json")
    whole, text = path.read_bytes(), about.read_text()
    about.write_text(text + " " * results.ABOUT_BYTES)
    assert not results.is_spoken(path, "two", 6)
    about.write_text(text)
    for broken in (b"", b"RIFF", whole[:30], b"\x89PNG" + whole):
        path.write_bytes(broken)
        assert not results.is_spoken(path, "two", 6)
    path.unlink()
    assert not results.is_spoken(path, "two", 6)


def test_only_one_whole_picture_is_taken(tmp_path: Path) -> None:
    asked = Pictures(PictureRequest("a ball", "m", batch=4), 5)
    Image.new("RGB", (8, 8)).save(tmp_path / "picture-0.png")
    (tmp_path / "other.png").write_bytes((tmp_path / "picture-0.png").read_bytes()[:40])
    right, broken = tmp_path / "picture-0.png", tmp_path / "other.png"
    assert asked.take(2, {"picture-0.png": right}) == {"picture-2.png": right}
    Image.new("1", (5000, 1)).save(tmp_path / "bomb.png")
    assert asked.take(2, {"picture-0.png": tmp_path / "bomb.png"}) is None
    assert asked.take(2, {"other.png": broken}) is None and asked.take(2, {"a.png": right, "b.png": right}) is None


def test_a_whole_script_has_to_be_sound(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    sound.write(path, np.zeros(800, np.float32), 8000)
    request = SpeechRequest("[S1] hello.", format="wav")
    assert results.is_script(request, [path], 1.0) and not results.is_script(replace(request, format="flac"), [path], 1.0)
    assert not results.is_script(request, [path], 0.05), "hours of silence are a small file"
    for content in (b"", b"<html>", path.read_bytes()[:20], b"\x89PNG"):
        path.write_bytes(content)
        assert not results.is_speech(path, "wav", 1.0) and not results.is_script(request, [path], 1.0)
