"""Have another program convert a sound that libsndfile cannot read, such as a phone's m4a. It can open nothing else, and is bounded."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any, Final

from app.base.foreign_formats import SoundKind
from app.engine.speech.sound.mp4_index import put_index_first

DECODERS: Final = "aac,alac,mp3,mp3float,opus,vorbis,amrnb,amrwb,wmav1,wmav2"
"""Recordings of phones, browsers and Windows hold nothing else."""
CONVERTED_S: Final = 601
"""No more sound is converted: a second more than a recording may last, so that a longer one is known."""
CONVERTED_MOST_BYTES: Final = 128 << 20
"""10 minutes at 96 kHz and 16 bits take less."""
GIVEN_MOST_BYTES: Final = 512 << 20
LONGEST_S: Final = 60.0
CONVERTERS: Final = (
    # Standard input and output are all that ffmpeg may open, whatever the file names; the format is told, never guessed.
    ("ffmpeg", "-nostdin", "-v", "error", "-protocol_whitelist", "pipe", "-codec_whitelist", DECODERS, "-f", "{demuxer}", "-i", "pipe:0",
     "-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-ac", "1", "-t", f"{CONVERTED_S}", "-fs", f"{CONVERTED_MOST_BYTES}",
     "-c:a", "pcm_s16be", "-f", "au", "pipe:1"),
    # Part of macOS, which reads no playlists; it needs paths, and its shell's limit on what it writes, in blocks of 512 bytes.
    ("afconvert", "/bin/sh", "-c", f'ulimit -f {CONVERTED_MOST_BYTES >> 9} && exec "$0" "$@"', "{program}", "-f", "WAVE", "-d", "LEI16",
     "{given}", "{made}"),
)  # fmt: skip


def find_converters() -> list[tuple[str, tuple[str, ...]]]:
    """Return the converters that this machine has, and their arguments."""
    found = ((shutil.which(name), (*arguments,)) for name, *arguments in CONVERTERS)
    return [(program, arguments) for program, arguments in found if program]


def can_convert(kind: SoundKind) -> bool:
    return bool(kind.demuxer and find_converters())


def convert(source: Path, kind: SoundKind) -> bytes:
    """Return the sound as mono WAV or AU; empty if there is no converter, or none could."""
    if not can_convert(kind) or source.stat().st_size > GIVEN_MOST_BYTES:
        return b""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / f"given{kind.ending}", Path(folder) / "made.wav"
        with source.open("rb") as original, given.open("wb") as copy:
            try:
                put_index_first(original, copy) if kind.demuxer == "mov" else shutil.copyfileobj(original, copy)
            except ValueError:
                return b""
        for program, arguments in find_converters():
            filled = [each.format(demuxer=kind.demuxer, program=program, given=given, made=made) for each in arguments]
            with given.open("rb") as file:
                said = run_bounded(filled if "{program}" in arguments else [program, *filled], file)
            if said is not None and (sound := said or (made.read_bytes() if made.is_file() else b"")):
                return sound
    return b""


def run_bounded(command: list[str], given: IO[bytes]) -> bytes | None:
    """Return what a program writes for what it is given; None if it fails, writes or takes too much. It is ended with all that it started."""
    apart: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        apart = {"creationflags": subprocess.CREATE_NO_WINDOW}
    try:
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **apart)
    except OSError:
        return None
    late = threading.Timer(LONGEST_S, _end, [process])
    late.start()
    with process:
        try:
            assert process.stdout is not None
            made = process.stdout.read(CONVERTED_MOST_BYTES + 1)
            return made if len(made) <= CONVERTED_MOST_BYTES and process.wait() == 0 else None
        finally:
            late.cancel()
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
