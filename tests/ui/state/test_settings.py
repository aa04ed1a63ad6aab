"""Settings, presets, requests made smaller and sounds in other formats: without a browser."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from app.base.paths import home
from app.base.trouble import Trouble
from app.engine.jobs.request import FORMATS, PictureRequest, SpeechRequest, to_json
from app.engine.models.voice_limits import DIA
from app.engine.pictures.kind import PictureKind
from app.engine.speech.kind import SpeechKind
from app.engine.speech.sound import sound
from app.engine.speech.sound.recode import recode
from app.engine.speech.text.script import parse_script
from app.ui.state import presets
from app.ui.state.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "settings.json")


def test_settings_are_written_whole_and_read_again(tmp_path: Path) -> None:
    Settings(tmp_path / "s.json").put({"a": 1})
    again = Settings(tmp_path / "s.json")
    assert os.name == "nt" or (tmp_path / "s.json").stat().st_mode & 0o777 == 0o600, "they hold the address of a phone"
    assert again.get("a") == 1 and again.get("b", 2) == 2


def test_changes_at_once_are_all_kept(settings: Settings) -> None:
    def add(name: str) -> None:
        settings.change("drafts", {}, lambda kept: time.sleep(0.001) or {**kept, name: name})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, map(str, range(40))))
    assert len(Settings(settings._file).get("drafts")) == 40


def test_what_could_not_be_written_is_written_the_next_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk, pytest.raises(Trouble, match="No space"):
        disk.setattr(Path, "write_text", full)
        settings.put({"a": 1})
    settings.put({"a": 1})
    assert Settings(settings._file).get("a") == 1


@pytest.mark.parametrize("tab", ["speak", "paint"])
def test_presets_come_are_kept_and_go(settings: Settings, tab: str) -> None:
    built_in = [choice for _, choice in presets.list_choices(settings, tab)]
    assert len(built_in) == 4 and set(built_in) == set(presets.BUILT_IN[tab])
    recommended = presets.find_values(settings, tab, "recommended")
    assert all(recommended.keys() <= presets.find_values(settings, tab, each).keys() for each in built_in)
    choice = presets.save_preset(settings, tab, " evening ", {"speed": 0.9})
    assert presets.find_values(Settings(settings._file), tab, choice) == {"speed": 0.9}
    assert presets.list_choices(settings, tab)[-1] == ("evening", choice)
    presets.save_preset(settings, tab, choice, {"speed": 0.8})
    assert presets.find_values(settings, tab, choice) == {"speed": 0.8} and len(presets.list_choices(settings, tab)) == 5
    presets.delete_preset(settings, tab, choice)
    assert presets.find_values(settings, tab, choice) == {}
    for name in ("", "recommended", "x" * 61):
        with pytest.raises(Trouble):
            presets.save_preset(settings, tab, name, {})
    with pytest.raises(Trouble):
        presets.delete_preset(settings, tab, "recommended")


def test_a_picture_is_asked_for_with_half_the_pixels_until_it_is_small() -> None:
    request, sizes = PictureRequest("a sea", "sd15", width=1024, height=512), []
    with pytest.raises(Trouble) as caught:
        while True:
            request, words = PictureKind().shrink(home(), request)
            sizes.append((request.width, request.height))
            assert str(request.width) in str(words)
    assert sizes[0] == (704, 320) and sizes[-1] == (128, 128) and caught.value.cure == "models"
    assert PictureKind().shrink(home(), PictureRequest("a sea", "sd15"))[0].width == 320, "what the model recommends is where it begins"
    with pytest.raises(Trouble):
        PictureKind().shrink(home(), PictureRequest("a red circle", "starter-painter"))  # it has one size


def test_a_script_is_asked_for_in_shorter_parts_with_the_same_words() -> None:
    text = (
        "[S1] The old card in the attic still has some warmth left. It does. [S2] You said that of the toaster, too. (pause 1s) [S1] Yes."
    )
    asked = SpeechRequest(text, "dia-1.6b", only_parts=(0,), keep=("a", "b"))
    lesser, words = SpeechKind().shrink(home(), asked)
    before, after = parse_script(text, DIA).parts, parse_script(lesser.text, DIA).parts
    assert max(each.seconds for each in after) <= 0.6 * max(each.seconds for each in before)
    said = [" ".join(turn.text for part in parts for turn in part.turns) for parts in (before, after)]
    assert said[0] == said[1] and not lesser.only_parts and not lesser.keep and str(len(after)) in str(words)
    assert any(part.pause_before_s == pytest.approx(1) for part in after), "a pause that was asked for stays"
    with pytest.raises(Trouble):
        SpeechKind().shrink(home(), SpeechRequest("[S1] Yes.", "dia-1.6b"))


@pytest.mark.parametrize("wanted", FORMATS)
def test_a_sound_comes_in_any_format_with_its_settings(tmp_path: Path, wanted: str) -> None:
    path = tmp_path / "a.wav"
    tone = (0.3 * np.sin(np.arange(16000) / 20)).astype(np.float32)
    sound.write(path, tone, 16000)
    kept: Any = SimpleNamespace(path=path, settings=to_json(SpeechRequest("[S1] Hello.", seed=7)))
    made = recode(kept, wanted, tmp_path / "out")
    samples, _ = soundfile.read(made)
    assert made.suffix == f".{wanted}" and abs(soundfile.info(made).duration - 1) < 0.1 and samples.std() > 0.1
    told = sound.read_settings(made)
    assert made == path or (told is not None and (told["seed"], told["format"]) == (7, wanted))


def test_a_sound_of_minutes_comes_as_ogg(tmp_path: Path) -> None:
    """Written at once it crashed the window, in libsndfile's Vorbis encoder."""
    samples = (0.3 * np.sin(np.arange(3_000_000) / 20)).astype(np.float32)
    sound.write(tmp_path / "a.wav", samples, 16000)
    made = recode(SimpleNamespace(path=tmp_path / "a.wav", settings={}), "ogg", tmp_path / "out")  # type: ignore[arg-type]
    assert soundfile.info(made).frames == len(samples)


def test_a_format_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Trouble):
        recode(SimpleNamespace(path=tmp_path / "a.wav", settings={}), "exe", tmp_path)  # type: ignore[arg-type]
