"""Voices that the starter voice learned by name: offered beside saved ones, never deleted, named to the model after the speaker's tag."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.compat.planning.types import Plan
from app.engine.jobs.request import VoicePrompt
from app.engine.speech import loader
from app.engine.speech.decoder import Decoding, PartInput
from app.engine.speech.voice_prompt import compose_text, name_voices
from app.engine.text import pronounce, sounds, voices
from app.engine.text.turns import Turn
from app.engine.text.voice_limits import DIA, VoiceLimits, clip_key, read_limits
from app.paths import Home
from app.sentence import Trouble
from tests.support import speech_fixtures
from tests.support.speech_fixtures import find_result, run, write_clip

folders, plan = speech_fixtures.folders, speech_fixtures.plan
CLIP = "/voice/voices/daisy.ogg"
USUAL = "/voice/voices/brian.ogg"
LIMITS = VoiceLimits(carries=False, ready={clip_key(CLIP): "3", clip_key(USUAL): "1"}, usual=("0", "1"))


def of_other_signs() -> bytes:
    return zlib.compress(json.dumps({"signs": "abc", "words": {}, "rules": {}}).encode())


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
    assert [each.name for each in voices.list_offered_voices(home)] == ["Own", "Daisy"]
    ready = voices.list_ready_voices()[0]
    assert ready.spoken_by == "starter-voice" and ready.prompt == VoicePrompt(str(shipped / "daisy.ogg"), "One two.")
    assert voices.list_offered_voices(home, guest=True) == (ready,)
    voices.forget_voice(home, ready)
    voices.forget_voice(home, own)
    assert (shipped / "daisy.ogg").exists() and [each.name for each in voices.list_offered_voices(home)] == ["Daisy"]


def test_no_voice_is_saved_under_a_ready_ones_name(shipped: Path, home: Home) -> None:
    with pytest.raises(Trouble) as refused:
        voices.keep_voice(home, " daisy ", shipped / "daisy.ogg", "One two.", DIA)
    assert refused.value.sentence.key == "voice.ready-name"


def test_a_voice_saved_before_one_was_ready_hides_it(shipped: Path, home: Home) -> None:
    write_clip(home.voices / "daisy.wav", 2)
    (home.voices / "daisy.json").write_text(json.dumps({"name": "Daisy", "transcript": "Mine."}))
    assert [each.prompt.transcript for each in voices.list_offered_voices(home)] == ["Mine."]


def test_the_first_speaker_gets_the_voice_and_the_other_keeps_its_own() -> None:
    assert name_voices(1, CLIP, LIMITS) == ("3", "1")
    assert name_voices(2, CLIP, LIMITS) == ("0", "3")
    assert name_voices(1, "/elsewhere/daisy.ogg", LIMITS) == ()


def test_two_speakers_never_share_a_voice() -> None:
    assert name_voices(1, USUAL, LIMITS) == ("1", "0")
    assert name_voices(2, USUAL, LIMITS) == ("0", "1")


def test_a_ready_voice_is_known_where_hearth_was_moved() -> None:
    assert name_voices(1, "/new/place/voice/voices/daisy.ogg", LIMITS) == ("3", "1")


def test_a_shelfs_voice_is_found_again_where_hearth_was_moved(shipped: Path) -> None:
    (ready,) = voices.list_ready_voices()
    key = clip_key(ready.prompt.path)
    assert voices.is_same(ready, VoicePrompt(f"/old/{key}", "Other words."))
    assert not voices.is_same(ready, VoicePrompt("/old/daisy.ogg", ready.prompt.transcript))
    assert voices.is_ready(ready.prompt) and not voices.is_ready(VoicePrompt(f"/old/{key}", "Other words."))


def test_the_sign_follows_every_tag() -> None:
    spoken = (Turn(1, "a"), Turn(1, "b"), Turn(2, "c"), Turn(1, "d"))
    assert compose_text(spoken, LIMITS, ("3", "1")) == "[S1]3 a b [S2]1 c [S1]3 d"
    assert compose_text(spoken, LIMITS) == "[S1] a b [S2] c [S1] d"


def test_a_ready_voice_is_named_and_not_heard(
    folders: dict[str, Path], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = speech_fixtures.copy_voice(folders["starter"], tmp_path / "starter")
    (folder / "voices").mkdir()
    clip = write_clip(folder / "voices" / "daisy.ogg", 3)
    (folder / "voices" / "daisy.json").write_text(json.dumps({"name": "Daisy", "transcript": "One.", "spoken_by": "tiny"}))
    tables = {"signs": sounds.SIGNS, "words": {"one": "wUn", "two": "tK"}, "rules": {}}
    (folder / "letters.bin").write_bytes(zlib.compress(json.dumps(tables).encode()))
    told = {"letters": "letters.bin", "ready": {"voices/daisy.ogg": "3"}, "usual": "01", "own_voices": ["tiny"], "generation": {}}
    (folder / "starter.json").write_text(json.dumps(told))
    assert read_limits(folder).ready == {"starter/voices/daisy.ogg": "3"} and read_limits(folder).usual == ("0", "1")
    heard: list[tuple[str, bool]] = []
    begin = Decoding.__init__

    def listening(self: Decoding, model: Any, device: str, part_input: PartInput, *others: Any) -> None:
        heard.append((bytes(part_input.text.tolist()).decode("latin-1"), part_input.prompt is None))
        begin(self, model, device, part_input, *others)

    monkeypatch.setattr(Decoding, "__init__", listening)
    speaker = loader.load(folder, plan)
    find_result(run(speaker, tmp_path / "ready", text="[S2] One. [S1] Two.", voice=VoicePrompt(clip, "One.")))
    find_result(run(speaker, tmp_path / "usual", text="[S2] One. [S1] Two."))
    assert heard == [("\x023 wUn. \x010 tK.", True), ("\x02 wUn. \x01 tK.", True)]


@pytest.mark.parametrize("held", [None, b"", b"no zlib", zlib.compress(b"[]"), zlib.compress(b"{}"), zlib.compress(b"{"), of_other_signs()])
def test_a_damaged_table_is_told(tmp_path: Path, held: bytes | None) -> None:
    path = tmp_path / "letters.bin"
    if held is not None:
        path.write_bytes(held)
    with pytest.raises(Trouble) as told:
        pronounce.read_letters(path)
    assert told.value.sentence.key == "letters.damaged"
