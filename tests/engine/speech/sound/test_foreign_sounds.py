"""Sounds from elsewhere: who may read which, and what a converter gets, may open and may take."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import soundfile

from app.base.foreign_formats import SOUNDS, SoundKind, find_sound_kind, open_sound
from app.base.trouble import Trouble
from app.engine.speech.sound import convert_sound, sound
from app.engine.speech.sound.mp4_index import put_index_first
from app.ui.access import uploads
from tests.support.waiting import until

FFMPEG = shutil.which("ffmpeg")
WITH_FFMPEG = pytest.mark.skipif(FFMPEG is None, reason="ffmpeg is not installed here")
WITH_SCRIPTS = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a first line")
KINDS = {kind.name: kind for kind in SOUNDS}
HLS = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:3,\n{owned}\n#EXT-X-ENDLIST\n"
DASH = """<?xml version="1.0"?><MPD type="static" mediaPresentationDuration="PT3S"><Period><AdaptationSet mimeType="audio/mp4">
<Representation id="1"><BaseURL>{owned}</BaseURL></Representation></AdaptationSet></Period></MPD><!-- """
CONCAT = "ffconcat version 1.0\nfile '{owned}'\n"


def make_tone(seconds: float = 1.0, rate: int = 16_000) -> np.ndarray:
    return (0.3 * np.sin(np.arange(int(seconds * rate)) * 0.1)).astype(np.float32)


def make_frames() -> bytes:
    """Return a few MP3 frames, without the tag in front of them."""
    target = io.BytesIO()
    soundfile.write(target, make_tone(), 16_000, format="MP3")
    data = target.getvalue()
    return data[data.index(b"\xff\xf3", 4) :][:600]


@pytest.mark.parametrize("frames", [440, 4096])
def test_an_mp3_read_in_blocks_is_what_it_is_read_at_once(frames: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """soundfile seeks after each block: the decoder lost what it held, and said so in the terminal, a line a block."""
    noise = np.random.default_rng(7).normal(0, 0.2, 48_000).astype(np.float32).clip(-1, 1)
    soundfile.write(tmp_path / "a.mp3", noise, 16_000)
    with open_sound(tmp_path / "a.mp3") as whole, open_sound(tmp_path / "a.mp3") as file:
        blocks = np.concatenate([*file.blocks(frames, dtype="float32")])
        assert np.array_equal(blocks, whole.read(dtype="float32"))
        file.seek(1000)
        assert file.tell() == 1000 and len(file.read(10)) == 10 and file.tell() == 1010
    assert not capfd.readouterr().err


def put_stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    """Put a program named ffmpeg onto the path, that does this; return the folder in which it may leave things."""
    program = folder / "bin" / "ffmpeg"
    program.parent.mkdir()
    script = program.with_suffix(".py")
    script.write_text(f"import os, sys, time\nleft = {str(program.parent)!r}\n{body}")
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -SE {shlex.quote(str(script))} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    return program.parent


@WITH_SCRIPTS
@pytest.mark.parametrize("playlist", [HLS, DASH, CONCAT], ids=["hls", "dash", "concat"])
def test_a_playlist_in_front_of_mp3_frames_is_no_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, playlist: str) -> None:
    """libsndfile finds the frames behind it, stumbles over what follows them, and ffmpeg took it for a playlist of the owner's files."""
    left = put_stand_in(tmp_path, monkeypatch, "open(left + '/called', 'w')")
    file = tmp_path / "voice.mp3"
    file.write_bytes(playlist.format(owned=tmp_path / "diary.mp3").encode() + make_frames() + b"\0garbage" * 3000)
    for owner in (False, True):
        with pytest.raises(Trouble, match="damaged"):
            uploads.check_upload(file, owner)
    with pytest.raises(Trouble, match="cannot be read as sound"):
        sound.read(file)
    assert not (left / "called").exists()


