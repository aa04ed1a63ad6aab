"""Kept voices: renamed, described, removed and brought back; as one file, and what other files do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.base.paths import Home, home
from app.base.trouble import Trouble
from app.engine.models.voice_limits import DIA, clip_key
from app.engine.speech.sound import sound
from app.engine.speech.sound.measured_voice import measure_pace, measure_pitch, word_voice
from app.engine.speech.text import voices
from app.engine.speech.text.voice_files import FILE_BYTES, export_voice, import_voice
from tests.support.speech_fixtures import write_clip

RATE = 44_100


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return home(tmp_path / "home").create()


def keep(place: Home, name: str = "Anna B.", **more: Any) -> voices.Voice:
    clip = write_clip(place.scratch / "clip.wav", 6)
    return voices.keep_voice(place, name, Path(clip), "One two three.", DIA, **more)


def names(place: Home) -> list[str]:
    return [each.name for each in voices.list_voices(place)]


def test_a_voice_is_renamed_and_described_where_it_lies(place: Home) -> None:
    kept = keep(place, known=(clip_key(voices.list_ready_voices()[0].prompt.path),))
    voices.rename_voice(place, "Anna B.", "  Old   Anna ")
    voices.describe_voice(place, "Old Anna", "warm,\n a little hoarse" + "x" * 500)
    (now,) = voices.list_voices(place)
    assert now.name == "Old Anna" and now.prompt == kept.prompt and now.about.startswith("warm, a little hoarse") and len(now.about) == 400
    assert voices.find_known(Path(now.prompt.path)) == (clip_key(voices.list_ready_voices()[0].prompt.path),), "nothing else of it changes"
    keep(place, "Ben")
    for wanted, words in (
        ("ben", "already exists"),
        ("  ", "at least one letter"),
        (voices.list_ready_voices()[0].name, "comes with Hearth"),
    ):
        with pytest.raises(Trouble, match=words):
            voices.rename_voice(place, "Old Anna", wanted)
    with pytest.raises(Trouble, match="no saved voice"):
        voices.rename_voice(place, "Nobody", "Somebody")
    voices.rename_voice(place, "Old Anna", "OLD ANNA")


def test_a_removed_voice_comes_back_whole_unless_its_place_is_taken(place: Home) -> None:
    kept = keep(place)
    sound_before = Path(kept.prompt.path).read_bytes()
    voices.remove_voice(place, "Anna B.")
    assert not names(place) and not Path(kept.prompt.path).exists()
    voices.bring_back_voice(place, "Anna B.")
    assert voices.list_voices(place)[0].prompt == kept.prompt and Path(kept.prompt.path).read_bytes() == sound_before
    voices.remove_voice(place, "Anna B.")
    keep(place)
    with pytest.raises(Trouble, match="already exists"):
        voices.bring_back_voice(place, "Anna B.")
    with pytest.raises(Trouble, match="cannot be brought back"):
        voices.bring_back_voice(place, "../etc")


def test_a_voice_travels_as_one_file(place: Home, tmp_path: Path) -> None:
    known = (clip_key(voices.list_ready_voices()[1].prompt.path),)
    keep(place, spoken_by="starter-voice", known=known, about="warm")
    export_voice(voices.list_voices(place)[0], tmp_path / "anna.voice.wav")
    assert sound.measure_seconds(tmp_path / "anna.voice.wav") == pytest.approx(voices.list_voices(place)[0].seconds, abs=0.01), (
        "any player plays it"
    )
    other = home(tmp_path / "other").create()
    for name in ("Anna B.", "Anna B. 2"):
        came = import_voice(other, tmp_path / "anna.voice.wav")
        assert (came.name, came.prompt.transcript, came.about, came.spoken_by) == (name, "[S1] One two three.", "warm", "starter-voice")
        assert voices.find_known(Path(came.prompt.path)) == known
    ours, theirs = (sound.read(Path(each.prompt.path))[0] for each in (voices.list_voices(place)[0], voices.list_voices(other)[0]))
    assert len(theirs) == pytest.approx(len(ours), rel=0.02) and names(other) == ["Anna B. 2", "Anna B."]


def tagged(tag: object, seconds: float = 3.0) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        write_clip(path, seconds)
        sound.tag_wav(path, tag)  # type: ignore[arg-type]

    return write


GOOD = {"hearth_voice": 1, "name": "Eve", "transcript": "Hi."}


@pytest.mark.parametrize(
    "write",
    [
        lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"RIFF"), lambda path: path.write_bytes(b"PK\3\4" + bytes(100)),
        lambda path: path.write_bytes(b"\x80\x04\x95.pickle"), lambda path: write_clip(path, 3) and None, tagged({"kind": "speech", "text": "Hi."}),
        tagged(GOOD | {"hearth_voice": 2}), tagged(GOOD | {"name": ""}), tagged(GOOD | {"name": "x" * 61}), tagged(GOOD | {"name": "a\0b"}),
        tagged(GOOD | {"transcript": 3}), tagged(GOOD | {"transcript": "x" * 4001}), tagged(GOOD | {"known": ["x"] * 5}), tagged(GOOD, 0.3),
        lambda path: path.write_bytes(b"RIFF" + bytes(FILE_BYTES)),
    ],
)  # fmt: skip
def test_what_is_no_exported_voice_is_a_sentence(place: Home, tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "odd.wav")
    with pytest.raises(Trouble, match=r"odd\.wav is no voice that Hearth exported"):
        import_voice(place, tmp_path / "odd.wav")
    assert not names(place)


def test_a_foreign_voice_claims_nothing_that_is_not_here(place: Home, tmp_path: Path) -> None:
    tagged(GOOD | {"known": ["../../secret", "voice/voices/nobody.ogg"], "name": "../../Eve", "extra": {"a": 1}})(tmp_path / "eve.wav")
    came = import_voice(place, tmp_path / "eve.wav")
    assert Path(came.prompt.path).parent == place.voices and Path(came.prompt.path).name == "eve.wav"
    note = json.loads(Path(came.prompt.path).with_suffix(".json").read_text("utf-8"))
    assert note["known"] == [] and "extra" not in note


def tone(pitch: float, seconds: float = 2.0) -> sound.Samples:
    time_s = np.arange(int(seconds * RATE)) / RATE
    partials = [np.sin(2 * np.pi * pitch * each * time_s) / each for each in range(1, 6)]
    return (0.2 * np.sum(partials, axis=0)).astype(np.float32)


@pytest.mark.parametrize(
    ("pitch", "word"), [(90, "very low"), (120, "low"), (160, "neither low nor high"), (200, "high"), (300, "very high")]
)
def test_pitch_is_measured_and_worded(pitch: float, word: str) -> None:
    found = measure_pitch(tone(pitch), RATE)
    assert found == pytest.approx(pitch, rel=0.02) and [str(each) for each in word_voice(found, None)] == [word]


def test_noise_and_silence_have_no_pitch_and_few_words_no_pace() -> None:
    noise = np.random.default_rng(0).standard_normal(RATE).astype(np.float32)
    assert (
        measure_pitch(noise, RATE) is None
        and measure_pitch(noise[:0], RATE) is None
        and measure_pitch(np.zeros(RATE, np.float32), RATE) is None
    )
    assert measure_pace("Oh.", 1.0) is None and measure_pace("One two three four", 1.5) == 10.0
    assert [str(each) for each in word_voice(None, 10.0)] == ["calm"] and not word_voice(None, None)
