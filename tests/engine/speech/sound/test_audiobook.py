"""Chapters joined into an audiobook: marks where each begins, titles, a cover, every sound whole."""

from __future__ import annotations

import io
import tracemalloc
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from app.base.trouble import Trouble
from app.engine.speech.sound.audiobook import PAUSE_S, RATE, Labels, Spoken, write_audiobook

needs_av = pytest.mark.skipif(find_spec("av") is None, reason="an extra")


def tone(path: Path, seconds: float, rate: int = 24_000, hertz: float = 440.0) -> Spoken:
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate).astype(np.float32), rate)
    return Spoken(path.stem.title(), path)


def cover() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (2000, 3000), "teal").save(made, "PNG")
    return made.getvalue()


@needs_av
def test_each_chapter_begins_at_its_mark_and_is_heard_whole(tmp_path: Path) -> None:
    import av

    chapters = [tone(tmp_path / "one.wav", 2.0), tone(tmp_path / "two.flac", 1.0, 44_100, 880.0), tone(tmp_path / "three.mp3", 1.5)]
    labels = Labels("The Ferry", "A. Writer", "Voices: Somebody", cover())
    write_audiobook(chapters, labels, tmp_path / "x.m4b")
    with av.open(str(tmp_path / "x.m4b")) as file:
        assert {
            "title": "The Ferry",
            "artist": "A. Writer",
            "composer": "Voices: Somebody",
            "major_brand": "M4B ",
        }.items() <= file.metadata.items()
        marks = [(each["start"] * (each["time_base"] or 0), each["metadata"]["title"]) for each in file.chapters()]
        assert [title for _, title in marks] == ["One", "Two", "Three"]
        assert [float(each) for each, _ in marks] == pytest.approx([0, 2 + PAUSE_S, 3 + 2 * PAUSE_S], abs=0.01)
        (picture,) = file.streams.video
        assert (picture.width, picture.height) == (933, 1400)
        heard = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
    for begin_s, lasts_s in ((0.0, 2.0), (2 + PAUSE_S, 1.0), (3 + 2 * PAUSE_S, 1.5)):
        begin, end = int(RATE * (begin_s + 0.1)), int(RATE * (begin_s + lasts_s - 0.1))
        assert np.sqrt(np.mean(heard[begin:end] ** 2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.05)
        assert np.abs(heard[end + int(0.3 * RATE) : end + int(1.2 * RATE)]).max() < 0.01


@needs_av
def test_a_cover_that_is_no_picture_is_left_out(tmp_path: Path) -> None:
    import av

    write_audiobook([tone(tmp_path / "one.wav", 0.5)], Labels("x", cover=b"<svg/>"), tmp_path / "x.m4b")
    with av.open(str(tmp_path / "x.m4b")) as file:
        assert not file.streams.video


@pytest.mark.slow
@needs_av
def test_an_hour_takes_no_more_memory_than_a_minute(tmp_path: Path) -> None:
    def take(seconds: float) -> int:
        tone(tmp_path / "long.wav", seconds, 8_000)
        tracemalloc.start()
        write_audiobook([Spoken("x", tmp_path / "long.wav")], Labels("x"), tmp_path / "x.m4b")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert take(240) < 1.2 * take(30) + 1_000_000


def test_without_its_library_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.speech.sound.stream_encoding.find_spec", lambda name: None)
    with pytest.raises(Trouble, match="PyAV"):
        write_audiobook([tone(tmp_path / "one.wav", 0.5)], Labels("x"), tmp_path / "x.m4b")
    assert not (tmp_path / "x.m4b").exists()