@pytest.mark.parametrize("junk", [b"x", b"PK\3\4", b"\0" * 100, b"ID3\4\0\0\0\0\0\5xxxxx#EXTM3U\n"])
def test_frames_behind_anything_are_no_mp3(tmp_path: Path, junk: bytes) -> None:
    file = tmp_path / "a.mp3"
    file.write_bytes(junk + make_frames())
    with pytest.raises(soundfile.LibsndfileError), open_sound(file):
        pass


def test_frames_behind_a_tag_are(tmp_path: Path) -> None:
    file = tmp_path / "a.mp3"
    tag = b"ID3\4\0\0\0\0\2\0" + b"t" * 256
    for start in (b"", tag, tag + tag, tag + bytes(1000)):
        file.write_bytes(start + make_frames())
        with open_sound(file) as opened:
            assert opened.format == "MP3"


@pytest.mark.parametrize("kind", [kind for kind in SOUNDS if kind.readers], ids=lambda kind: kind.name)
def test_each_row_is_read_as_what_it_is(tmp_path: Path, kind: SoundKind) -> None:
    file = tmp_path / "any.name"
    soundfile.write(file, make_tone(), 16_000, format=kind.name)
    assert find_sound_kind(file) is kind
    assert len(sound.read(file)[0]) == pytest.approx(16_000, abs=1200)
    uploads.check_upload(file, owner=True)
    if not kind.guests:
        with pytest.raises(Trouble, match="cannot be used here"):
            uploads.check_upload(file, owner=False)


def test_another_format_than_the_first_bytes_say_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soundfile.write(tmp_path / "a.wav", make_tone(), 16_000)
    monkeypatch.setattr("app.base.foreign_formats.SOUNDS", (replace(KINDS["WAV"], readers=frozenset({"FLAC"})),))
    with pytest.raises(soundfile.LibsndfileError), open_sound(tmp_path / "a.wav"):
        pass


@WITH_SCRIPTS
@pytest.mark.parametrize("kind", [kind for kind in SOUNDS if kind.guests], ids=lambda kind: kind.name)
def test_what_guests_may_send_is_never_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SoundKind) -> None:
    """Else one that breaks behind its header would reach the converter."""
    left = put_stand_in(tmp_path, monkeypatch, "open(left + '/called', 'w')")
    file = tmp_path / "a"
    soundfile.write(file, make_tone(), 16_000, format=kind.name)
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(Trouble):
        sound.read(file)
    assert convert_sound.convert(file, kind) == b"" and not (left / "called").exists()


@WITH_SCRIPTS
def test_the_converter_gets_bytes_and_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = put_stand_in(
        tmp_path,
        monkeypatch,
        "open(left + '/given', 'wb').write(sys.stdin.buffer.read())\nopen(left + '/words', 'w').write('\\n'.join(sys.argv[1:]))",
    )
    file = tmp_path / "-i -y private.aac"
    file.write_bytes(b"\xff\xf1" + b"sound" * 100)
    assert convert_sound.convert(file, KINDS["AAC"]) == b""
    words = (left / "words").read_text().splitlines()
    assert (left / "given").read_bytes() == file.read_bytes()
    assert not [word for word in words if "/" in word or "private" in word]
    before = words[: words.index("-i") + 2]
    assert before[before.index("-protocol_whitelist") + 1] == "pipe" and before[before.index("-f") + 1] == "aac" and before[-1] == "pipe:0"
    assert {"-nostdin", "-vn", "-sn", "-dn", "-t", "-fs"} <= {*words}


@WITH_SCRIPTS
def test_what_the_converter_writes_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = put_stand_in(
        tmp_path, monkeypatch, "open(left + '/pid', 'w').write(str(os.getpid()))\nwhile True: sys.stdout.buffer.write(bytes(65536))"
    )
    monkeypatch.setattr(convert_sound, "CONVERTED_MOST_BYTES", 1 << 20)
    (tmp_path / "a.aac").write_bytes(b"\xff\xf1" + bytes(100))
    assert convert_sound.convert(tmp_path / "a.aac", KINDS["AAC"]) == b""
    assert not psutil.pid_exists(int((left / "pid").read_text()))


