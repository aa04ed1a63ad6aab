"""Who is heard before a part: the part before, a clip, a kept voice; and clips that are none."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app.base.paths import Home, home
from app.base.trouble import Trouble
from app.compat.planning.types import Plan
from app.engine.jobs.events import Note, Step
from app.engine.jobs.request import SpeechRequest, VoicePrompt, to_json
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.voice_prompt import compose_text
from app.engine.speech.family import VoiceContext
from app.engine.speech.kind import SpeechKind
from app.engine.speech.run import loader
from app.engine.speech.run.run import choose_context
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.text import voices
from app.engine.speech.text.clip_cut import _find_quiet_place
from app.engine.speech.text.turns import ScriptPart as ScriptPart
from app.engine.speech.text.turns import Turn
from tests.support import speech_fixtures
from tests.support.speech_fixtures import LONG, find_result, run, write_clip

folders, plan, speakers = speech_fixtures.folders, speech_fixtures.plan, speech_fixtures.speakers


def turns(*said: tuple[int, str]) -> tuple[Turn, ...]:
    return tuple(Turn(*each) for each in said)


@pytest.mark.slow
def test_the_voice_of_the_part_before_is_heard(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    heard: list[int] = []
    begin = Decoding.__init__

    def listening(self: Decoding, model: Any, device: str, part_input: PartInput, *others: Any) -> None:
        heard.append(0 if part_input.prompt is None else len(part_input.prompt))
        begin(self, model, device, part_input, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decoding, "__init__", listening)
        run(speakers["dia"], tmp_path / "with", text=LONG)
        take = spoken_parts.find(tmp_path / "with" / "part-000.wav")
        assert take is not None and heard[0] == 0 and heard[1] == take.frames > 0
        heard.clear()
        run(speakers["dia"], tmp_path / "without", text=LONG, carry_voice=False)
        assert set(heard) == {0}


def test_a_starter_hears_a_clip_for_as_long_as_it_says(
    folders: dict[str, Path], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still has a voice for each tag and carries none from part to part."""
    folder = speech_fixtures.copy_voice(folders["starter"], tmp_path / "starter")
    told = {"generation": {"temperature": 0.0}, "clip_most_s": 3.0, "own_voices": ["tiny"]}
    (folder / "starter.json").write_text(json.dumps(told))
    heard: list[int] = []
    begin = Decoding.__init__

    def listening(self: Decoding, model: Any, device: str, part_input: PartInput, *others: Any) -> None:
        heard.append(0 if part_input.prompt is None else len(part_input.prompt))
        begin(self, model, device, part_input, *others)

    monkeypatch.setattr(Decoding, "__init__", listening)
    prompt = VoicePrompt(write_clip(tmp_path / "clip.wav", 6), "One two. One two. Hello.")
    sound.tag_wav(Path(prompt.path), to_json(SpeechRequest("One two. One two. Hello.", "tiny")))
    events = run(loader.load(folder, plan), tmp_path / "job", text="[S2] Hello one two.", voice=prompt)
    find_result(events)
    assert 60 < heard[0] <= 120, "frames, 40 a second"
    notes = [event.sentence.key for event in events if isinstance(event, Note)]
    assert "voice.trimmed" in notes and "voice.brief" not in notes


