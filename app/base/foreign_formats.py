"""The formats that a picture, a sound or an archive from elsewhere may have. Nothing else opens one: a reader that guesses reads more than was checked."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final

import numpy as np
import soundfile
from PIL import Image, ImageOps

from app.base.picture_header import BoundedReads, refuse_bomb, shares_bytes
from app.base.regular_file import open_regular

PICTURES: Final = ("PNG", "JPEG", "WEBP")
"""The page, other programs and guests may send what Pillow calls by these names."""
OWN_PICTURES: Final = (*PICTURES, "BMP", "TIFF", "GIF", "AVIF")
"""The owner may name these on the command line. AVIF stands last: not every Pillow knows it."""
HEIC: Final = re.compile(rb"....ftyp(?:heic|heix|heim|heis|hevc|mif1)", re.DOTALL)
"""Pictures of iPhones begin so, which Pillow does not read."""
EXIF_MOST: Final = 1 << 16
"""JPEG itself allows no more; a PNG or WebP may bring a megabyte."""
HDR_MOST: Final = 64.0
"""Up to this, floats that are no whole numbers are light whose white is 1, with highlights above it."""
UNRECOGNISED: Final = 1
"""libsndfile gives this number to a format that it does not know."""
START_BYTES: Final = 16
TAGS_MOST, PADDING_MOST_BYTES = 4, 4096
"""So many ID3 tags may stand in a row, each followed by so many of the zeros that some programs leave."""


@dataclass(frozen=True, slots=True)
class SoundKind:
    name: str
    start: re.Pattern[bytes]
    """The first bytes of such a file, behind an ID3 tag if it has one, match it. They alone decide who reads it, never its name."""
    readers: frozenset[str]
    """libsndfile calls it one of these; empty means that it cannot read it."""
    demuxer: str = ""
    """No reader of ffmpeg's but this one may look at it; empty: no other program may."""
    ending: str = ""
    """afconvert knows it by this."""
    guests: bool = False
    """True: guests may send it."""


SOUNDS: Final = (
    SoundKind("WAV", re.compile(rb"RIF[FX]....WAVE", re.DOTALL), frozenset({"WAV", "WAVEX"}), guests=True),
    SoundKind("FLAC", re.compile(rb"fLaC"), frozenset({"FLAC"}), guests=True),
    SoundKind("MP3", re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]"), frozenset({"MP3"}), guests=True),
    SoundKind("OGG", re.compile(rb"OggS"), frozenset({"OGG"}), guests=True),
    SoundKind("AIFF", re.compile(rb"FORM....AIF[FC]", re.DOTALL), frozenset({"AIFF"})),
    SoundKind("AU", re.compile(rb"\.snd|dns\."), frozenset({"AU"})),
    SoundKind("W64", re.compile(rb"riff\x2e\x91\xcf\x11"), frozenset({"W64"})),
    SoundKind("RF64", re.compile(rb"RF64....WAVE", re.DOTALL), frozenset({"RF64"})),
    SoundKind("CAF", re.compile(rb"caff"), frozenset({"CAF"}), demuxer="caf", ending=".caf"),
    SoundKind("M4A", re.compile(rb"....ftyp", re.DOTALL), frozenset(), demuxer="mov", ending=".m4a"),
    SoundKind("AAC", re.compile(rb"\xff[\xf0\xf1\xf8\xf9]"), frozenset(), demuxer="aac", ending=".aac"),
    SoundKind("AMR", re.compile(rb"#!AMR"), frozenset(), demuxer="amr", ending=".amr"),
    SoundKind("WebM", re.compile(rb"\x1a\x45\xdf\xa3"), frozenset(), demuxer="matroska", ending=".webm"),
    SoundKind("WMA", re.compile(rb"\x30\x26\xb2\x75\x8e\x66\xcf\x11"), frozenset(), demuxer="asf", ending=".wma"),
)


def find_sound_kind(path: Path) -> SoundKind | None:
    """Return the row of a sound by its first bytes; None for anything else."""
    with open_regular(path) as file:
        return _find_kind(file)


