"""Broken and made-up pictures, sounds and weights: each reader ends soon, with a value or a sentence. Seeded, so that a failure can be repeated."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import random
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import ExifTags, Image, ImageCms
from PIL.PngImagePlugin import PngInfo

from app.base import foreign_formats, picture_header
from app.base.trouble import Trouble
from app.engine.models import safetensors
from app.engine.pictures.files import picture_settings
from app.engine.pictures.run import input_images
from app.engine.speech.sound import convert_sound, sound
from app.ui.access import uploads
from tests.support.nasty import RAW, TEXTS, break_object, make_chunk

A1111 = "a boat <lora:ink:1>\nNegative prompt: ugly\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 5, Size: 512x512"
GRAPH = {
    "3": {"class_type": "KSampler", "inputs": {"positive": ["6", 0], "negative": ["6", 0], "latent_image": ["5", 0], "steps": 20, "cfg": 7, "seed": 5}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a boat"}},
}  # fmt: skip
SLOWEST_S = 1.0


def make_picture(kind: str, text: str = A1111, key: str = "parameters") -> bytes:
    target, picture = io.BytesIO(), Image.new("RGB", (16, 16), "red")
    if kind == "PNG":
        info = PngInfo()
        info.add_text(key, text, zip=len(text) > 100)
        picture.save(target, kind, pnginfo=info)
    else:
        exif = Image.Exif()
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.UserComment] = b"UNICODE\0" + text.encode("utf-16-be")
        picture.save(target, kind, exif=exif)
    return target.getvalue()


def make_sound(kind: str) -> bytes:
    target = io.BytesIO()
    soundfile.write(target, np.sin(np.arange(2000) / 9).astype(np.float32), 16_000, format=kind)
    return target.getvalue()


def make_weights() -> bytes:
    head = json.dumps({"__metadata__": {"a": "b"}, "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(16)


SEEDS: dict[str, list[bytes]] = {
    ".png": [make_picture("PNG"), make_picture("PNG", json.dumps(GRAPH), "prompt"), make_picture("PNG", '{"request":{"kind":"picture"}}', "hearth")],
    ".jpg": [make_picture("JPEG")], ".webp": [make_picture("WEBP")], ".wav": [make_sound("WAV")], ".flac": [make_sound("FLAC")], ".ogg": [make_sound("OGG")],
    ".mp3": [make_sound("MP3")], ".safetensors": [make_weights()],
}  # fmt: skip
READERS: tuple[Callable[[Path], object], ...] = (
    picture_settings.read, uploads.is_picture, uploads.is_safetensors, sound.read_settings, safetensors.read_header,
    lambda path: sound.read(path, most_s=60.0), lambda path: uploads.check_upload(path, owner=True),
    lambda path: uploads.check_upload(path, owner=False),
)  # fmt: skip


def break_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return the file with a few bytes flipped, numbers put in, pieces cut, doubled or exchanged."""
    broken = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(broken) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            broken[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            broken[at : at + 4] = struct.pack(rng.choice("<>") + "I", rng.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 65_535)))
        elif kind == 2:
            del broken[at : at + rng.randrange(64)]
        elif kind == 3:
            broken[at:at] = broken[at : at + rng.randrange(200)] * rng.randrange(20)
        elif kind == 4:
            broken[at:at] = rng.choice(RAW)[:2000]
        else:
            broken[at:at] = rng.choice(TEXTS)[:2000].encode("utf-8", "surrogatepass")
    return bytes(broken) or b"\0"


