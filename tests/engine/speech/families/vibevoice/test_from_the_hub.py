"""VibeVoice as the catalog has it: found in the hub's cache, planned for every machine, and spoken with by a session, also by a cast of four."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.compat.machine.pretended import MACHINES
from app.compat.planning.memory_formulas import part_bytes
from app.compat.planning.types import Choice, Precision, Quantised
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Note, PartDone
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt
from app.engine.kinds import check, kind_of
from app.engine.models import catalog
from app.engine.models.catalog import BY_ID
from app.engine.models.forecast import make_forecast
from app.engine.models.model import describe_need
from app.engine.models.on_disk import find_limits, locate
from app.engine.models.planned import Setup, make_plan
from app.engine.models.voice_limits import DIA
from app.engine.session.session import Session
from app.engine.speech.sound import sound
from app.machines.tasks.portable import pack, unpack
from app.ui.state.person import OWNER
from app.ui.tabs.speak_view import script_view
from tests.support import open_session
from tests.support.cached_pockets import put
from tests.support.guests import desk_at
from tests.support.tiny_vibevoices import save_as_on_the_hub

session = open_session.session
ID = "vibevoice-1.5b"
TEXT = "Hello there, how are you today? I am well, thank you, and it is a fine day."


@pytest.fixture
def folder(session: Session, tmp_path: Path) -> Path:
    made = save_as_on_the_hub(tmp_path / "vibevoice", endless=True)
    put(session.home, "vibevoice/VibeVoice-1.5B-hf", made)
    return made


def speak(session: Session, job: Path, text: str = TEXT, **more: Any) -> list[Event]:
    request = SpeechRequest(text, ID, **{"seed": 3, "max_frames": 17, **more})
    return list(session.run(request, Choice(), Control(), job, lambda model, plan: None))


def read_result(events: list[Event]) -> sound.Samples:
    assert isinstance(events[-1], Finished), events[-1]
    return sound.read(Path(events[-1].files[0]))[0]


def save_tone(file: Path, pitch: float) -> VoicePrompt:
    sound.write(file, (0.3 * np.sin(2 * np.pi * pitch * np.arange(4 * 24_000) / 24_000)).astype(np.float32), 24_000)
    return VoicePrompt(str(file), "")


def test_it_is_there_once_all_its_files_are(session: Session, folder: Path) -> None:
    found = locate(session.home, BY_ID[ID])
    assert found is not None and not found.companions
    next(iter(found.folder.glob("model-*.safetensors"))).unlink()
    assert locate(session.home, BY_ID[ID]) is None


@pytest.mark.slow
def test_a_recording_is_imitated_without_its_words(session: Session, folder: Path, tmp_path: Path) -> None:
    clips = [save_tone(tmp_path / f"{pitch}.wav", pitch) for pitch in (110, 900)]
    low, high = (read_result(speak(session, tmp_path / Path(clip.path).stem, voice=clip)) for clip in clips)
    plain, again = (read_result(speak(session, tmp_path / name)) for name in ("plain", "again"))
    assert np.array_equal(plain, again) and not np.array_equal(low, high) and not np.array_equal(plain, low)


@pytest.mark.slow
def test_a_cast_of_four_speaks_each_with_a_voice(session: Session, folder: Path, tmp_path: Path) -> None:
    names = ("Anna", "Ben", "Cleo", "Dan")
    cast = tuple(Actor(name, voice=save_tone(tmp_path / f"{name}.wav", 110 * (place + 1))) for place, name in enumerate(names))
    request = SpeechRequest("\n".join(f"{name}: Good morning." for name in names), ID, seed=3, max_frames=17, cast=cast)
    check(session.home, request, BY_ID[ID])
    events = list(session.run(request, Choice(), Control(), tmp_path / "job", lambda model, plan: None))
    parts = [sound.read(Path(each.path))[0] for each in events if isinstance(each, PartDone)]
    assert len(parts) == 4 and not any(np.array_equal(parts[0], each) for each in parts[1:]) and isinstance(events[-1], Finished)
    assert not any("sound alike" in str(each.sentence) or "two voices" in str(each.sentence) for each in events if isinstance(each, Note))


def test_the_window_shows_what_it_can_and_nothing_else(session: Session, folder: Path, tmp_path: Path) -> None:
    with desk_at(tmp_path / "home") as desk:
        view = script_view(desk, "[S5] Hello (laughs). [S4] 你好，世界。", ID, OWNER, "en")
        lacks = script_view(desk, "Es war kalt, und sie sagten nicht, dass es schon sehr spät war.", ID, OWNER, "en")["problems"]
        both = script_view(desk, "[Anna] Hi. [Ben] Ho.", ID, OWNER, "en", cast=(Actor("Anna", model="dia-1.6b"),))["settings"]
    assert view["settings"] == ["guidance"] and not view["transcript"] and both == sorted(DIA.settings)
    assert "VibeVoice speaks English, Chinese only" in " ".join(each["text"] for each in lacks)
    assert view["imitates"] and view["tags"] == ["[S1]", "[S2]", "[S3]", "[S4]"] and view["nonverbals"] == []
    assert [*find_limits(session.home, ID).settings] == ["guidance"]


def test_it_is_forecast_and_goes_on_from_a_speakers_last_part(session: Session, folder: Path) -> None:
    request = SpeechRequest("[S1] " + TEXT * 12, ID, seed=3)
    forecast = make_forecast(Setup(session.home, session.hardware), request, BY_ID[ID])
    assert forecast.plan is not None and forecast.plan.of("speech") is not None
    kind = kind_of(request)
    assert kind.measure_work(session.home, request) == pytest.approx(7.5 * len(TEXT) * 12 / 14.5, rel=0.1)
    chained = [part.chained for part in kind.plan_parts(session.home, request)]
    assert len(chained) > 1 and all(chained)


@pytest.mark.slow
def test_another_computer_speaks_as_the_same_recording(session: Session, folder: Path, tmp_path: Path) -> None:
    clip, files = save_tone(tmp_path / "low.wav", 110), tmp_path / "files"
    packed = pack(SpeechRequest(TEXT, ID, clip, seed=3))
    files.mkdir()
    request = unpack(packed.body, lambda sha256, suffix: Path(shutil.copy(packed.files[sha256], files / f"{sha256}{suffix}")), str)
    assert isinstance(request, SpeechRequest) and request.voice is not None and request.voice.path != clip.path
    assert Path(request.voice.path).read_bytes() == Path(clip.path).read_bytes()
    there, plain = read_result(speak(session, tmp_path / "there", voice=request.voice)), read_result(speak(session, tmp_path / "plain"))
    assert not np.array_equal(there, plain)
    parts = kind_of(request).plan_parts(session.home, replace(request, text="[S1] " + TEXT * 12))
    assert len(parts) > 1 and not any(part.chained for part in parts), "with a recording no part waits for the one before"


@pytest.mark.parametrize("quantised", ["none", "int8", "int4"])
def test_every_machine_has_a_plan_for_it(session: Session, quantised: Quantised) -> None:
    here = {name: machine for name, machine in MACHINES.items() if quantised == "none" or machine.kind in ("cpu", "mps")}
    for name, machine in here.items():
        plan = make_plan(session.home, machine, BY_ID[ID], Choice(quantised=quantised), {}, itself=True)
        speech = plan.of("speech")
        assert speech is not None and speech.storage == speech.compute and plan.offload in ("none", "model"), name
        assert plan.quantised == quantised and plan.row == "calls", name


def test_what_makes_its_sound_has_8_bits_also_beside_4(folder: Path) -> None:
    (part,) = describe_need(BY_ID[ID]).parts
    half = Precision("model", "speech", "bfloat16", "bfloat16", "cpu")
    whole, eight, four = (part_bytes(part, half, each) for each in ("none", "int8", "int4"))
    assert (whole, part.linear) == (2 * 2_704_021_987, 2_243_788_800)
    assert 2.9e9 < eight < 3.3e9 and 2.5e9 < four < 2.9e9
    own = catalog.find(str(folder)).parts[0]
    assert own.linear is not None and 0 < own.eight < own.linear
