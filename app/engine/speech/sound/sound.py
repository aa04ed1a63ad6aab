"""Read any sound file, write sound atomically, store settings in its tags. Mono float32 in numpy; no torch."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from app.base import atomic_write
from app.base.bounded_json import Bounds, parse_json
from app.base.duration import word_duration
from app.base.foreign_formats import find_sound_kind, open_sound
from app.base.path_checks import is_file
from app.base.regular_file import open_regular
from app.base.sentence import say, say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.outward import strip_paths
from app.engine.jobs.request import name_voice
from app.engine.models.catalog import BY_ID, list_credits
from app.engine.speech.sound import id3
from app.engine.speech.sound.convert_sound import convert

Samples = NDArray[np.float32]

CODINGS = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "ogg": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
}
OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
OPUS_TAG_BYTES = 60_000
"""Opus keeps its tags in one page of 65,025 bytes."""


CHANNELS_MOST, RATE_LEAST, RATE_MOST = 8, 1000, 384_000
"""No recording has more, nor a lower rate; a header that claims more would have gigabytes set aside, and the stretcher never ends at 10 Hz."""
CHUNKS_MOST, TAG_MOST_BYTES = 1000, 8 << 20
"""To find its settings, at most so many parts of a WAV are walked over; the settings may be this long, also once unpacked."""


CUES: Final = "cues"
"""Beside the settings, a result's tag holds under this name when each sentence is said."""
BLOCK_FRAMES, MP3_FRAMES = 1 << 16, 1 << 24
"""So much is decoded at once. An MP3 has two channels and 48,000 Hz at most, and a new block of it begins a little differently."""
RECORDING_MOST_S: Final = 600.0
"""A recording that is sent may be as long."""
RATE_KEPT_MOST, RATE_KEPT = 96_000, 48_000
"""Sound of a higher rate is read at a usual one: nothing of speech is lost, and a small file of constant sound becomes no gigabytes."""


def read(path: Path, most_s: float | None = None) -> tuple[Samples, int]:
    """Return mono samples and their rate, limited to the first `most_s` seconds. Memory follows the seconds, not channels or rate."""
    if not is_file(path):
        raise Trouble(say("sound.missing", "The sound file {path} was not found. Choose it again.", path=str(path)))
    if path.stat().st_size == 0:
        raise Trouble(say("sound.empty", "The file {name} is empty. Choose another one.", name=path.name))
    try:
        return _read(path, most_s, path.name)
    except soundfile.LibsndfileError as fault:
        kind = find_sound_kind(path)
        converted = convert(path, kind) if kind is not None else b""
        with suppress(soundfile.LibsndfileError):
            return _read(io.BytesIO(converted), most_s, path.name)
        raise Trouble(
            say(
                "sound.unreadable",
                "{name} cannot be read as sound ({fault}). Use WAV, FLAC, MP3, OGG or Opus, or install ffmpeg for other formats.",
                name=path.name,
                fault=str(fault.error_string),
            )
        ) from fault


def require_usual(name: str, channels: int, rate: int) -> None:
    """Raise Trouble for more channels, or a higher or lower rate, than any recording has."""
    if channels > CHANNELS_MOST or not RATE_LEAST <= rate <= RATE_MOST:
        raise Trouble(
            say(
                "sound.unusual",
                "{name} has {channels} {channels:channel|channels} at {rate} Hz, which Hearth cannot use. Convert it to mono at 44100 Hz.",
                name=name,
                channels=channels,
                rate=rate,
            )
        )


def require_short(name: str, seconds: float) -> None:
    if seconds > RECORDING_MOST_S:
        raise Trouble(
            say_to_all("upload.long", "{name} is longer than {most}. Shorten it first.", name=name, most=word_duration(RECORDING_MOST_S))
        )


def make_readable(recording: Path) -> Path:
    """Return a recording that `measure` can read, made beside one that only another program can."""
    try:
        measure(recording)
    except soundfile.LibsndfileError:
        samples, rate = read(recording)
        require_short(recording.name, len(samples) / rate)
        recording = recording.with_suffix(".converted.wav")
        write(recording, samples, rate)
    return recording


