"""Pictures of other machines: only whole ones of the right kind count, and looking at them takes no time."""

from __future__ import annotations

import io
import time
import zlib
from pathlib import Path

import pytest
from PIL import Image

from app.engine.pictures.files.arrived import SIDE_MOST, is_picture
from tests.support.nasty import make_chunk

HEAD_BYTES = 33


def make_png() -> bytes:
    target = io.BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(target, "PNG")
    return target.getvalue()


def test_a_whole_picture_counts(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png())
    assert is_picture(tmp_path / "a.png")


@pytest.mark.parametrize("at_the_end", [False, True])
def test_thousands_of_colour_profiles_are_refused_at_once(tmp_path: Path, at_the_end: bool) -> None:
    """Two megabytes that unpack to one gigabyte took 8.5 s."""
    plain = make_png()
    place = len(plain) - 12 if at_the_end else HEAD_BYTES
    packed = make_chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(1 << 19), 9))
    (tmp_path / "a.png").write_bytes(plain[:place] + packed * 2000 + plain[place:])
    began_s = time.thread_time()
    assert not is_picture(tmp_path / "a.png")
    assert time.thread_time() - began_s < 1


@pytest.mark.parametrize(
    "pixels", [b"", b"no deflate", zlib.compress(bytes(193 * 64))[:-30], zlib.compress(b"\7" + bytes(192))],
    ids=["none", "not packed", "cut", "unknown filter"],
)  # fmt: skip
def test_pixels_that_cannot_be_decoded_are_no_picture(tmp_path: Path, pixels: bytes) -> None:
    """Every checksum is right."""
    plain = make_png()
    (tmp_path / "a.png").write_bytes(plain[:HEAD_BYTES] + make_chunk(b"IDAT", pixels) + make_chunk(b"IEND", b""))
    assert not is_picture(tmp_path / "a.png")


def test_another_format_or_too_large_a_picture_is_none(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png", "JPEG")
    Image.new("1", (SIDE_MOST + 1, 1)).save(tmp_path / "b.png")
    assert not is_picture(tmp_path / "a.png") and not is_picture(tmp_path / "b.png")
