"""Voices that the starter voice learned by name: offered beside saved ones, never deleted, named to the model after the speaker's tag."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.planning.types import Plan
from app.engine.jobs.request import VoicePrompt
from app.engine.models.voice_limits import DIA, VoiceLimits, clip_key, read_limits
from app.engine.speech.families.dia.decoder import Decoding, PartInput
from app.engine.speech.families.dia.voice_prompt import compose_text
from app.engine.speech.run import loader
from app.engine.speech.text import pronounce, sounds, voices
from app.engine.speech.text.known_voices import list_known, name_voices
from app.engine.speech.text.turns import Turn
from tests.support import speech_fixtures
from tests.support.speech_fixtures import find_result, run, write_clip

folders, plan = speech_fixtures.folders, speech_fixtures.plan
DAISY = clip_key("/voice/voices/daisy.ogg")
BRIAN = clip_key("/voice/voices/brian.ogg")
LIMITS = VoiceLimits(carries=False, ready={DAISY: "3", BRIAN: "1"}, usual=("0", "1"))


def of_other_signs() -> bytes:
    return zlib.compress(json.dumps({"signs": "abc", "words": {}, "rules": {}}).encode())


def of_long_words() -> bytes:
    """With which a script of a few hundred words would take gigabytes at each press of a key."""
    return zlib.compress(json.dumps({"signs": sounds.SIGNS, "words": {"the": "D" * 4_000_000}, "rules": {}}).encode())


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Ship one ready voice, Daisy."""
    folder = tmp_path / "assets" / "starter" / "voice" / "voices"
    folder.mkdir(parents=True)
    write_clip(folder / "daisy.ogg", 3)
    (folder / "daisy.json").write_text(json.dumps({"name": "Daisy", "transcript": "One two.", "spoken_by": "starter-voice"}))
    monkeypatch.setattr(voices, "assets", lambda: tmp_path / "assets")
    voices.list_ready_voices.cache_clear()
    yield folder
    voices.list_ready_voices.cache_clear()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home", tmp_path / "models").create()


def test_ready_voices_are_offered_after_saved_ones_and_stay(shipped: Path, home: Home) -> None:
    own = voices.keep_voice(home, "Own", shipped / "daisy.ogg", "One two.", DIA)
    assert [each.name for each in voices.list_offered_voices(home, DIA)] == ["Own", "Daisy"]
    ready = voices.list_ready_voices()[0]
    assert ready.spoken_by == "starter-voice" and ready.prompt == VoicePrompt(str(shipped / "daisy.ogg"), "One two.")
    assert voices.list_offered_voices(home, DIA, guest=True) == (ready,)
    voices.forget_voice(home, ready)
    voices.forget_voice(home, own)
    assert (shipped / "daisy.ogg").exists() and [each.name for each in voices.list_offered_voices(home, DIA)] == ["Daisy"]


def test_no_voice_is_saved_under_a_ready_ones_name(shipped: Path, home: Home) -> None:
    with pytest.raises(Trouble) as refused:
        voices.keep_voice(home, " daisy ", shipped / "daisy.ogg", "One two.", DIA)
    assert refused.value.sentence.key == "voice.ready-name"


def test_a_voice_saved_before_one_was_ready_hides_it(shipped: Path, home: Home) -> None:
    write_clip(home.voices / "daisy.wav", 2)
    (home.voices / "daisy.json").write_text(json.dumps({"name": "Daisy", "transcript": "Mine."}))
    assert [each.prompt.transcript for each in voices.list_offered_voices(home, DIA)] == ["Mine."]


def test_the_first_speaker_gets_the_voice_and_the_other_keeps_its_own() -> None:
    assert name_voices(1, [DAISY], LIMITS) == ("3", "1")
    assert name_voices(2, [DAISY], LIMITS) == ("0", "3")
    assert name_voices(1, [clip_key("/elsewhere/daisy.ogg")], LIMITS) == name_voices(1, [], LIMITS) == ()


def test_two_speakers_never_share_a_voice() -> None:
    assert name_voices(1, [BRIAN], LIMITS) == ("1", "0")
    assert name_voices(2, [BRIAN], LIMITS) == ("0", "1")


def test_two_voices_saved_together_stay_with_their_speakers() -> None:
    for first in (1, 2):
        assert name_voices(first, [BRIAN, DAISY], LIMITS) == ("1", "3")
        assert name_voices(first, [DAISY, "voice/voices/gone.ogg"], LIMITS) == (), "it is heard instead"


def test_the_voices_heard_in_a_result() -> None:
    both = [Turn(2, "a"), Turn(1, "b"), Turn(2, "c")]
    assert list_known(("3", "1"), both, LIMITS) == (DAISY, BRIAN)
    assert list_known(("1", "3"), both[:1], LIMITS) == (DAISY,), "one alone is for whoever speaks first"
    assert list_known(("0", "1"), both, LIMITS) == (), "there is no clip of Anna's here"
    assert list_known((), both, LIMITS) == list_known((), both, DIA) == ()


