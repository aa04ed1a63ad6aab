"""Subtitles of what was spoken: exact between parts, in their pauses within one; whole sentences in every format that has room."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from app.engine.jobs.request import SpeechRequest, from_json
from app.engine.models.voice_limits import DIA, VoiceLimits
from app.engine.speech.kind import join_parts
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import subtitles
from app.engine.speech.text.chapter_names import name_chapter
from app.engine.speech.text.script import parse_script
from app.engine.speech.text.subtitles import Cue

RATE = 16_000
SCRIPT = "[S1] One. Two comes here after it. (pause 1s) [S1] Three & four."
SOUNDS_S = ((0.5, 0.4, 1.6), (0.8,))
"""Each part has sound, a pause, sound."""


def speak(folder: Path, request: SpeechRequest, limits: VoiceLimits = DIA) -> tuple[Path, float]:
    """Save noise as the parts of a script, and join them."""
    parsed = parse_script(request.text, limits)
    assert len(parsed.parts) == len(SOUNDS_S), [part.text for part in parsed.parts]
    for place, (part, times_s) in enumerate(zip(parsed.parts, SOUNDS_S, strict=True)):
        rng = np.random.default_rng(place)
        pieces = [rng.normal(0, 0.1 * (at % 2 == 0), int(time_s * RATE)) for at, time_s in enumerate(times_s)]
        samples = np.concatenate(pieces).astype(np.float32)
        path = folder / f"part-{place:03d}.wav"
        spoken_parts.save(SpokenPart(part.text, 1, "", len(samples) / RATE, True, None, path), samples, RATE)
    (file,), joined = join_parts(parsed, request, folder, range(len(parsed.parts)), folder)
    return Path(file), joined.seconds


@pytest.mark.parametrize(("coding", "speed"), [("wav", 1.0), ("flac", 1.0), ("mp3", 1.0), ("ogg", 1.0), ("opus", 1.0), ("wav", 1.25)])
def test_sentences_are_where_they_are_heard(coding: str, speed: float, tmp_path: Path) -> None:
    file, seconds = speak(tmp_path, SpeechRequest(SCRIPT, seed=1, speed=speed, format=coding))
    first, second, third = subtitles.read_cues(file)
    assert [each.text for each in (first, second, third)] == ["One.", "Two comes here after it.", "Three & four."]
    samples, rate = sound.read(file)
    assert len(samples) / rate == pytest.approx(seconds, abs=0.1)
    at = int(first.end_s * rate)
    assert np.abs(samples[at - rate // 50 : at + rate // 50]).max() < 0.02, "between two sentences it is still"
    quiet = samples[int((second.end_s + 0.05) * rate) : int((third.begin_s - 0.05) * rate)]
    assert len(quiet) / rate == pytest.approx(0.9, abs=0.03) and np.abs(quiet).max() < 0.02, "the pause that the script has"
    begun = samples[int(third.begin_s * rate) : int((third.begin_s + 0.1) * rate)]
    assert np.abs(begun).max() > 0.05 and third.end_s == pytest.approx(seconds - 0.3, abs=0.05)
    settings = sound.read_settings(file)
    assert settings is not None and from_json(settings).words == SCRIPT, "the cues are no setting"
    with soundfile.SoundFile(file) as opened:
        assert opened.title == name_chapter(SCRIPT)


def test_readers_see_what_a_voice_reads_otherwise_as_it_is_written(tmp_path: Path) -> None:
    limits = replace(DIA, carries=False, part_least_s=0.0, nonverbals=frozenset(), letters=Path("letters.bin"))
    script = "[S1] Dr. Björn said: save 20% by SAVE20. Write to me@example.com. (pause 1s) At 9:45."
    file, _ = speak(tmp_path, SpeechRequest(script, seed=1), limits)
    written = ["Dr. Björn said: save 20% by SAVE20.", "Write to me@example.com.", "At 9:45."]
    assert [each.text for each in subtitles.read_cues(file)] == written
    parsed = parse_script(script, limits)
    (last,), _ = join_parts(parsed, SpeechRequest(script, seed=1), tmp_path, [1], tmp_path)
    assert [each.text for each in subtitles.read_cues(Path(last))] == written[2:], "also where only some parts are made"


def test_a_file_without_room_keeps_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "has_room_for", lambda settings, _: sound.CUES not in settings)
    file, _ = speak(tmp_path, SpeechRequest(SCRIPT, seed=1, format="opus"))
    assert subtitles.read_cues(file) == [] and sound.read_settings(file) is not None


def test_both_formats() -> None:
    cues = [Cue(0.0, 1.2345, "One & <two>."), Cue(3661.5, 3662.0, "[S2] Three.")]
    assert subtitles.write(cues, "srt") == "1\n00:00:00,000 --> 00:00:01,234\nOne & <two>.\n\n2\n01:01:01,500 --> 01:01:02,000\nThree.\n\n"
    assert subtitles.write(cues, "vtt") == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.234\nOne &amp; &lt;two&gt;.\n\n01:01:01.500 --> 01:01:02.000\nThree.\n\n"
    )


def test_a_long_sentence_is_shown_bit_by_bit() -> None:
    text = " ".join(f"word{place}" for place in range(40))
    pieces = subtitles.split_long(Cue(2.0, 12.0, text))
    assert len(pieces) > 2 and " ".join(piece.text.replace("\n", " ") for piece in pieces) == text
    assert pieces[0].begin_s == 2.0 and pieces[-1].end_s == pytest.approx(12.0)
    assert all(before.end_s == after.begin_s for before, after in pairwise(pieces))
    assert all(len(line) <= 1.6 * subtitles.LINE_MOST for piece in pieces for line in piece.text.split("\n"))
    assert all(piece.text.count("\n") <= 1 for piece in pieces)


def test_a_long_chinese_sentence_is_shown_in_lines_that_one_can_read() -> None:
    text = (
        "\u6e21\u8f6e\u79bb\u5f00\u7801\u5934\u7684\u65f6\u5019\uff0c\u98ce\u4ece\u6d77\u4e0a\u5439\u6765\uff0c" * 4
        + "\u5979\u6ca1\u6709\u8bf4\u8bdd\u3002"
    )
    pieces = subtitles.split_long(Cue(0.0, 12.0, text))
    lines = [line for piece in pieces for line in piece.text.split("\n")]
    assert "".join(lines) == text and all(piece.text.count("\n") <= 1 for piece in pieces)
    assert max(map(len, lines)) <= 0.7 * subtitles.LINE_MOST and not any(line[0] in "\uff0c\u3002" for line in lines)
    assert pieces[0].text.split("\n")[0][-1] == "\uff0c", "rather after a comma"


def test_words_are_cues_of_their_own_in_srt_and_times_within_them_in_webvtt() -> None:
    text = "The ferryman looked at the sea for a long time, and nobody <knew> what he was waiting for on the landing"
    words = text.split(" ")
    placed = tuple(subtitles.Cue(place / 4, place / 4 + 0.2, word) for place, word in enumerate(words))
    cue = subtitles.Cue(0.0, 5.5, " ".join(words), placed)
    srt, vtt = subtitles.write([cue, subtitles.Cue(6.0, 7.0, "It rained.")], "srt"), subtitles.write([cue], "vtt")
    assert srt.startswith("1\n00:00:00,000 --> 00:00:00,200\nThe\n\n2\n00:00:00,250 --> ") and srt.count(" --> ") == len(words) + 1
    first, second = (each.split("\n") for each in vtt.removeprefix("WEBVTT\n\n").strip().split("\n\n"))
    assert first[1].startswith("<00:00:00.000>The <00:00:00.250>ferryman") and "<00:00:03.000>&lt;knew&gt;" in "\n".join(first)
    said = [re.sub(r"<[\d:.]+>", "", line) for line in (*first[1:], *second[1:])]
    assert " ".join(said).replace("&lt;", "<").replace("&gt;", ">") == cue.text and max(map(len, said)) <= 60
    assert first[0].split(" --> ")[1] == second[0].split(" --> ")[0]
    wide = subtitles.Cue(0, 1, "\u4f60\u597d\u3002", (subtitles.Cue(0, 0.5, "\u4f60"), subtitles.Cue(0.5, 1, "\u597d\u3002")))
    assert "<00:00:00.000>\u4f60<00:00:00.500>\u597d\u3002" in subtitles.write([wide], "vtt")
