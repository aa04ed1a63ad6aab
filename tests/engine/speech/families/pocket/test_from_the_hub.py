"""Both models as the catalog has them: found in the hub's cache with what lies in other repositories, and spoken with by a session."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.base.trouble import Trouble
from app.cli.speak import find_voice
from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import Choice, Quantised
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Failed, Finished, Note
from app.engine.jobs.owners import Allowance
from app.engine.jobs.request import SpeechRequest, VoicePrompt
from app.engine.kinds import check, kind_of
from app.engine.models import catalog
from app.engine.models.catalog import BY_ID
from app.engine.models.forecast import make_forecast
from app.engine.models.on_disk import find_limits, locate
from app.engine.models.planned import Setup, make_plan
from app.engine.session.session import Session
from app.engine.speech.sound import sound
from app.engine.speech.text import voices
from app.machines.tasks.portable import note_speaker, pack, unpack
from app.ui.api import openai
from app.ui.state.guest_limits import grant_request
from app.ui.state.person import NOBODY, OWNER, Person
from app.ui.tabs.speak_fields import FRESH, voice_choices
from app.ui.tabs.speak_view import script_view
from tests.support import cached_pockets, open_session
from tests.support.guests import desk_at
from tests.support.tiny_pockets import VOICE_WIDTH, Kind, save_frames, save_pocket

session, phonon, pocket = open_session.session, cached_pockets.phonon, cached_pockets.pocket
TEXT = "Hello there, how are you today? I am well, thank you, and it is a fine day."
MODELS: dict[Kind, str] = {"phonon": "phonon-31m", "pocket": "pocket-tts"}


def speak(session: Session, job: Path, model: str, text: str = TEXT, **more: Any) -> list[Event]:
    request = SpeechRequest(text, model, **{"seed": 3, "max_frames": 20, **more})
    return list(session.run(request, Choice(), Control(), job, lambda model, plan: None))


def read_result(events: list[Event]) -> sound.Samples:
    assert isinstance(events[-1], Finished), events[-1]
    return sound.read(Path(events[-1].files[0]))[0]


def test_it_is_there_once_all_its_repositories_are(session: Session, phonon: Path) -> None:
    found = locate(session.home, BY_ID["phonon-31m"])
    assert found is not None and found.companions["voices"] == phonon
    (phonon / "voices.jsonl").unlink()
    assert locate(session.home, BY_ID["phonon-31m"]) is None


def test_its_voices_are_those_of_its_language_that_lie_with_it(session: Session, phonon: Path) -> None:
    limits = find_limits(session.home, "phonon-31m")
    assert [*limits.brought] == ["Zoe", "Max", "Ann", "Élodie-Rose"] and limits.usual == ("Zoe", "Max", "Ann", "Élodie-Rose")
    assert limits.speakers == 4 and not limits.imitates and not limits.carries and limits.languages == ("en",)


def test_files_that_are_no_frames_are_no_voices(session: Session, phonon: Path, tmp_path: Path) -> None:
    """As caches of Kyutai's own program, a file that broke off, and one that leads elsewhere."""
    folder = save_pocket(tmp_path / "local", "phonon")
    save_frames(folder / "default-voice.safetensors", 1)
    save_frames(folder / "voices" / "freya.safetensors", 2, None)
    save_frames(folder / "voices" / "cache.safetensors", 3, None, cache=(2, 1, 9, 2, 16))
    save_frames(folder / "voices" / "wide.safetensors", 3, None, speaker_wavs=(1, 9, VOICE_WIDTH["phonon"]))
    (folder / "voices" / "broken.safetensors").write_bytes((folder / "voices" / "freya.safetensors").read_bytes()[:-5])
    (folder / "voices" / "elsewhere.safetensors").symlink_to(phonon / "voices" / "Zoe.safetensors")
    with pytest.raises(Trouble, match="leads out"):
        catalog.find(str(folder))
    (folder / "voices" / "elsewhere.safetensors").unlink()
    limits = catalog.look(str(folder)).limits
    assert limits is not None and [*limits.brought] == ["Default", "freya"] == [*limits.usual]