def _read(source: Path | io.BytesIO, most_s: float | None, name: str) -> tuple[Samples, int]:
    with open_sound(source) as file:
        require_usual(name, file.channels, file.samplerate)
        rate, kept = file.samplerate, file.samplerate if file.samplerate <= RATE_KEPT_MOST else RATE_KEPT
        left, step = file.frames if most_s is None else int(most_s * rate), MP3_FRAMES if file.format == "MP3" else BLOCK_FRAMES
        lower = soxr.ResampleStream(rate, kept, 1, "float32") if kept < rate else None
        pieces = [np.zeros(0, np.float32)]
        while left > 0 and len(block := file.read(min(step, left), dtype="float32", always_2d=True)):
            left -= len(block)
            mono = np.nan_to_num(block.mean(axis=1, dtype=np.float32), posinf=0.0, neginf=0.0)
            pieces.append(lower.resample_chunk(mono) if lower else mono)
        if lower:
            pieces.append(lower.resample_chunk(pieces[0], last=True))
        return np.concatenate(pieces), kept


@dataclass(frozen=True, slots=True)
class Measures:
    """What the header of a sound says; `require_usual` judges it."""

    channels: int
    rate: int
    frames: int
    coding: tuple[str, str]
    """Codings are written as in CODINGS."""

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def measure(path: Path) -> Measures:
    """Measure a file that libsndfile can read, without decoding it."""
    with open_sound(path) as file:
        return Measures(file.channels, file.samplerate, file.frames, (file.format, file.subtype))


def measure_seconds(path: Path) -> float:
    return measure(path).seconds


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    return samples if rate == wanted else np.asarray(soxr.resample(samples, rate, wanted), np.float32)


def find_spoken_span(samples: Samples, rate: int, lead_s: float = 0.1, tail_s: float = 0.15) -> tuple[int, int]:
    """Find the start and the end of what can be heard, with a little silence around it; (0, 0) for silence."""
    hop = max(1, rate // 100)
    padded = np.pad(samples, (0, -len(samples) % hop)).reshape(-1, hop)
    loudness = np.sqrt((padded.astype(np.float64) ** 2).mean(axis=1))
    heard = np.flatnonzero(loudness > max(1e-4, 0.005 * loudness.max(initial=0.0)))
    if not len(heard):
        return 0, 0
    first, last = int(heard[0]) * hop, (int(heard[-1]) + 1) * hop
    return max(0, first - int(lead_s * rate)), min(len(samples), last + int(tail_s * rate))


@contextmanager
def replacing_or_explaining(path: Path) -> Iterator[Path]:
    """Replace a file atomically; a failure raises a Trouble that explains it."""
    try:
        with atomic_write.replacing(path) as unfinished:
            yield unfinished
    except (OSError, soundfile.LibsndfileError) as fault:
        free_bytes = shutil.disk_usage(path.parent).free
        raise Trouble(
            say(
                "sound.unwritten",
                "Could not save {path} ({fault}); that disk has {free} MB free. Free some space or choose another folder. Finished parts are kept.",
                path=str(path),
                fault=str(fault),
                free=free_bytes >> 20,
            )
        ) from fault


def write(path: Path, samples: Samples, rate: int) -> None:
    """Write a plain WAV atomically."""
    with replacing_or_explaining(path) as unfinished:
        soundfile.write(unfinished, np.clip(samples, -1, 1), rate, subtype="PCM_16", format="WAV")


def choose_rate(coding: str, rate: int) -> int:
    """Return the sample rate this format stores the sound at."""
    return rate if coding != "opus" else next((each for each in OPUS_RATES if each >= rate), OPUS_RATES[-1])


class Chapter(NamedTuple):
    """What players show of a chapter beside its title."""

    book: str
    author: str
    number: int


@contextmanager
def open_writer(
    path: Path, coding: str, rate: int, settings: dict[str, Any], title: str = "", chapter: Chapter | None = None
) -> Iterator[soundfile.SoundFile]:
    """Open a file for mono samples. WAV gets its settings after closing, because libsndfile drops long comments."""
    container, subtype = CODINGS[coding]
    with soundfile.SoundFile(path, "w", rate, 1, subtype, format=container) as file:
        if coding != "wav" and (tag := _make_tag(settings, coding)):
            file.software, file.comment = "Hearth", tag
        if coding != "wav" and (artist := name_artist(settings, chapter.author if chapter is not None else "")):
            file.artist = artist  # which every format has, unlike a copyright
        if coding != "wav" and title:
            file.title = title
        if chapter is not None:
            file.album, file.tracknumber = chapter.book, str(chapter.number)
        yield file
    if coding == "mp3":
        id3.change_tag(path)


def name_artist(settings: dict[str, Any], author: str = "") -> str:
    """Name the author, else who speaks, and whom a licence credits; where that is nobody, the model."""
    cast, voice, model = (settings.get(each) for each in ("cast", "voice", "model"))
    names = [str(each.get("name") or "").strip() for each in (cast if isinstance(cast, list | tuple) else ()) if isinstance(each, dict)]
    own = name_voice(str(voice.get("path", ""))) if isinstance(voice, dict) else ""
    told = ", ".join(filter(None, (author or ", ".join(dict.fromkeys(filter(None, names))) or own, list_credits(settings))))
    return told or (BY_ID[model].title if isinstance(model, str) and model in BY_ID else "")


def write_samples(file: soundfile.SoundFile, samples: Samples) -> None:
    """Append samples, with what is too loud cut off; libsndfile's Vorbis encoder crashes where it is given millions at once."""
    for first in range(0, len(samples), BLOCK_FRAMES):
        file.write(np.clip(samples[first : first + BLOCK_FRAMES], -1, 1))


def has_room_for(settings: dict[str, Any], coding: str) -> bool:
    """Tell whether this format has room for the settings."""
    return bool(_make_tag(settings, coding))


def _make_tag(settings: dict[str, Any], coding: str) -> str:
    """Return the settings as one line of ASCII with names for paths; compressed where the format has little room, empty
    if still too long."""
    plain = json.dumps(strip_paths(settings), ensure_ascii=True, separators=(",", ":"))
    if coding != "opus" or len(plain) <= OPUS_TAG_BYTES:
        return plain
    packed = "zlib:" + base64.b64encode(zlib.compress(plain.encode(), 9)).decode()
    return packed if len(packed) <= OPUS_TAG_BYTES else ""


def tag_wav(path: Path, settings: dict[str, Any], title: str = "") -> None:
    """Append the settings to a closed file as the comment that players show, who speaks, and a title (LIST INFO ICMT, IART, INAM)."""
    body = b"INFO" + _make_entry(b"ICMT", _make_tag(settings, "wav"))
    if title:
        body += _make_entry(b"INAM", title)
    if artist := name_artist(settings):
        body += _make_entry(b"IART", artist)
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"\0" * (file.tell() % 2) + b"LIST" + struct.pack("<I", len(body)) + body)
        length = file.tell()
        file.seek(4)
        file.write(struct.pack("<I", length - 8))