def make_file(rng: random.Random) -> tuple[str, bytes]:
    """Return a broken file of any kind, or a whole one that holds broken settings."""
    kind = rng.choice(list(SEEDS))
    if kind == ".png" and rng.random() < 0.5:
        key = rng.choice(("parameters", "prompt", "hearth"))
        text = (
            rng.choice(TEXTS)
            if rng.random() < 0.4
            else break_object(rng, rng.choice((GRAPH, {"request": {}})), list(GRAPH)).decode("utf-8", "replace")
        )
        return kind, make_picture("PNG", text.encode("utf-8", "replace").decode("latin-1"), key)
    if kind == ".safetensors" and rng.random() < 0.5:
        head = break_object(rng, {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, ["w", "__metadata__"])
        return kind, struct.pack("<Q", len(head)) + head + bytes(8)
    return kind, break_bytes(rng, rng.choice(SEEDS[kind]))


def fuzz(folder: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    for index in range(count):
        kind, data = make_file(rng)
        path = folder / f"{index}{kind}"
        path.write_bytes(data)
        for read in READERS:
            begun_s = time.thread_time()
            try:
                read(path)
            except Trouble as trouble:
                str(trouble).encode(errors="replace")
            except Exception as fault:
                raise AssertionError(f"seed {seed}, file {index}{kind}: {fault!r}") from fault
            assert time.thread_time() - begun_s < SLOWEST_S, f"seed {seed}, file {index}{kind}"
        path.unlink()


def test_broken_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_sound, "CONVERTERS", ())  # ffmpeg is another process, with a deadline of its own
    fuzz(tmp_path, 150, seed=1)


@pytest.mark.timeout(60)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes among files")
@pytest.mark.parametrize("read", [sound.read_settings, sound.measure, foreign_formats.find_sound_kind, picture_settings.read])
def test_a_pipe_is_not_waited_for(read: Callable[[Path], object], tmp_path: Path) -> None:
    """One in the place of a saved voice's clip held up every page that lists voices."""
    os.mkfifo(tmp_path / "ann.wav")
    with pytest.raises((OSError, Trouble)) as told:
        read(tmp_path / "ann.wav")
    assert "not a regular file" in f"{told.value} {told.value.__cause__}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_broken_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert_sound, "CONVERTERS", ())
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    fuzz(tmp_path, 10_000, seed)


def spend(read: Callable[[Path], object], path: Path) -> float:
    begun_s = time.thread_time()
    with contextlib.suppress(Trouble):
        read(path)
    return time.thread_time() - begun_s


@pytest.mark.parametrize(("channels", "rate"), [(sound.CHANNELS_MOST + 1, 8000), (1, sound.RATE_MOST + 1), (1, 10), (1, 999)])
def test_an_unusual_sound_is_refused_for_what_is_unusual(tmp_path: Path, channels: int, rate: int) -> None:
    file = tmp_path / "short.wav"
    soundfile.write(file, np.zeros((10, channels)), rate)
    with pytest.raises(Trouble, match=f"{channels} channels? at {rate} Hz"):
        uploads.check_upload(file, owner=False)


def test_headers_in_millions_of_pieces(tmp_path: Path) -> None:
    """A PNG of a million chunks, a JPEG of a million markers, a WAV of a million parts: Python would walk over each for half a minute."""
    png, jpeg = make_picture("PNG"), make_picture("JPEG")
    (tmp_path / "a.png").write_bytes(png[:33] + make_chunk(b"prVt", b"") * 700_000 + png[33:])
    (tmp_path / "a.jpg").write_bytes(jpeg[:2] + b"\xff\xe5\0\2" * 2_000_000 + jpeg[2:])
    (tmp_path / "b.jpg").write_bytes(jpeg[:2] + b"\xff" * 8_000_000 + jpeg[2:])
    (tmp_path / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 1_000_000)
    for name in ("a.png", "a.jpg", "b.jpg"):
        assert not uploads.is_picture(tmp_path / name)
        assert spend(uploads.is_picture, tmp_path / name) < SLOWEST_S
        assert spend(picture_settings.read, tmp_path / name) < SLOWEST_S
    assert spend(sound.read_settings, tmp_path / "a.wav") < SLOWEST_S


def check_refused_at_once(file: Path) -> None:
    began_s = time.thread_time()
    assert not uploads.is_picture(file)
    with pytest.raises(Trouble, match="not a picture"):
        picture_settings.read(file)
    with pytest.raises(Trouble, match="cannot be read"):
        input_images.open_image(str(file))
    assert time.thread_time() - began_s < 1


@pytest.mark.parametrize(("kind", "head", "most"), [(b"iCCP", b"a\0\0", 1), (b"zTXt", b"a\0\0", 32), (b"iTXt", b"a\0\1\0\0\0", 32)])
def test_chunks_that_each_unpack_to_a_megabyte(tmp_path: Path, kind: bytes, head: bytes, most: int) -> None:
    """4 MB of colour profiles took 20 s to check, and whoever came next waited."""
    plain, file = make_picture("PNG", "short"), tmp_path / "a.png"
    packed = make_chunk(kind, head + zlib.compress(bytes(1 << 19), 9))
    file.write_bytes(plain[:33] + packed * most + plain[33:])
    assert uploads.is_picture(file)
    input_images.open_image(str(file))
    for place in (33, len(plain) - 12):  # before the pixels, and after them, where only a decoder would meet them
        file.write_bytes(plain[:place] + packed * 4000 + plain[place:])
        check_refused_at_once(file)


def test_exif_in_hundreds_of_parts(tmp_path: Path) -> None:
    """Pillow copies all that it has for each part more: 400 of 64 KB took seven seconds."""
    plain, file = make_picture("JPEG"), tmp_path / "a.jpg"
    part = b"\xff\xe1" + struct.pack(">H", 65_000) + b"Exif\0\0" + bytes(64_992)
    file.write_bytes(plain[:2] + part * 17 + plain[2:])
    assert uploads.is_picture(file), "what a real picture may have passes"
    file.write_bytes(plain[:2] + part * 400 + plain[2:])
    check_refused_at_once(file)


def test_a_picture_with_a_colour_profile(tmp_path: Path) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for kind in ("PNG", "JPEG", "WEBP"):
        file = tmp_path / f"a.{kind.lower()}"
        Image.new("RGB", (32, 32), "red").save(file, kind, icc_profile=profile)
        assert uploads.is_picture(file)
        assert input_images.open_image(str(file)).size == (32, 32)


def test_exif_whose_entries_all_name_the_same_bytes() -> None:
    """Each of 65,000 entries claims a megabyte: a reader that copies them all would need 60 GB."""
    entries = b"".join(struct.pack("<HHII", 256 + index % 60_000, 7, 1 << 20, 8) for index in range(65_000))
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 65_000) + entries + bytes(1 << 20)
    begun_s = time.thread_time()
    assert picture_header.read_exif(exif, picture_header.USER_COMMENT) == b""
    assert time.thread_time() - begun_s < 0.2