@pytest.mark.slow
def test_each_speaker_has_a_voice_and_the_first_the_chosen_one(session: Session, phonon: Path, tmp_path: Path) -> None:
    brought = find_limits(session.home, "phonon-31m").brought
    said = "[S{}] Hello there."
    usual = [read_result(speak(session, tmp_path / f"usual-{number}", "phonon-31m", said.format(number))) for number in (1, 2, 3)]
    assert not any(np.array_equal(usual[0], each) for each in usual[1:])
    for name, right in (("Max", usual[1]), ("Ann", usual[2])):
        request = SpeechRequest(said.format(1), "phonon-31m", VoicePrompt(str(brought[name]), ""), seed=3)
        check(session.home, request, BY_ID["phonon-31m"])
        chosen = read_result(speak(session, tmp_path / name, "phonon-31m", request.text, voice=request.voice))
        assert np.array_equal(chosen, right)
    events = speak(session, tmp_path / "all", "phonon-31m", "[S1] One here. [S2] Two there. [S3] And three.")
    assert len(read_result(events)) > 2 * len(usual[0]) and not [each for each in events if isinstance(each, Note)]


def save_german(folder: Path, language: str, *named: tuple[str, str]) -> str:
    """Save a Pocket TTS that speaks this language, with these voices, each with what its index says it speaks."""
    save_pocket(folder, "pocket", languages=[language])
    for name, _ in named:
        save_frames(folder / "embeddings" / f"{name}.safetensors", 1, None, x=(9, VOICE_WIDTH["pocket"]))
    lines = [{"name": name, "language": spoken, "filename": f"{name}.safetensors"} for name, spoken in named]
    (folder / "embeddings").mkdir(exist_ok=True)
    (folder / "embeddings" / "voices.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return str(folder)


@pytest.mark.parametrize("language", ["de", "de-AT"])
def test_one_of_another_language_offers_the_voices_that_fit_and_tells_of_a_text_that_does_not(
    language: str, session: Session, tmp_path: Path
) -> None:
    german = save_german(tmp_path / "german", language, ("Greta", "de"), ("Max", "de_DE"), ("Zoe", "en-us"), ("Anyone", ""))
    written = "Es waren 3 Kinder, und sie sagten nicht, dass es schon sehr kalt war."
    assert catalog.find(german).kind == "speech"
    with desk_at(tmp_path / "home") as desk:
        names = [each.name for each in desk.models.list_voices(german, OWNER)]
        assert names == ["Greta", "Max", "Anyone"]
        fits, lacks = (
            script_view(desk, text, german, OWNER, "en") for text in (written, "It was cold, and they had not said that it was.")
        )
        assert not fits["problems"] and fits["turns"][0]["said"].startswith("Es waren drei Kinder"), "in the words of its language"
        assert [each["text"] for each in lacks["problems"]] == [
            "This seems to be English. Pocket TTS speaks German only, so it may not be understood."
        ]
        voice = desk.models.list_voices(german, OWNER)[0].prompt
    plain, chosen = (
        read_result(speak(session, tmp_path / name, german, written, voice=each)) for name, each in (("a", None), ("b", voice))
    )
    assert np.array_equal(plain, chosen) and len(plain), "its first voice is the usual one"


def test_one_of_another_language_that_brings_no_voices_offers_none_of_the_english_ones(session: Session, tmp_path: Path) -> None:
    german, english = (save_german(tmp_path / each, each) for each in ("de", "en"))
    sound.write(tmp_path / "mine.wav", np.ones(24_000 * 4, np.float32), 24_000)
    with desk_at(tmp_path / "home") as desk:
        voices.note_speaker(Path(shutil.copy(tmp_path / "mine.wav", desk.keeper.home.voices)), "Mine.", "")
        assert [each.name for each in desk.models.list_voices(german, OWNER)] == ["mine"]
        assert len(desk.models.list_voices(english, OWNER)) == 1 + len(voices.list_ready_voices())
    assert read_result(speak(session, tmp_path / "job", german, "Es war kalt.")).size


def test_a_recording_is_refused_where_nothing_can_hear_it(session: Session, phonon: Path, tmp_path: Path) -> None:
    sound.write(tmp_path / "clip.wav", np.ones(48_000, np.float32), 24_000)
    request = SpeechRequest(TEXT, "phonon-31m", VoicePrompt(str(tmp_path / "clip.wav"), ""))
    with pytest.raises(Trouble, match="Phonon cannot imitate recordings"):
        check(session.home, request, BY_ID["phonon-31m"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made_for", "shape"),
    [
        ("ext@2", {}), ("ext@1", {"speaker_wavs": (1, 8, 9)}), ("ext@1", {"speaker_wavs": (2, VOICE_WIDTH["phonon"], 9)}),
        ("ext@1", {"speaker_wavs": (VOICE_WIDTH["phonon"],)}), (None, {"speaker_wavs": (1, VOICE_WIDTH["phonon"], 1001)}),
        (None, {"a": (9, VOICE_WIDTH["phonon"]), "b": (9, VOICE_WIDTH["phonon"])}),
    ],
)  # fmt: skip
def test_a_voice_of_another_model_is_told(session: Session, phonon: Path, tmp_path: Path, made_for: str | None, shape: Any) -> None:
    (phonon / "voices" / "Zoe.safetensors").resolve().unlink()
    save_frames((phonon / "voices" / "Zoe.safetensors").resolve(), 1, made_for, **shape)
    end = speak(session, tmp_path / "job", "phonon-31m")[-1]
    assert isinstance(end, Failed) and "was made for another model" in str(end.sentence)


def test_a_voice_that_is_no_number_is_told(session: Session, phonon: Path, tmp_path: Path) -> None:
    (phonon / "voices" / "Zoe.safetensors").resolve().unlink()
    save_file(
        {"speaker_wavs": np.full((1, VOICE_WIDTH["phonon"], 9), np.nan, np.float32)}, (phonon / "voices" / "Zoe.safetensors").resolve()
    )
    end = speak(session, tmp_path / "job", "phonon-31m")[-1]
    assert isinstance(end, Failed) and "is damaged" in str(end.sentence)


def test_pocket_speaks_as_a_recording_without_its_words(session: Session, pocket: str, tmp_path: Path) -> None:
    clips = [tmp_path / "low.wav", tmp_path / "high.wav"]
    for clip, pitch in zip(clips, (110, 900), strict=True):
        sound.write(clip, (0.3 * np.sin(2 * np.pi * pitch * np.arange(6 * 24_000) / 24_000)).astype(np.float32), 24_000)
    said = [read_result(speak(session, tmp_path / clip.stem, pocket, voice=VoicePrompt(str(clip), ""))) for clip in clips]
    assert not np.array_equal(said[0], said[1])
    plain, again = (read_result(speak(session, tmp_path / name, pocket)) for name in ("plain", "again"))
    assert np.array_equal(plain, again) and not any(np.array_equal(plain, each) for each in said)
    assert sound.read_settings(tmp_path / "plain" / "speech.wav") is not None


def test_window_and_programs_offer_what_the_model_can_speak_with(session: Session, phonon: Path, tmp_path: Path) -> None:
    sound.write(tmp_path / "mine.wav", np.ones(24_000 * 4, np.float32), 24_000)
    with desk_at(tmp_path / "home") as desk:
        voices.note_speaker(Path(shutil.copy(tmp_path / "mine.wav", desk.keeper.home.voices)), "Mine.", "")
        names = ["Zoe", "Max", "Ann", "Élodie-Rose"]
        for person, guest in ((OWNER, False), (NOBODY, True)):
            assert [each.name for each in desk.models.list_voices("phonon-31m", person)] == names
            assert [name for _, name in voice_choices(desk, "phonon-31m", guest)] == [FRESH, *names]
        assert [each.name for each in desk.models.list_voices("starter-voice", OWNER)] == [
            "mine",
            *(each.name for each in voices.list_ready_voices()),
        ]
        seen = {id_: script_view(desk, "[S5] Hello (laughs).", id_, OWNER, "en") for id_ in ("phonon-31m", "starter-voice")}
        assert [view["imitates"] for view in seen.values()] == [False, True]
        assert seen["phonon-31m"]["tags"] == ["[S1]", "[S2]", "[S3]", "[S4]"] and not seen["phonon-31m"]["nonverbals"]
        brought = find_limits(session.home, "phonon-31m").brought
        named, stands_in = (openai.find_voice(desk, name, "phonon-31m") for name in ("max", "alloy"))
        assert named is not None and named.path == str(brought["Max"])
        assert stands_in is not None and stands_in.path in map(str, brought.values()), "a name of OpenAI's is one of the ready voices"
        assert openai.find_voice(desk, "mine", "starter-voice") is not None
        with pytest.raises(Trouble, match="There is no voice mine here"):
            openai.find_voice(desk, "mine", "phonon-31m")


def test_the_command_knows_a_voice_by_its_name(session: Session, phonon: Path) -> None:
    limits = find_limits(session.home, "phonon-31m")
    assert find_voice("élodie-rose", None, session.home, limits) == VoicePrompt(str(limits.brought["Élodie-Rose"]), "")
    with pytest.raises(Trouble, match="Zoe, Max"):
        find_voice("Daisy", None, session.home, limits)


def test_a_guest_may_choose_one_of_them_and_no_other_file(session: Session, phonon: Path, tmp_path: Path) -> None:
    ada, said = Person("Ada", False), "[S1] Hello."
    with desk_at(tmp_path / "home") as desk:
        voice = VoicePrompt(str(find_limits(session.home, "phonon-31m").brought["Max"]), "")
        granted = grant_request(SpeechRequest(said, voice=voice), ada, desk.keeper, Allowance(), {})
        assert granted.model == "phonon-31m" and granted.voice == voice
        other = shutil.copy(voice.path, tmp_path / "Max.safetensors")
        with pytest.raises(Trouble) as refused:
            grant_request(SpeechRequest(said, voice=VoicePrompt(str(other), "")), ada, desk.keeper, Allowance(), {})
        assert refused.value.sentence.key == "guest.files"


def test_another_computer_knows_which_voice_is_meant(session: Session, phonon: Path, tmp_path: Path) -> None:
    limits = find_limits(session.home, "phonon-31m")
    packed = pack(SpeechRequest(TEXT, "phonon-31m", VoicePrompt(str(limits.brought["Max"]), "")))
    files = tmp_path / "files"
    files.mkdir()
    request = unpack(packed.body, lambda sha256, suffix: Path(shutil.copy(packed.files[sha256], files / f"{sha256}{suffix}")), str)
    assert isinstance(request, SpeechRequest) and request.voice is not None
    assert not voices.is_brought(request.voice, limits)
    note_speaker(packed.body, request, files)
    assert voices.is_brought(request.voice, limits)
    said = {"here": VoicePrompt(str(limits.brought["Max"]), ""), "there": request.voice}
    here, there = (read_result(speak(session, tmp_path / name, "phonon-31m", voice=voice)) for name, voice in said.items())
    assert np.array_equal(here, there)


def test_it_is_forecast_and_its_parts_are_made_anywhere(session: Session, phonon: Path, pocket: str) -> None:
    """Where no voice is given to Pocket TTS, a speaker's next part goes on from the last."""
    request = SpeechRequest("[S1] " + TEXT * 4, "phonon-31m", seed=3)
    forecast = make_forecast(Setup(session.home, session.hardware), request, BY_ID["phonon-31m"])
    assert forecast.fit == "fits" and forecast.plan is not None and forecast.plan.of("speech") is not None
    kind = kind_of(request)
    assert kind.measure_work(session.home, request) == pytest.approx(12.5 * len(TEXT) * 4 / 14.5, rel=0.1)
    chained = {
        model: [part.chained for part in kind.plan_parts(session.home, replace(request, model=model))] for model in ("phonon-31m", pocket)
    }
    assert set(chained["phonon-31m"]) == {False} and True in chained[pocket] and len(chained[pocket]) > 1
    clip = VoicePrompt(str(session.home.voices / "clip.wav"), "")
    assert not any(part.chained for part in kind.plan_parts(session.home, replace(request, model=pocket, voice=clip)))


@pytest.mark.parametrize("quantised", ["none", "int8"])
@pytest.mark.parametrize("id_", MODELS.values())
def test_every_machine_has_a_plan_for_it(session: Session, id_: str, quantised: Quantised) -> None:
    here = {name: machine for name, machine in MACHINES.items() if quantised == "none" or machine.kind in ("cpu", "mps")}
    for name, machine in here.items():
        plan = make_plan(session.home, machine, BY_ID[id_], Choice(quantised=quantised), {}, itself=True)
        speech = plan.of("speech")
        assert speech is not None and speech.storage == speech.compute and plan.offload in ("none", "model"), name
        assert plan.quantised == quantised and plan.row == "calls", name
