"""Sounds of other machines: only whole ones of the right kind count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import SpeechRequest
from app.engine.kinds import kind_of
from app.engine.speech.sound import arrived, sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart


def is_script(request: SpeechRequest, path: Path, longest_s: float) -> bool:
    right: bool = kind_of(request).is_result(request, [path], longest_s)
    return right


def write_part(path: Path, container: str, subtype: str, channels: int, rate: int) -> None:
    """Write a part as Hearth does, then put another sound in its place."""
    spoken_parts.save(SpokenPart("Hello.", 5, "key", 0.1, True, np.zeros((2, 9), np.int16), path), np.zeros(100, np.float32), 24_000)
    soundfile.write(path, np.full((rate // 100, channels), 0.1, np.float32), rate, subtype, format=container)


OWN = ("WAV", "PCM_16", 1, 44_100)


@pytest.mark.parametrize(
    "other",
    [
        ("FLAC", "PCM_16", 1, 44_100),
        ("WAV", "FLOAT", 1, 44_100),
        ("WAV", "PCM_16", 2, 44_100),
        ("WAV", "PCM_16", 1, 96_000),
        ("WAV", "PCM_16", 1, 7999),
    ],
)
def test_a_part_is_what_hearth_writes(tmp_path: Path, other: tuple[str, str, int, int]) -> None:
    """A FLAC by the name of a WAV, 8 channels at 384,000 Hz and 400 KB large, took 1.6 GB where it was read; the stretcher never
    ends at 10 Hz."""
    path = SPOKEN.shown(tmp_path, 0)
    write_part(path, *OWN)
    assert arrived.is_spoken(path, "Hello.", 5)
    write_part(path, *other)
    assert not arrived.is_spoken(path, "Hello.", 5)


@pytest.mark.parametrize("coding", [*sound.CODINGS])
def test_a_script_is_in_the_format_asked_for(tmp_path: Path, coding: str) -> None:
    path, request = tmp_path / f"speech.{coding}", SpeechRequest("[S1] Hello.", format=coding)
    with sound.open_writer(path, coding, sound.choose_rate(coding, 24_000), {}) as file:
        file.write(np.zeros(24_000, np.float32))
    assert is_script(request, path, 2.0)
    other = "flac" if coding == "wav" else "wav"
    with sound.open_writer(path, other, 24_000, {}) as file:
        file.write(np.zeros(24_000, np.float32))
    assert not is_script(request, path, 2.0)


def test_sound_that_is_none_is_not_taken(tmp_path: Path) -> None:
    path = SPOKEN.shown(tmp_path, 1)
    spoken_parts.save(SpokenPart("two", 6, "key", 0.5, True, np.zeros((8, 1), np.int16), path), np.zeros(4000, np.float32), 8000)
    assert arrived.is_spoken(path, "two", 6)
    about = path.with_suffix(".json")
    whole, text = path.read_bytes(), about.read_text()
    about.write_text(text + " " * spoken_parts.ABOUT.most_bytes)
    assert not arrived.is_spoken(path, "two", 6)
    about.write_text(text)
    for broken in (b"", b"RIFF", whole[:30], b"\x89PNG" + whole):
        path.write_bytes(broken)
        assert not arrived.is_spoken(path, "two", 6)
    path.unlink()
    assert not arrived.is_spoken(path, "two", 6)


@pytest.mark.parametrize(("field", "number"), [
    *(("seconds", number) for number in ("NaN", "Infinity", "1e999", "-1.0", "1e300")), ("seed", "-1"), ("seed", "4294967296"), ("frames", "-1"),
    ("frames", "1" + "0" * 30), ("key", '"\\ud800"'),
])  # fmt: skip
def test_a_part_says_no_number_that_no_part_has(tmp_path: Path, field: str, number: str) -> None:
    """NaN seconds made every answer to the page an error, also after a restart."""
    path = SPOKEN.shown(tmp_path, 0)
    write_part(path, *OWN)
    about = path.with_suffix(".json")
    said = json.loads(about.read_text())
    about.write_text(json.dumps({**said, field: "HERE"}).replace('"HERE"', number))
    assert not arrived.is_sound(path) and spoken_parts.find(path) is None and spoken_parts.measure(tmp_path, 0, "Hello.") == 0.0


def test_a_whole_script_has_to_be_sound(tmp_path: Path) -> None:
    path = tmp_path / "speech.wav"
    sound.write(path, np.zeros(800, np.float32), 8000)
    request = SpeechRequest("[S1] hello.", format="wav")
    assert is_script(request, path, 1.0) and not is_script(replace(request, format="flac"), path, 1.0)
    assert not is_script(request, path, 0.05), "hours of silence are a small file"
    for content in (b"", b"<html>", path.read_bytes()[:20], b"\x89PNG"):
        path.write_bytes(content)
        assert not arrived.is_speech(path, "wav", 1.0) and not is_script(request, path, 1.0)