def test_a_part_that_lost_its_way_is_not_heard(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    """It would leave no room for the next one: prompt and part share the decoder's positions."""
    run(speakers["starter"], tmp_path, text=LONG)
    saved = spoken_parts.find(tmp_path / "part-000.wav")
    assert saved is not None
    lost = np.zeros((3050, 4), np.int16)
    spoken_parts.save(dataclasses.replace(saved, seconds=1.0, codes=lost), np.zeros(16000, np.float32), 16000)
    events = run(speakers["starter"], tmp_path, text=LONG)
    assert next(event.part for event in events if isinstance(event, Step)) == 1
    take = spoken_parts.find(tmp_path / "part-001.wav")
    assert take is not None and 30 < take.frames < 60


def test_who_is_heard_before_a_part() -> None:
    one, two = (VoiceContext(torch.zeros(1, 9), turns((speaker, "x"))) for speaker in (1, 2))
    both = VoiceContext(torch.zeros(1, 9), turns((1, "x"), (2, "y")))
    unheard = VoiceContext(torch.zeros(1, 9), ())
    for told, before, speaker, wanted in (
        (None, (), (1,), None), (one, (both,), (1,), one), (one, (both,), (2,), both), (one, (one, both), (1, 2), both),
        (one, (), (2,), one), (None, (one, two), (2,), two), (None, (one, one), (2,), one), (unheard, (both,), (1, 2), unheard),
    ):  # fmt: skip
        assert choose_context(ScriptPart(turns(*((each, "z") for each in speaker)), 1.0), told, before) is wanted


def test_a_voice_that_needs_no_transcript_takes_a_clip_alone(tmp_path: Path) -> None:
    free, clip = dataclasses.replace(DIA, needs_transcript=False), write_clip(tmp_path / "clip.wav", 20)
    alone = VoicePrompt(clip, " ")
    with pytest.raises(Trouble, match="exactly what is said"):
        voices.prepare_prompt(alone, DIA)
    ready = voices.prepare_prompt(alone, free)
    assert (
        ready.turns == ()
        and [note.key for note in ready.notes] == ["voice.shortened"]
        and len(ready.samples) <= free.heard_most_s * free.rate
    )
    assert voices.prepare_prompt(VoicePrompt(clip, "Hello."), free).turns == turns((1, "Hello.")), "words that are there are used"
    kept = voices.keep_voice(home(tmp_path / "home").create(), "Ann", Path(clip), "", free)
    (listed,) = voices.list_voices(home(tmp_path / "home").create())
    assert listed.prompt == kept.prompt and not kept.prompt.transcript
    with pytest.raises(Trouble, match="imitate recordings"):
        voices.parse_transcript(alone, dataclasses.replace(free, imitates=False))


def test_the_voice_of_a_clip_alone_hangs_on_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = SpeechRequest("[S1] One. [S2] Two. " * 30, voice=VoicePrompt(write_clip(tmp_path / "clip.wav", 6), ""))
    for needs in (True, False):
        limits = dataclasses.replace(DIA, needs_transcript=needs)
        monkeypatch.setattr("app.engine.speech.kind.find_limits", lambda place, model, limits=limits: limits)
        parts = SpeechKind().plan_parts(home(tmp_path / "home").create(), request)
        assert len(parts) > 1 and {part.chained for part in parts} == {needs}


def test_what_the_encoder_reads() -> None:
    assert compose_text(turns((1, "a")), DIA) == "[S1] a."
    assert compose_text(turns((1, "a?"), (2, "b,")), DIA) == "[S1] a? [S2] b. [S1]"
    assert compose_text(turns((1, "a"), (1, "b."), (2, "c."), (1, "d.")), DIA) == "[S1] a b. [S2] c. [S1] d. [S2]"
    assert compose_text(turns((2, "a."), (1, "b!")), DIA) == "[S1] a. [S2] b! [S1]"
    assert compose_text(turns((2, "a."), (1, "b.")), dataclasses.replace(DIA, carries=False)) == "[S2] a. [S1] b."


def test_a_clip_gives_the_voice(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    prompt = VoicePrompt(write_clip(tmp_path / "clip.wav", 6), "Anyone's words, said in six seconds.")
    plain, voiced = (run(speakers["dia"], tmp_path / str(voice is None), voice=voice) for voice in (None, prompt))
    assert not np.array_equal(sound.read(find_result(plain))[0], sound.read(find_result(voiced))[0])


def test_clips_are_made_ready(tmp_path: Path) -> None:
    silence = np.zeros(22050, np.float32)
    noise = (0.2 * np.random.default_rng(0).standard_normal(22050 * 6)).astype(np.float32)
    sound.write(tmp_path / "padded.wav", np.concatenate([silence, noise, silence]), 22050)
    ready = voices.prepare_prompt(VoicePrompt(str(tmp_path / "padded.wav"), "[S1] “Six” seconds."), DIA)
    assert ready.rate == 44100 and len(ready.samples) / 44100 == pytest.approx(6.25, abs=0.05)
    assert ready.turns == turns((1, '"Six" seconds.')) and ready.notes == ()
    brief = voices.prepare_prompt(VoicePrompt(write_clip(tmp_path / "brief.wav", 2), "Two."), DIA)
    assert [note.key for note in brief.notes] == ["voice.brief"]


@pytest.mark.parametrize(("seconds", "key"), [(2, "voice.brief"), (20, "voice.trimmed")])
def test_a_clip_is_called_what_it_is(seconds: float, key: str, tmp_path: Path) -> None:
    """A person's recording, or what was kept from a result; of an older voice nobody knows."""
    place, clip = Home(tmp_path, tmp_path / "models").create(), write_clip(tmp_path / "clip.wav", seconds)
    path = place.voices / "kept.wav"
    for spoken_by, words in (
        ("starter-voice", "The sound kept from one of your results is"),
        ("dia-1.6b", "The sound kept from one of your results is"),
        ("", "The recording is"),
        (None, "The recording is"),
    ):
        path.write_bytes(Path(clip).read_bytes())
        voices.note_speaker(path, "Some words.", spoken_by)
        (note,) = voices.prepare_prompt(VoicePrompt(str(path), "Some words."), DIA).notes
        assert note.key == key and str(note).startswith(words)
    deleted, other = VoicePrompt(str(place.voices / "gone.wav"), "Hello."), VoicePrompt(clip, "Hello.")
    assert [voices.say_gone(place, each).key for each in (deleted, other)] == ["restore.voice-gone", "restore.voice"]


@pytest.mark.slow
def test_a_two_hour_clip_is_cut_with_a_word_about_it(tmp_path: Path) -> None:
    words = "[S1] " + "Some words that go on and on. " * 3500
    path = write_clip(tmp_path / "long.wav", 7200, rate=2000)
    ready = voices.prepare_prompt(VoicePrompt(path, words), DIA)
    assert 8 <= len(ready.samples) / ready.rate <= 12
    assert [note.key for note in ready.notes] == ["voice.trimmed"]
    kept = ready.turns[0].text
    assert words[5:].startswith(kept) and 60 < len(kept) < 250
    small = dataclasses.replace(DIA, rows_most=600, frame_rate=40.0, delay=3)
    assert len(voices.prepare_prompt(VoicePrompt(path, words), small).samples) / small.rate < small.seconds_most / 2


@pytest.mark.parametrize(
    ("seconds", "loud", "words", "key"),
    [
        (5, 0.0, "Hush.", "voice.silent"), (0, 0.2, "Hush.", "sound.empty"), (0.3, 0.2, "Hush.", "voice.short"),
        (5, 0.2, " ", "voice.no-words"), (5, 0.2, "[S3] Hush.", "voice.bad-words"), (5, 0.2, "hush " * 103, "voice.wordy"),
    ],
)  # fmt: skip
def test_clips_that_are_no_voice(
    speakers: dict[str, loader.Speaker], tmp_path: Path, seconds: float, loud: float, words: str, key: str
) -> None:
    path = write_clip(tmp_path / "clip.wav", seconds, loud=loud)
    if key == "sound.empty":
        Path(path).write_bytes(b"")
    with pytest.raises(Trouble) as caught:
        run(speakers["dia"], tmp_path / "job", voice=VoicePrompt(path, words))
    assert caught.value.sentence.key == key
    with pytest.raises(Trouble):
        run(speakers["dia"], tmp_path / "job", voice=VoicePrompt(str(tmp_path / "nowhere.wav"), "Hush."))


def test_voices_are_kept_by_name(speakers: dict[str, loader.Speaker], tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path / "models").create()
    kept = voices.keep_voice(home, "  Grandma's  voice ", Path(write_clip(tmp_path / "clip.wav", 6)), "Hello, dear.", DIA)
    (home.voices / "junk.json").write_text("{")
    assert voices.list_voices(home) == (kept,)
    assert (kept.name, kept.prompt.transcript) == ("Grandma's voice", "[S1] Hello, dear.")
    find_result(run(speakers["dia"], tmp_path / "job", voice=kept.prompt))
    before = Path(kept.prompt.path).read_bytes()
    with pytest.raises(Trouble, match="A voice named Grandma's voice already exists"):
        voices.keep_voice(home, "grandma's voice!", Path(write_clip(tmp_path / "other.wav", 7)), "Hello, dear.", DIA)
    assert Path(kept.prompt.path).read_bytes() == before
    voices.forget_voice(home, kept)
    assert voices.list_voices(home) == ()
    with pytest.raises(Trouble):
        voices.keep_voice(home, "///", tmp_path / "clip.wav", "Hello, dear.", DIA)
    assert voices.list_voices(Home(tmp_path / "none", tmp_path)) == ()


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a permission there")
@pytest.mark.parametrize("end", [".wav", ".json"])
def test_a_saved_voice_that_leads_elsewhere_is_not_opened(end: str, tmp_path: Path) -> None:
    """A folder of voices from a stranger may name any file of this computer."""
    place = Home(tmp_path / "home", tmp_path / "models").create()
    clip = Path(write_clip(tmp_path / "clip.wav", 6))
    voices.keep_voice(place, "Ann", clip, "Hello.", DIA)
    file = place.voices / f"ann{end}"
    file.rename(tmp_path / f"private{end}")
    file.symlink_to(tmp_path / f"private{end}")
    before = (tmp_path / f"private{end}").read_bytes()
    assert voices.list_voices(place) == ()
    if end == ".json":
        assert not voices.read_note(place.voices / "ann.wav")
        with pytest.raises(Trouble, match="leads elsewhere"):
            voices.keep_voice(place, "Ann", clip, "Hello.", DIA)
    else:
        voices.keep_voice(place, "Ann", clip, "Hello.", DIA)
        assert not file.is_symlink()
    assert (tmp_path / f"private{end}").read_bytes() == before


def test_a_kept_voice_notes_who_spoke_it(tmp_path: Path) -> None:
    place = Home(tmp_path, tmp_path / "models").create()
    told, own, person = (Path(write_clip(tmp_path / f"{name}.wav", 6)) for name in ("told", "own", "person"))
    sound.tag_wav(own, to_json(SpeechRequest("Hello.", "starter-voice")))
    for name, path, spoken_by, noted in (
        ("told", told, "dia-1.6b", "dia-1.6b"),
        ("own", own, "", "starter-voice"),
        ("person", person, "", ""),
    ):
        assert voices.keep_voice(place, name, path, "Hello.", DIA, spoken_by=spoken_by).spoken_by == noted
    assert [each.spoken_by for each in voices.list_voices(place)] == ["starter-voice", "", "dia-1.6b"]
    assert voices.keep_voice(place, "again", place.voices / "own.wav", "Hello.", DIA).spoken_by == "starter-voice"
    assert voices.find_speaker(tmp_path / "nowhere.wav") == ""


def test_a_starter_follows_what_its_own_model_spoke(tmp_path: Path) -> None:
    place = Home(tmp_path, tmp_path / "models").create()
    path = Path(write_clip(tmp_path / "clip.wav", 6))
    starter = dataclasses.replace(DIA, own_voices=frozenset(("starter-voice",)))

    def refused(voice: voices.Voice, limits: VoiceLimits) -> str:
        try:
            return "" if voices.parse_transcript(voice.prompt, limits) else "nothing"
        except Trouble as trouble:
            return trouble.sentence.key

    own = voices.keep_voice(place, "own", path, "Hello.", DIA, spoken_by="starter-voice")
    foreign = voices.keep_voice(place, "foreign", path, "Hello.", DIA)
    assert refused(own, starter) == "" and refused(foreign, starter) == "voice.not-own"
    assert refused(own, DIA) == refused(foreign, DIA) == "", "Dia follows any"
    older = voices.keep_voice(place, "older", path, "Hello.", DIA)
    note = Path(older.prompt.path).with_suffix(".json")
    note.write_text(json.dumps({name: value for name, value in json.loads(note.read_text()).items() if name != "spoken_by"}))
    assert refused(older, starter) == "voice.not-own", "nobody knows who spoke it"


@pytest.mark.parametrize("quiet_s", [5.5, 6.0, 7.25])
def test_a_long_clip_is_cut_in_its_quietest_place(quiet_s: float) -> None:
    """Between 55 and 80 % of 10 s, to the middle of the quietest twentieth of a second."""
    samples = np.ones(12_000, np.float32)
    samples[:5500], samples[8000:], samples[round(quiet_s * 1000) : round(quiet_s * 1000) + 50] = 0, 0, 0.1
    assert _find_quiet_place(samples, 1000, 10.0) == quiet_s * 1000 + 25