@WITH_SCRIPTS
def test_a_converter_that_never_ends_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = put_stand_in(tmp_path, monkeypatch, "child = os.fork()\nopen(left + f'/{os.getpid()}.pid', 'w')\ntime.sleep(600)")
    (tmp_path / "a.aac").write_bytes(b"\xff\xf1" + bytes(100))

    def wait_for_both(seconds: float, end: Callable[..., None], arguments: list[object]) -> threading.Timer:
        """The deadline passes once both run, however slow this machine is."""
        assert seconds == convert_sound.LONGEST_S

        def wait() -> None:
            until(lambda: len([*left.glob("*.pid")]) == 2)
            end(*arguments)

        return threading.Timer(0, wait)

    monkeypatch.setattr(convert_sound, "threading", SimpleNamespace(Timer=wait_for_both))
    with pytest.raises(Trouble, match="cannot be read as sound"):
        sound.read(tmp_path / "a.aac")
    pids = [int(each.stem) for each in left.glob("*.pid")]
    until(lambda: not any(map(psutil.pid_exists, pids)))


@WITH_SCRIPTS
def test_afconvert_gets_a_copy_and_may_not_write_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the program of macOS: it copies a sound to where it is told to write."""
    soundfile.write(tmp_path / "ready.wav", make_tone(), 16_000)
    left = put_stand_in(
        tmp_path,
        monkeypatch,
        f"open(left + '/words', 'w').write('\\n'.join(sys.argv[1:]))\nopen(sys.argv[-1], 'wb').write(open({str(tmp_path / 'ready.wav')!r}, 'rb').read())",
    )
    (left / "ffmpeg").rename(left / "afconvert")
    (tmp_path / "private.aac").write_bytes(b"\xff\xf1" + bytes(100))
    assert len(sound.read(tmp_path / "private.aac")[0]) == 16_000
    *_, given, made = (left / "words").read_text().splitlines()
    assert Path(given).name == "given.aac" and "private" not in given + made and not Path(made).parent.exists()
    words = convert_sound.CONVERTERS[-1]
    monkeypatch.setattr(convert_sound, "CONVERTERS", (tuple(word.replace(f"-f {128 << 11} ", "-f 10 ") for word in words),))
    with pytest.raises(Trouble, match="cannot be read as sound"):
        sound.read(tmp_path / "private.aac")


@pytest.mark.slow
@WITH_FFMPEG
@pytest.mark.parametrize(
    ("name", "options", "row"),
    [("a.m4a", "-c:a aac", "M4A"), ("b.m4a", "-c:a aac -movflags faststart", "M4A"), ("c.m4a", "-c:a alac", "M4A"),
     ("d.mp4", "-c:a aac -movflags +frag_keyframe+empty_moov", "M4A"), ("e.aac", "-c:a aac", "AAC"),
     ("f.webm", "-c:a libopus", "WebM"), ("g.wma", "-c:a wmav2", "WMA")],
)  # fmt: skip
def test_recordings_of_phones_and_browsers_are_read(tmp_path: Path, name: str, options: str, row: str) -> None:
    """With the real ffmpeg. A voice memo of a phone has its index at the end, where a pipe is never read to."""
    file = tmp_path / name
    made = [str(FFMPEG), "-v", "error", "-f", "lavfi", "-i", "sine=frequency=440:duration=2", *options.split(), "-strict", "-2", str(file)]
    if subprocess.run(made, capture_output=True).returncode:
        pytest.skip("this ffmpeg cannot write such a file")
    uploads.check_upload(file, owner=True)
    with pytest.raises(Trouble, match="cannot be used here"):
        uploads.check_upload(file, owner=False)
    samples, rate = sound.read(file)
    assert find_sound_kind(file) == KINDS[row] and len(samples) / rate == pytest.approx(2, abs=0.1)
    spectrum = np.abs(np.fft.rfft(samples[: 2 * rate // 2]))
    assert np.argmax(spectrum) == pytest.approx(440, abs=3)


@WITH_FFMPEG
@pytest.mark.parametrize(("demuxer", "playlist"), [("hls", HLS), ("concat", CONCAT)])
def test_no_file_is_opened_for_what_a_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demuxer: str, playlist: str) -> None:
    """Even if a row allowed playlists: ffmpeg may open its standard input and output, and nothing else. With files allowed it does."""
    owned, file, kind = tmp_path / "diary.mp3", tmp_path / "list", replace(KINDS["WMA"], demuxer=demuxer)
    soundfile.write(owned, make_tone(), 16_000)
    file.write_text(playlist.format(owned=f"file:{owned}"))
    assert convert_sound.convert(file, kind) == b""
    wide = [word.replace("pipe", "pipe,file,crypto") if word == "pipe" else word for word in convert_sound.CONVERTERS[0]]
    if demuxer == "concat":
        wide[1:1] = ["-safe", "0"]
    monkeypatch.setattr(convert_sound, "CONVERTERS", (tuple(wide),))
    assert len(convert_sound.convert(file, kind)) > 30_000


def box(name: bytes, *body: bytes) -> bytes:
    inside = b"".join(body)
    return struct.pack(">I4s", 8 + len(inside), name) + inside


def make_mp4(flag: int, extra: bytes = b"", count: int = 2) -> bytes:
    """Return an MP4 with its index at the end, which says by this flag whether its sound is in the file."""
    start = box(b"ftyp", b"M4A ") + box(b"mdat", b"soundSOUND")
    at = len(start) - 10
    offsets = box(b"stco", struct.pack(">II2I", 0, count, at, at + 5))
    far = box(b"co64", struct.pack(">IIQ", 0, 1, at + 5))
    data = box(b"dinf", box(b"dref", struct.pack(">II", 0, 1), box(b"url ", struct.pack(">I", flag))))
    return start + box(b"moov", box(b"trak", box(b"mdia", box(b"minf", data, box(b"stbl", offsets, far)))), extra)


def test_the_index_goes_first_and_points_to_the_same_bytes() -> None:
    given, target = make_mp4(flag=1), io.BytesIO()
    put_index_first(io.BytesIO(given), target)
    made = target.getvalue()
    assert len(made) == len(given) and made.index(b"moov") < made.index(b"mdat")
    place = made.index(b"stco") + 12
    first, second = struct.unpack_from(">2I", made, place)
    (far,) = struct.unpack_from(">Q", made, made.index(b"co64") + 12)
    assert (made[first : first + 5], made[second : second + 5], made[far : far + 5]) == (b"sound", b"SOUND", b"SOUND")
    put_index_first(io.BytesIO(made), again := io.BytesIO())
    assert again.getvalue() == made


@pytest.mark.parametrize(
    "given",
    [make_mp4(flag=0), make_mp4(flag=1, extra=box(b"udta", b"dref")), make_mp4(flag=1, extra=box(b"cmov")), make_mp4(flag=1, count=9), b"",
     make_mp4(flag=1)[:60], box(b"ftyp") * 100_001, struct.pack(">I4s", 4, b"ftyp") * 9],
    ids=["other file", "hidden", "packed", "offsets", "empty", "cut", "many", "short"],
)  # fmt: skip
def test_an_index_that_leads_elsewhere_or_is_broken_is_refused(given: bytes) -> None:
    with pytest.raises(ValueError):
        put_index_first(io.BytesIO(given), io.BytesIO())


@pytest.mark.skipif(os.name == "nt", reason="no such files")
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(Trouble, match="not found"):
        sound.read(tmp_path / "a.wav")
    with pytest.raises(Trouble):
        uploads.check_upload(tmp_path / "a.wav", owner=True)