def test_a_picture_to_start_from_loses_such_exif(tmp_path: Path) -> None:
    entries = b"".join(struct.pack("<HHII", 256 + index, 7, 200_000, 8) for index in range(5000))
    exif = b"II*\0" + struct.pack("<IH", 8, 5000) + entries + bytes(200_000)
    plain = make_picture("PNG")
    (tmp_path / "a.png").write_bytes(plain[:33] + make_chunk(b"eXIf", exif) + plain[33:])
    tracemalloc.start()
    assert input_images.open_image(str(tmp_path / "a.png")).size == (16, 16)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "older PNG"])
def test_exif_that_fits_and_whose_entries_share_their_bytes_is_not_read(kind: str, tmp_path: Path) -> None:
    """Pillow made an object of each of ten million fractions in 60 KB, to write them again without the orientation."""
    for shared, size in ((0, (16, 24)), (1000, (24, 16))):
        rows = [(274, 3, 1, 6), *((1000 + index, 5, 5000, 8) for index in range(shared))]
        exif = (
            b"II*\0"
            + struct.pack("<IH", 8, len(rows))
            + b"".join(struct.pack("<HHII", *each) for each in rows)
            + bytes(4)
            + bytes(40_000 if shared else 0)
        )
        info = PngInfo()
        if kind == "older PNG":
            info.add_text("Raw profile type exif", f"\nexif\n{len(exif)}\n{exif.hex()}", zip=True)
        picture, file = Image.new("RGB", (24, 16), "red"), tmp_path / "a"
        picture.save(file, kind.split()[-1], **({"pnginfo": info} if kind == "older PNG" else {"exif": exif}))
        tracemalloc.start()
        assert input_images.open_image(str(file)).size == size
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_the_comment_of_a1111_is_found(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(make_picture(kind))
    assert picture_settings.read(path).request.steps == 20


def test_settings_that_unpack_to_a_gigabyte(tmp_path: Path) -> None:
    packed = b"zlib:" + base64.b64encode(zlib.compress(b" " * 40_000_000, 9))
    listed = b"INFOICMT" + struct.pack("<I", len(packed)) + packed
    (tmp_path / "a.wav").write_bytes(b"RIFF\0\0\0\0WAVELIST" + struct.pack("<I", len(listed)) + listed)
    assert sound.read_settings(tmp_path / "a.wav") is None
    assert spend(sound.read_settings, tmp_path / "a.wav") < SLOWEST_S


@pytest.mark.parametrize("channels", [9, 200])
def test_sound_that_would_need_gigabytes(tmp_path: Path, channels: int) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros((100, channels), np.float32), 48_000)
    with pytest.raises(Trouble, match="which Hearth cannot use"):
        sound.read(tmp_path / "a.wav")


@pytest.mark.parametrize("head", [b'{"a":' * 100_000, b"[" * 1_000_000, b'{"w":{"dtype":"F32","shape":[1e400],"data_offsets":[0,0]}}'])
def test_headers_of_weights_that_are_none(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))
    assert not uploads.is_safetensors(path)
    with pytest.raises(Trouble, match="not a valid"):
        safetensors.read_header(path)