def _find_kind(file: IO[bytes]) -> SoundKind | None:
    start = file.read(START_BYTES)
    for _ in range(TAGS_MOST):
        if start[:3] != b"ID3" or len(start) < 10:
            break
        size = sum((byte & 0x7F) << shift for byte, shift in zip(start[6:10], (21, 14, 7, 0), strict=True))
        file.seek(size + 10 + (10 if start[5] & 0x10 else 0) - len(start), io.SEEK_CUR)
        padded = file.read(PADDING_MOST_BYTES + START_BYTES).lstrip(b"\0")
        file.seek(-len(padded), io.SEEK_CUR)
        start = file.read(START_BYTES)
    return next((kind for kind in SOUNDS if kind.start.match(start)), None)


@contextmanager
def open_sound(source: Path | IO[bytes]) -> Iterator[soundfile.SoundFile]:
    """Open a sound for reading; raise libsndfile's own error for what is in no row, or if libsndfile takes it for another format.

    libsndfile finds MP3 frames behind 64 KB of anything, and falls back on a name's ending."""
    holding: AbstractContextManager[IO[bytes]] = open_regular(source) if isinstance(source, Path) else nullcontext(source)
    with holding as file:
        kind = _find_kind(file)
        file.seek(0)
    if kind is None or not kind.readers:
        raise soundfile.LibsndfileError(UNRECOGNISED)
    with soundfile.SoundFile(source) as opened:
        if opened.format not in kind.readers:
            raise soundfile.LibsndfileError(UNRECOGNISED)
        opened.seek = partial(_seek, opened, opened.seek)
        yield opened


def _seek(opened: soundfile.SoundFile, seek: Callable[[int, int], int], frames: int, whence: int = io.SEEK_SET) -> int:
    """Stay where the file is already. soundfile seeks after each read, and of an MP3 that is read in blocks the decoder lost what it held:
    samples were up to 0.19 off at each block's beginning, with a line in the terminal for each."""
    return frames if whence == io.SEEK_SET and frames == opened.tell() else seek(frames, whence)


@contextmanager
def open_picture(source: Path | bytes, formats: Collection[str] = PICTURES) -> Iterator[Image.Image]:
    """Open a picture without decoding it; raise an OSError for whatever is none.

    What bounds it: the chunks, reads, folders and scans that `picture_header` looks at, and Pillow's own limits of 1 MB for a compressed text
    and 64 MB for all texts."""
    with open_regular(source) if isinstance(source, Path) else io.BytesIO(source) as plain:
        refuse_bomb(plain)
        plain.seek(0)
        with BoundedReads(plain) as file:
            try:
                picture = Image.open(file, formats=tuple(formats))
            except (MemoryError, Image.DecompressionBombError):
                raise
            except Exception as fault:  # a parser of other people's bytes may stumble in any way
                raise OSError(f"not a picture: {fault}") from fault
            file.end_of_header()
            with picture:
                yield picture


def decode(picture: Image.Image, mode: str | None = None) -> Image.Image:
    """Decode the pixels of a picture that `open_picture` opened, into another mode of 8 bits if one is given; raise an OSError if they are damaged.
    Whoever calls it has looked at the size."""
    try:
        picture.load()
        return to_eight_bits(picture).convert(mode) if mode else picture
    except MemoryError:
        raise
    except Exception as fault:  # as above
        raise OSError(f"not a whole picture: {fault}") from fault


def to_eight_bits(picture: Image.Image) -> Image.Image:
    """Scale grey of 16 and more bits, and floats, to the 8 that Pillow would cut them to: all that is brighter than 255 turned white."""
    if picture.mode != "F" and not picture.mode.startswith("I"):
        return picture
    levels = np.nan_to_num(np.asarray(picture, np.float64))
    most = float(levels.max(initial=0.0))
    if picture.mode == "F" and (most <= 1.0 or (most <= HDR_MOST and np.any(levels % 1))):
        white = 1.0
    else:
        white = next(each for each in (255.0, 65535.0, max(most, 1.0)) if most <= each)
    if picture.mode.startswith("I;16"):
        white = 65535.0
    return Image.fromarray(np.clip(np.round(levels * (255.0 / white)), 0, 255).astype(np.uint8))


def turn_upright(picture: Image.Image) -> Image.Image:
    """Return a decoded picture as its EXIF says that the camera was held; one whose EXIF cannot be read stays as it is."""
    _leave_out_large_exif(picture)
    try:
        return ImageOps.exif_transpose(picture)
    except _UNREADABLE_EXIF:
        return picture


