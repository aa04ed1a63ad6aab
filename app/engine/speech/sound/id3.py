"""Change the ID3 tag of an MP3: LAME writes words as UTF-8 but calls them Latin-1, and knows no covers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

HEAD: Final = b"ID3\x03\x00\x00"
"""LAME begins a file that has words so: ID3 2.3, without flags. It ends the file with an older tag too."""
HEAD_BYTES: Final = 10
OLD: Final = b"TAG"
OLD_BYTES: Final = 128
LATIN, UTF16 = b"\0", b"\1"


def change_tag(path: Path, title: str = "", cover: bytes = b"") -> None:
    """Spell an MP3's words as players read them, in UTF-16 where ASCII is not enough, and give it a title and a JPEG as its cover. The older tag, which
    has no such letters, is left out then; a tag of another version stays as it is."""
    with path.open("r+b") as file, tempfile.TemporaryFile(dir=path.parent) as music:
        head = file.read(HEAD_BYTES)
        if head.startswith(b"ID3") and not head.startswith(HEAD):
            return
        tagged = head.startswith(HEAD)
        before = file.read(sum(byte << shift for byte, shift in zip(head[6:], (21, 14, 7, 0), strict=True))) if tagged else b""
        frames = [(name, _spell(name, body)) for name, body in _read_frames(before) if not (title and name == b"TIT2")]
        frames += [(b"TIT2", _spell(b"TIT2", LATIN + title.encode()))] if title else []
        frames += [(b"APIC", LATIN + b"image/jpeg\0\x03\0" + cover)] if cover else []  # the front cover, without a description
        words = b"".join(name + len(body).to_bytes(4, "big") + b"\0\0" + body for name, body in frames)
        if words == before:
            return
        size = bytes(len(words) >> shift & 0x7F for shift in (21, 14, 7, 0))
        file.seek(HEAD_BYTES + len(before) if tagged else 0)
        shutil.copyfileobj(file, music)
        if music.tell() >= OLD_BYTES:
            music.seek(-OLD_BYTES, 2)
            if music.read(len(OLD)) == OLD:
                music.seek(-OLD_BYTES, 2)
                music.truncate()
        music.seek(0)
        file.seek(0)
        file.write(HEAD + size + words)
        shutil.copyfileobj(music, file)
        file.truncate()


def _read_frames(words: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while words[at : at + 1].strip(b"\0"):  # zeros fill the rest
        body = at + HEAD_BYTES
        end = body + int.from_bytes(words[at + 4 : at + 8], "big")
        yield words[at : at + 4], words[body:end]
        at = end


def _spell(name: bytes, body: bytes) -> bytes:
    """Return a frame of words as UTF-16 if it is LAME's UTF-8; the comment is ASCII always."""
    if name[:1] != b"T" or body[:1] != LATIN or body.isascii():
        return body
    return UTF16 + body[1:].decode("utf-8", "replace").encode("utf-16")