def test_a_saved_voice_says_which_ready_ones_it_has(shipped: Path, home: Home, tmp_path: Path) -> None:
    clip = Path(write_clip(tmp_path / "clip.wav", 6))
    kept = voices.keep_voice(home, "Own", clip, "[S1] One. [S2] Two.", DIA, spoken_by="starter-voice", known=(DAISY, BRIAN))
    assert voices.find_known(Path(kept.prompt.path)) == (DAISY, BRIAN)
    assert voices.find_known(shipped / "daisy.ogg") == (DAISY,), "a ready voice is itself"
    assert name_voices(1, voices.find_known(clip), LIMITS) == ()
    clip.with_suffix(".json").write_text("[]")
    assert name_voices(1, voices.find_known(clip), LIMITS) == (), "another program's file"


def test_a_ready_voice_is_known_where_hearth_was_moved() -> None:
    assert name_voices(1, voices.find_known(Path("/new/place/voice/voices/daisy.ogg")), LIMITS) == ("3", "1")


def test_a_shelfs_voice_is_found_again_where_hearth_was_moved(shipped: Path) -> None:
    (ready,) = voices.list_ready_voices()
    key = clip_key(ready.prompt.path)
    assert voices.is_same(ready, VoicePrompt(f"/old/{key}", "Other words."))
    assert not voices.is_same(ready, VoicePrompt("/old/daisy.ogg", ready.prompt.transcript))
    assert voices.is_ready(ready.prompt) and not voices.is_ready(VoicePrompt(f"/old/{key}", "Other words."))


def test_the_sign_follows_every_tag() -> None:
    spoken = (Turn(1, "a"), Turn(1, "b"), Turn(2, "c"), Turn(1, "d"))
    assert compose_text(spoken, LIMITS, ("3", "1")) == "[S1]3 a b. [S2]1 c. [S1]3 d."
    assert compose_text(spoken, LIMITS) == "[S1] a b. [S2] c. [S1] d."


def test_a_ready_voice_is_named_and_not_heard(
    folders: dict[str, Path], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = speech_fixtures.copy_voice(folders["starter"], tmp_path / "starter")
    (folder / "voices").mkdir()
    clip = write_clip(folder / "voices" / "daisy.ogg", 3)
    (folder / "voices" / "daisy.json").write_text(json.dumps({"name": "Daisy", "transcript": "One.", "spoken_by": "tiny"}))
    tables = {"signs": sounds.SIGNS, "words": {"one": "wUn", "two": "tK"}, "rules": {}}
    (folder / "letters.bin").write_bytes(zlib.compress(json.dumps(tables).encode()))
    signs = {"voices/daisy.ogg": "3", "voices/brian.ogg": "1"}
    told = {"letters": "letters.bin", "ready": signs, "usual": "01", "own_voices": ["tiny"], "generation": {}}
    (folder / "starter.json").write_text(json.dumps(told))
    ready = read_limits(folder).ready
    assert ready == {"starter/voices/daisy.ogg": "3", "starter/voices/brian.ogg": "1"} and read_limits(folder).usual == ("0", "1")
    kept = Path(write_clip(tmp_path / "kept.wav", 3))
    voices.note_speaker(kept, "[S1] One. [S2] Two.", "tiny", [*ready])
    heard: list[tuple[str, bool]] = []
    begin = Decoding.__init__

    def listening(self: Decoding, model: Any, device: str, part_input: PartInput, *others: Any) -> None:
        heard.append((bytes(part_input.text.tolist()).decode("latin-1"), part_input.prompt is None))
        begin(self, model, device, part_input, *others)

    monkeypatch.setattr(Decoding, "__init__", listening)
    speaker = loader.load(folder, plan)
    find_result(run(speaker, tmp_path / "ready", text="[S2] One. [S1] Two.", voice=VoicePrompt(clip, "One.")))
    find_result(run(speaker, tmp_path / "usual", text="[S2] One. [S1] Two."))
    find_result(run(speaker, tmp_path / "kept", text="[S2] One. [S1] Two.", voice=VoicePrompt(str(kept), "[S1] One. [S2] Two.")))
    assert heard == [("\x023 wUn. \x010 tK.", True), ("\x02 wUn. \x01 tK.", True), ("\x021 wUn. \x013 tK.", True)]


@pytest.mark.parametrize(
    "held", [None, b"", b"no zlib", zlib.compress(b"[]"), zlib.compress(b"{}"), zlib.compress(b"{"), of_other_signs(), of_long_words()]
)
def test_a_damaged_table_is_told(tmp_path: Path, held: bytes | None) -> None:
    path = tmp_path / "letters.bin"
    if held is not None:
        path.write_bytes(held)
    with pytest.raises(Trouble) as told:
        pronounce.read_letters(path)
    assert told.value.sentence.key == "letters.damaged"