def _make_entry(name: bytes, words: str) -> bytes:
    text = words.encode() + b"\0"
    text += b"\0" * (len(text) % 2)
    return name + struct.pack("<I", len(text)) + text


def read_settings(path: Path) -> dict[str, Any] | None:
    """Return the settings stored by `open_writer` or `tag_wav`; None if Hearth did not make the file."""
    settings = read_tag(path)
    if settings is not None:
        settings.pop(CUES, None)
    return settings


def read_tag(path: Path) -> dict[str, Any] | None:
    """Return all that is stored with the settings."""
    try:
        comment = _read_wav_comment(path) if path.suffix.lower() == ".wav" else _read_comment(path)
        if comment.startswith("zlib:"):
            comment = zlib.decompressobj().decompress(base64.b64decode(comment[5:]), TAG_MOST_BYTES).decode()
        settings = parse_json(comment, Bounds(TAG_MOST_BYTES))
    except (ValueError, zlib.error, soundfile.LibsndfileError, struct.error):
        return None
    return settings if isinstance(settings, dict) else None


def _read_comment(path: Path) -> str:
    with open_sound(path) as file:
        return str(file.comment)


def _read_wav_comment(path: Path) -> str:
    with open_regular(path) as file:
        if file.read(12)[8:] != b"WAVE":
            return ""
        for _ in range(CHUNKS_MOST):
            head = file.read(8)
            if len(head) < 8:
                break
            name, size = struct.unpack("<4sI", head)
            begin = file.tell()
            if name == b"LIST" and (found := _find_comment(file.read(min(size, TAG_MOST_BYTES)))):
                return found
            file.seek(begin + size + size % 2)
    return ""


def _find_comment(listed: bytes) -> str:
    """Return ICMT of a LIST chunk of the kind INFO."""
    at = 4
    while listed.startswith(b"INFO") and at + 8 <= len(listed):
        entry, length = struct.unpack_from("<4sI", listed, at)
        if entry == b"ICMT":
            return listed[at + 8 : at + 8 + length].rstrip(b"\0").decode("utf-8", errors="replace")
        at += 8 + length + length % 2
    return ""
