"""Results of other machines: only whole files of the right kind count, and looking at them takes no time."""

from __future__ import annotations

import io
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from app.engine.jobs.request import SpeechRequest
from app.engine.speech.sound import sound, spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.machines import results
from tests.base.test_foreign_files import chunk

HEAD_BYTES = 33


def make_png() -> bytes:
    target = io.BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(target, "PNG")
    return target.getvalue()


def test_a_whole_picture_counts(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png())
    assert results.is_picture(tmp_path / "a.png")


@pytest.mark.parametrize("at_the_end", [False, True])
def test_thousands_of_colour_profiles_are_refused_at_once(tmp_path: Path, at_the_end: bool) -> None:
    """Two megabytes that unpack to one gigabyte took 8.5 s."""
    plain = make_png()
    place = len(plain) - 12 if at_the_end else HEAD_BYTES
    packed = chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 19), 9))
    (tmp_path / "a.png").write_bytes(plain[:place] + packed * 2000 + plain[place:])
    began_s = time.thread_time()
    assert not results.is_picture(tmp_path / "a.png")
    assert time.thread_time() - began_s < 1


@pytest.mark.parametrize(
    "pixels", [b"", b"no deflate", zlib.compress(bytes(193 * 64))[:-30], zlib.compress(b"\7" + bytes(192))],
    ids=["none", "not packed", "cut", "unknown filter"],
)  # fmt: skip
def test_pixels_that_cannot_be_decoded_are_no_picture(tmp_path: Path, pixels: bytes) -> None:
    """Every checksum is right."""
    plain = make_png()
    (tmp_path / "a.png").write_bytes(plain[:HEAD_BYTES] + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))
    assert not results.is_picture(tmp_path / "a.png")


def test_another_format_or_too_large_a_picture_is_none(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png", "JPEG")
    Image.new("1", (results.SIDE_MOST + 1, 1)).save(tmp_path / "b.png")
    assert not results.is_picture(tmp_path / "a.png") and not results.is_picture(tmp_path / "b.png")


def write_part(path: Path, container: str, subtype: str, channels: int, rate: int) -> None:
    """Write a part as Hearth does, then put another sound in its place."""
    spoken_parts.save(SpokenPart("Hello.", 5, "key", 0.1, True, np.zeros((2, 9), np.int16), path), np.zeros(100, np.float32), 24_000)
    soundfile.write(path, np.full((rate // 100, channels), 0.1, np.float32), rate, subtype, format=container)


OWN = ("WAV", "PCM_16", 1, 44_100)


@pytest.mark.parametrize(
    "other", [("FLAC", "PCM_16", 1, 44_100), ("WAV", "FLOAT", 1, 44_100), ("WAV", "PCM_16", 2, 44_100), ("WAV", "PCM_16", 1, 96_000)]
)
def test_a_part_is_what_hearth_writes(tmp_path: Path, other: tuple[str, str, int, int]) -> None:
    """A FLAC by the name of a WAV, 8 channels at 384,000 Hz and 400 KB large, took 1.6 GB where it was read."""
    path = spoken_parts.sound_path(tmp_path, 0)
    write_part(path, *OWN)
    assert results.is_spoken(path, "Hello.", 5)
    write_part(path, *other)
    assert not results.is_spoken(path, "Hello.", 5)


@pytest.mark.parametrize("coding", [*sound.CODINGS])
def test_a_script_is_in_the_format_asked_for(tmp_path: Path, coding: str) -> None:
    path, request = tmp_path / f"speech.{coding}", SpeechRequest("[S1] Hello.", format=coding)
    with sound.open_writer(path, coding, sound.choose_rate(coding, 24_000), {}) as file:
        file.write(np.zeros(24_000, np.float32))
    assert results.is_script(request, [path], 2.0)
    other = "flac" if coding == "wav" else "wav"
    with sound.open_writer(path, other, 24_000, {}) as file:
        file.write(np.zeros(24_000, np.float32))
    assert not results.is_script(request, [path], 2.0)
