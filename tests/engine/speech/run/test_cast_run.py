"""A script with a cast, spoken by a session: each name with its own voice, of several models in one result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Finished, Loading, Note, PartDone, Step, Stopped
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import Actor, SpeechRequest, VoicePrompt, from_json, to_json
from app.engine.kinds import admit
from app.engine.models.on_disk import find_limits
from app.engine.session.session import Session
from app.engine.speech.families.dia.voice import Dia
from app.engine.speech.family import PartTask
from app.engine.speech.run import loader
from app.engine.speech.sound import join_sound, sound
from app.engine.speech.text import voices
from app.engine.speech.text.turns import Turn
from tests.support import cached_pockets, open_session, speech_fixtures
from tests.support.speech_fixtures import find_result, run, write_clip

session, phonon, pocket = open_session.session, cached_pockets.phonon, cached_pockets.pocket
folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers
SCENE = "[Anna] Good evening. [Ben] Hello. [Carl] Who is there? [Dora] Nobody. [Eva] Come in. [Anna] Thank you."


def speak(session: Session, job: Path, text: str, model: str, *cast: Actor, control: Control | None = None, **more: Any) -> list[Event]:
    request = SpeechRequest(text, model, cast=cast, **{"seed": 3, "max_frames": 20, **more})
    return list(session.run(request, Choice(), control or Control(), job, lambda model, plan: None))


def read_parts(job: Path) -> list[sound.Samples]:
    return [sound.read(path)[0] for path in SPOKEN.list_made(job).values()]


def list_done(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, PartDone)]


def brought(session: Session, name: str) -> VoicePrompt:
    return VoicePrompt(str(find_limits(session.home, "phonon-31m").brought[name]), "")


@pytest.mark.slow
def test_a_scene_of_five_has_five_speakers_with_a_one_voice_model(session: Session, phonon: Path, tmp_path: Path) -> None:
    events = speak(session, tmp_path / "job", SCENE, "phonon-31m", Actor("Carl", brought(session, "Max")))
    assert isinstance(events[-1], Finished), events[-1]
    assert list_done(events)[0] == "[Anna] Good evening." and len(list_done(events)) == 6
    alone = {}
    for name in ("Zoe", "Max"):
        speak(session, tmp_path / name, "[X] Good evening.", "phonon-31m", Actor("X", brought(session, name)))
        (alone[name],) = read_parts(tmp_path / name)
    parts = read_parts(tmp_path / "job")
    assert np.array_equal(parts[0], alone["Zoe"]), "the first who has no voice chosen gets the first of the model's"
    speak(session, tmp_path / "chosen", "[Carl] Good evening.", "phonon-31m", Actor("Carl", brought(session, "Max")))
    assert np.array_equal(read_parts(tmp_path / "chosen")[0], alone["Max"]) and not np.array_equal(alone["Zoe"], alone["Max"])


def test_two_models_take_turns_and_make_one_result(session: Session, phonon: Path, pocket: str, tmp_path: Path) -> None:
    text = "[Anna] Good evening. [Ben] Hello there, my friend. [Anna] Come in. [Ben] Thank you."
    events = speak(session, tmp_path / "job", text, "phonon-31m", Actor("Ben", model=pocket))
    end = events[-1]
    assert isinstance(end, Finished), end
    assert [each.model for each in events if isinstance(each, Loading)] == ["phonon-31m", pocket], "each is loaded once"
    assert [each.index for each in events if isinstance(each, PartDone) and each.whole][:2] == [0, 2], "a model speaks all of its parts"
    assert len(SPOKEN.list_made(tmp_path / "job")) == 4 and end.rate == 0.0, "a speed of two models says nothing of either"
    assert end.seconds > sum(len(each) for each in read_parts(tmp_path / "job")) / 24_000 * 0.5
    steps = [each for each in events if isinstance(each, Step)]
    assert all(each.done <= each.total for each in steps)
    assert sum("loaded once" in str(each.sentence) for each in events if isinstance(each, Note)) == 1


@pytest.mark.slow
def test_a_scene_of_two_models_resumes_with_the_one_that_is_missing(session: Session, phonon: Path, pocket: str, tmp_path: Path) -> None:
    text, job, control = "[Anna] Good evening. [Ben] Hello there. [Anna] Come in. [Ben] Thank you.", tmp_path / "job", Control()
    cast = Actor("Ben", model=pocket)

    def stop_late(events: Any) -> list[Event]:
        seen = []
        for event in events:
            seen.append(event)
            if isinstance(event, PartDone) and event.index == 1:
                control.stop()
        return seen

    request = SpeechRequest(text, "phonon-31m", cast=(cast,), seed=3, max_frames=20)
    first = stop_late(session.run(request, Choice(), control, job, lambda model, plan: None))
    assert isinstance(first[-1], Stopped) and set(SPOKEN.list_made(job)) == {0, 1, 2}
    session.free()
    rest = speak(session, job, text, "phonon-31m", cast)
    assert isinstance(rest[-1], Finished) and [each.model for each in rest if isinstance(each, Loading)] == [pocket]
    straight = speak(session, tmp_path / "straight", text, "phonon-31m", cast)
    assert isinstance(straight[-1], Finished)
    assert all(np.array_equal(a, b) for a, b in zip(read_parts(job), read_parts(tmp_path / "straight"), strict=True))


@pytest.mark.slow
def test_volume_and_pace_are_of_the_join_alone(session: Session, phonon: Path, tmp_path: Path) -> None:
    text = "[Anna] Good evening to you all. [Ben] Hello there."
    job, results = tmp_path / "job", []
    for cast in ((), (Actor("Ben", volume_db=-12.0),), (Actor("Ben", pace=0.5),)):
        events = speak(session, job, text, "phonon-31m", *cast, loudness_lufs=None)
        assert not cast or not [each for each in events if isinstance(each, Step)], "nothing is spoken anew"
        results.append(sound.read(find_result(events))[0])
    for wanted, told in ((-1.0, True), (-40.0, False)):
        events = speak(session, job, text, "phonon-31m", loudness_lufs=wanted)
        notes = [each.sentence.key for each in events if isinstance(each, Note)]
        assert ("speech.quieter" in notes) is told, "what loudness it came to is told where it is not the one asked for"
        assert np.abs(sound.read(find_result(events))[0]).max() <= join_sound.PEAK + 1e-3
    plain, quiet, slow = results
    second = int(0.3 * 24_000)
    assert np.abs(quiet[-second * 2 : -second]).max(initial=0) < 0.5 * np.abs(plain[-second * 2 : -second]).max(initial=0)
    assert len(slow) > len(plain)


def test_a_cast_is_refused_before_anything_is_loaded(session: Session, phonon: Path, tmp_path: Path) -> None:
    for cast, words in (
        (Actor("Anna", model="sd15"), "is no voice"),
        (Actor("Anna", model="dia-1.6b"), "is not installed"),
        (Actor("Anna", VoicePrompt(str(tmp_path / "none.wav"), "")), "cannot imitate"),
    ):
        with pytest.raises(Trouble, match=words):
            admit(SpeechRequest("[Anna] Hello.", "phonon-31m", cast=(cast,)), session.home)


def test_a_request_with_a_cast_survives_its_file_and_one_without_is_as_ever() -> None:
    request = SpeechRequest("[Anna] Hi.", cast=(Actor("Anna", VoicePrompt("a.wav", "Oh."), "dia-1.6b", -3.0, 1.1), Actor("Ben")))
    assert from_json(to_json(request)) == request and request.files == ("a.wav",)
    moved = request.with_files(lambda path: f"/x/{path}")
    assert moved.cast[0].voice == VoicePrompt("/x/a.wav", "Oh.") and moved.stays_here
    assert "cast" not in to_json(dataclasses.replace(request, cast=()))


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "A" * 41}, {"name": "A]"}, {"name": "A", "pace": 9.0}, {"name": "A", "volume_db": "x"}]
)
def test_an_odd_actor_is_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(Trouble):
        Actor(**wrong)


def test_a_cast_names_each_once_and_has_an_end() -> None:
    with pytest.raises(Trouble, match="twice"):
        SpeechRequest("Hi.", cast=(Actor("Anna"), Actor("anna")))
    with pytest.raises(Trouble, match="51 names"):
        SpeechRequest("Hi.", cast=tuple(Actor(f"A{number}") for number in range(51)))


def test_a_kept_voice_of_a_ready_one_is_known_in_a_cast(session: Session, tmp_path: Path) -> None:
    first, second = (each.prompt for each in voices.list_ready_voices()[:2])
    events = speak(session, tmp_path / "job", "[Anna] Hello. [Ben] Hello.", "starter-voice", Actor("Anna", second), Actor("Ben", first))
    assert isinstance(events[-1], Finished)
    anna, ben = read_parts(tmp_path / "job")
    assert not np.array_equal(anna, ben)


LINE = "This line is long enough to be a part by itself, I should think, or nearly so, if not quite."


def test_dia_hears_both_recordings_of_a_part_and_never_a_third(
    speakers: dict[str, loader.Speaker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a part goes on from has its own speakers alone, counted from 1, the recordings of both where both have one."""
    seen: list[tuple[list[Turn], list[Turn], int]] = []
    begin = Dia.begin

    def watch(self: Dia, task: PartTask, *more: Any) -> Any:
        context = task.context
        seen.append(([*task.part.turns], [*(context.turns if context else ())], len(context.codes) if context else 0))
        return begin(self, task, *more)

    monkeypatch.setattr(Dia, "begin", watch)
    clips = [Actor(name, VoicePrompt(write_clip(tmp_path / f"{name}.wav", 2), f"I am {name}.")) for name in ("Anna", "Ben")]
    text = f"[Anna] {LINE} [Ben] {LINE} [Carl] {LINE} (pause 1s) [Dora] {LINE}"
    find_result(run(speakers["dia"], tmp_path / "job", text=text, cast=tuple(clips), max_frames=20))
    assert all(max(turn.speaker for turn in (*part, *before)) <= 2 for part, before, _ in seen)
    both = next(each for each in seen if [turn.name for turn in each[0]] == ["Anna", "Ben"])
    assert [(turn.speaker, turn.text) for turn in both[1]] == [(1, "I am Anna."), (2, "I am Ben.")] and both[2] > 2 * 60
    alone = next(each for each in seen if [turn.name for turn in each[0]] == ["Dora"])
    assert "I am Anna." not in [turn.text for turn in alone[1]], "whoever has no recording goes on from nobody's of others"
