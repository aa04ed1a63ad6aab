"""Bound what the header of a foreign picture may hold, before Pillow opens it, and read its EXIF comment; no pixel is decoded."""

from __future__ import annotations

import io
import math
import struct
from typing import IO, Final

READS_MOST: Final = 20_000
"""Pillow walks over chunks and markers in Python, a few reads each. A picture has hundreds; a made-up one may have millions."""
EXIF_MOST_BYTES: Final = 1 << 20
ENTRIES_MOST: Final = 1000
PNG: Final = b"\x89PNG\r\n\x1a\n"
CHUNKS_MOST: Final = 100_000
"""Of a PNG, pixels included; to walk over that many takes a tenth of a second."""
PACKED_MOST: Final = {b"iCCP": 1, b"zTXt": 32, b"iTXt": 32}
"""How many chunks of each kind that Pillow unpacks, up to 1 MB each: 4,000 colour profiles kept a thread busy for 20 s."""
EXIF: Final = b"Exif\0\0"
EXIF_PARTS_MOST: Final = 64
"""In a whole file. Pillow copies a JPEG's EXIF anew for each part: 1,000 of 64 KB kept a thread busy for 21 s. A picture has one to 17."""
PIECE_BYTES: Final = 1 << 20
EXIF_FOLDER, USER_COMMENT = 0x8769, 0x9286


class BoundedReads(io.BufferedReader):
    """A file whose header must not be read in too many pieces."""

    _left: float = READS_MOST

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError("the header has too many parts")
        return super().read(size)

    def end_of_header(self) -> None:
        """Pixels follow: of a large picture they come in any number of pieces."""
        self._left = math.inf


def refuse_bomb(file: IO[bytes]) -> None:
    """Raise an OSError for a picture whose header has more to unpack or to join than any has, before Pillow opens it."""
    if file.read(len(PNG)) == PNG:
        _count_packed(file)
    else:
        file.seek(0)
        _count_exif(file)


def _count_packed(file: IO[bytes]) -> None:
    """Walk over a PNG's chunks; only the head of each is read."""
    left = dict(PACKED_MOST)
    for _ in range(CHUNKS_MOST):
        head = file.read(8)
        if len(head) < 8 or head[4:] == b"IEND":
            return
        kind = head[4:]
        if kind in left:
            left[kind] -= 1
            if left[kind] < 0:
                raise OSError(f"more than {PACKED_MOST[kind]} {kind.decode()} chunks")
        file.seek(int.from_bytes(head[:4], "big") + 4, io.SEEK_CUR)
    raise OSError(f"more than {CHUNKS_MOST} chunks")


def _count_exif(file: IO[bytes]) -> None:
    """Count wherever it stands: Pillow finds segments among all kinds of padding."""
    count, before = 0, b""
    while piece := file.read(PIECE_BYTES):
        count += (before + piece).count(EXIF)
        if count > EXIF_PARTS_MOST:
            raise OSError(f"more than {EXIF_PARTS_MOST} EXIF parts")
        before = piece[1 - len(EXIF) :]


def read_user_comment(exif: bytes) -> bytes:
    """Return EXIF's user comment; empty if there is none. Pillow's own reader would copy every entry, however large and many."""
    body = exif.removeprefix(EXIF)[:EXIF_MOST_BYTES]
    order = {b"II": "<", b"MM": ">"}.get(body[:2])
    try:
        if order is None:
            return b""
        (first,) = struct.unpack_from(order + "I", body, 4)
        folder = _find_entry(body, order, first, EXIF_FOLDER)
        found = folder and _find_entry(body, order, folder[1], USER_COMMENT)
        return body[found[1] : found[1] + found[0]] if found else b""
    except struct.error:
        return b""


def _find_entry(body: bytes, order: str, start: int, wanted: int) -> tuple[int, int] | None:
    """Return count and value of an entry of a TIFF folder."""
    (count,) = struct.unpack_from(order + "H", body, start)
    for index in range(min(count, ENTRIES_MOST)):
        tag, _, length, value = struct.unpack_from(order + "HHII", body, start + 2 + 12 * index)
        if tag == wanted:
            return length, value
    return None