def measure_upright(picture: Image.Image) -> tuple[int, int]:
    """Return the sides of a picture as `turn_upright` turns it, which need not be decoded for that."""
    _leave_out_large_exif(picture)
    try:
        turned = picture.getexif().get(_ORIENTATION) in (5, 6, 7, 8)
    except _UNREADABLE_EXIF:
        turned = False
    return picture.size[::-1] if turned else picture.size


def _leave_out_large_exif(picture: Image.Image) -> None:
    for name in picture.info.keys() & {"exif", "Raw profile type exif"}:  # Pillow copies every entry, however large and many
        if len(picture.info[name]) > EXIF_MOST or shares_bytes(picture.info[name]):
            del picture.info[name]


_ORIENTATION: Final = 0x112
_UNREADABLE_EXIF: Final = (SyntaxError, ValueError, TypeError, KeyError, OSError, struct.error)


def on_white(picture: Image.Image) -> Image.Image:
    """Return a picture of 8 bits on white if it is transparent anywhere; its colour profile stays."""
    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture
    rgba = picture.convert("RGBA")
    opaque = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    opaque.info |= {name: value for name, value in picture.info.items() if name == "icc_profile"}
    return opaque


ENTRIES_MOST, LISTED_MOST_BYTES = 10_000, 8_000_000
"""An archive may have so many files; the list of them is read whole."""
_PIECE_BYTES: Final = 1 << 20
_END: Final = struct.Struct("<4s4xHHII")
_END_SIGN, _LARGE_SIGN = b"PK\x05\x06", b"PK\x06\x07"
_TAIL_BYTES: Final = 22 + 65_536 + 20
"""The record at an archive's end, with the longest comment, and what stands before that of a large one take so much."""


class Locked(OSError):
    """A file of an archive asks for a password."""


class TooLarge(OSError):
    """A file unpacks to more than one of its kind has, or takes more to read."""


class Archive:
    """A zip archive of somebody else's: its names are no paths on the disk, and no more is read than was allowed."""

    def __init__(self, opened: zipfile.ZipFile, most_bytes: int) -> None:
        self._opened, self._left = opened, most_bytes
        self.names: Final = frozenset(opened.namelist())

    def read(self, name: str, most_bytes: int) -> bytes:
        """Return a file; raise an OSError if it is not there, longer than this or damaged, or if all that was read is more than the archive may have."""
        into = io.BytesIO()
        self._copy(name, into, most_bytes)
        return into.getvalue()

    def save(self, name: str, target: Path, most_bytes: int) -> None:
        """Write a file under a name of Hearth's own; raise as `read` does."""
        with target.open("xb") as into:
            self._copy(name, into, most_bytes)

    def _copy(self, name: str, into: IO[bytes], most_bytes: int) -> None:
        try:
            entry = self._opened.getinfo(name)
            if entry.flag_bits & 1:
                raise Locked(name)
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others take memory as the file says
                raise OSError(f"{name} is packed in an unusual way")
            left = min(most_bytes, self._left)
            with self._opened.open(entry) as file:
                while left >= 0 and (data := file.read(min(left + 1, _PIECE_BYTES))):
                    left -= len(data)
                    self._left -= len(data)
                    into.write(data)
        except (KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, RuntimeError) as fault:
            raise OSError(f"{name}: {fault}") from fault
        if left < 0:
            raise TooLarge(f"{name} is too long")


@contextmanager
def open_archive(file: IO[bytes], most_bytes: int) -> Iterator[Archive]:
    """Open a zip archive for reading up to so much of its files; raise an OSError for whatever is none."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read()
    at = tail.find(_END_SIGN)
    if at < 0 or _LARGE_SIGN in tail:
        raise OSError("not a plain zip archive")
    while at >= 0:  # zipfile may take any of them, and reads the whole list that it names
        if len(tail) - at >= _END.size:
            _, here, entries, listed, _ = _END.unpack_from(tail, at)
            if max(here, entries) > ENTRIES_MOST or listed > LISTED_MOST_BYTES:
                raise TooLarge("too many files are in it")
        at = tail.find(_END_SIGN, at + 1)
    file.seek(0)
    try:
        opened = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as fault:
        raise OSError(f"not an archive: {fault}") from fault
    with opened:
        yield Archive(opened, most_bytes)
