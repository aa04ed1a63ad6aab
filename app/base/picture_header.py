"""Bound what the header of a foreign picture may hold, before Pillow opens it, and read its EXIF comment; no pixel is decoded."""

from __future__ import annotations

import io
import math
import re
import struct
from collections.abc import Iterator
from typing import IO, Final, Literal

READS_MOST: Final = 20_000
"""Pillow walks over chunks and markers in Python, a few reads each. A picture has hundreds; a made-up one may have millions."""
EXIF_MOST_BYTES: Final = 1 << 20
ENTRIES_MOST: Final = 1000
PNG: Final = b"\x89PNG\r\n\x1a\n"
CHUNKS_MOST: Final = 100_000
"""No more chunks of a PNG are read, pixels included: to walk over that many takes a tenth of a second."""
PACKED_MOST: Final = {b"iCCP": 1, b"zTXt": 32, b"iTXt": 32}
"""A PNG may have so many chunks of each kind that Pillow unpacks, up to 1 MB each: 4,000 colour profiles kept a thread busy for 20 s."""
EXIF: Final = b"Exif\0\0"
MULTIPLE: Final = b"MPF\0"
BLOCK_BYTES: Final = 1 << 20
EXIF_PARTS_MOST: Final = 64
"""A JPEG may have no more EXIF parts. Pillow copies all that it has for each part more: 1,000 of 64 KB kept a thread busy for 21 s. A
picture has one to 17."""
SCANS_MOST: Final = 200
"""A JPEG may have so many scans; encoders write up to 15."""
SCANNED_MOST: Final = 2_500_000_000
"""A JPEG's scans may run over so many pixels, counted for each colour: 62 times over 40 million. A thousand million take about 3 s, however
few bytes a scan has."""
EXIF_FOLDER, MAKER_NOTE, USER_COMMENT = 0x8769, 0x927C, 0x9286
TIFFS: Final = (b"MM\0\x2a", b"II\x2a\0", b"MM\x2a\0", b"II\0\x2a", b"II\x2b\0", b"MM\0\x2b")
TWO_FACED: Final = TIFFS[-1]
"""libtiff reads it as a large TIFF, and Pillow as a small one."""
VALUE_BYTES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
"""A value takes so many bytes, for each type of a folder's entries that Pillow reads."""
RATIONALS, RATIONAL_WEIGHT = (5, 10), 16
"""Pillow makes an object of each, with many times its bytes."""
INNER_FOLDERS: Final = (EXIF_FOLDER, 0x8825, 0xA005)
SHARED_MOST: Final = 2
"""The entries of all folders may name the same bytes so often on average: writers share a resolution between its two axes."""
SPARE_BYTES: Final = 1 << 16
NO_BODY: Final = frozenset({0x01, 0xC8, 0xD8, 0xD9, *range(0xF0, 0xFE)})
MARKER: Final = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
START_OF_SCAN, END_OF_PICTURE = 0xDA, 0xD9
FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


class BoundedReads(io.BufferedReader):
    """A file whose header must not be read in too many blocks."""

    _left: float = READS_MOST

    def read(self, size: int | None = -1, /) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError("the header has too many parts")
        return super().read(size)

    def end_of_header(self) -> None:
        """Pixels follow: of a large picture they come in any number of blocks."""
        self._left = math.inf


def refuse_bomb(file: IO[bytes]) -> None:
    """Raise an OSError for a picture whose header has more to unpack, to join or to copy than any has, or more scans, before Pillow opens it."""
    head = file.read(len(PNG))
    if head == PNG:
        _count_packed(file)
        return
    length = file.seek(0, io.SEEK_END)
    file.seek(0)
    if head.startswith(TIFFS):
        refuse_shared_bytes(file, length)
    elif head.startswith(b"\xff\xd8"):
        _check_jpeg(file)


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


def _check_jpeg(file: IO[bytes]) -> None:
    """Check the folders that Pillow reads before the first scan, and count the scans."""
    exif, parts, pixels, scans, scanned = bytearray(), 0, 0, 0, 0
    for marker, body in _list_segments(file):
        if marker == START_OF_SCAN:
            scans, scanned = scans + 1, scanned + pixels * max(1, *body[:1])
            if scans > SCANS_MOST or scanned > SCANNED_MOST:
                raise OSError(f"{scans} scans over {pixels} pixels")
        elif marker in FRAMES and len(body) >= 5:
            pixels = max(pixels, math.prod(-(-side // 8) * 8 for side in struct.unpack_from(">HH", body, 1)))
        elif not scans and marker == 0xE1 and body.startswith(EXIF):
            parts += body.count(EXIF)
            if parts > EXIF_PARTS_MOST:
                raise OSError(f"more than {EXIF_PARTS_MOST} EXIF parts")
            exif += body.removeprefix(EXIF)
        elif not scans and marker == 0xE2 and body.startswith(MULTIPLE):
            refuse_shared_bytes(io.BytesIO(body.removeprefix(MULTIPLE)), len(body) - len(MULTIPLE))
    while exif.startswith(EXIF):  # as Pillow does
        del exif[: len(EXIF)]
    refuse_shared_bytes(io.BytesIO(exif), len(exif))


def _list_segments(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the markers of a JPEG and what stands behind them, among padding as Pillow finds them, until the picture ends behind a scan."""
    scanned = False
    for _ in range(READS_MOST):
        marker = _find_marker(file)
        if marker is None or (scanned and marker == END_OF_PICTURE):
            return
        scanned = scanned or marker == START_OF_SCAN
        if marker not in NO_BODY:
            yield marker, file.read(max(0, int.from_bytes(file.read(2), "big") - 2))
    raise OSError("the header has too many parts")


def _find_marker(file: IO[bytes]) -> int | None:
    """Return the next marker and leave the file behind it; pixels and restarts are skipped."""
    size = 64
    while len(block := file.read(size)) > 1:
        if found := MARKER.search(block):
            file.seek(found.end() - len(block), io.SEEK_CUR)
            return block[found.end() - 1]
        if block.endswith(b"\xff"):
            file.seek(-1, io.SEEK_CUR)
        size = min(size * 4, BLOCK_BYTES)
    return None


def refuse_shared_bytes(file: IO[bytes], length: int) -> None:
    """Raise an OSError if the entries of a TIFF or of EXIF name more bytes than there are: Pillow and libtiff copy those of each entry, so 500 KB
    that 10,000 entries share became 5 GB. Read as Pillow reads: a folder ends with the first entry that names bytes behind the end."""
    head = file.read(16)
    order = {b"II": "<", b"MM": ">"}.get(head[:2])
    if head[:4] == TWO_FACED:
        raise OSError("a large TIFF with the big end first")
    large = head[2:3] == b"\x2b"
    number, count, entry = ("Q", "Q", "HHQ8s") if large else ("I", "H", "HHI4s")
    if order is None or len(head) < (16 if large else 8):
        return
    endian: Literal["little", "big"] = "little" if order == "<" else "big"
    rows, counts = struct.Struct(order + entry), struct.calcsize(order + count)
    waiting, seen = [struct.unpack_from(order + number, head, 8 if large else 4)[0]], set[int]()
    left, reads = SHARED_MOST * length + SPARE_BYTES, READS_MOST
    while waiting:
        start = waiting.pop()
        if start in seen or start >= length:
            continue
        seen.add(start)
        file.seek(start)
        for _ in range(int.from_bytes(file.read(counts), endian)):
            row = file.read(rows.size)
            if len(row) < rows.size:
                break
            tag, kind, values, field = rows.unpack(row)
            size = values * VALUE_BYTES.get(kind, 0)
            offset = int.from_bytes(field, endian)
            there = min(size, max(0, length - offset)) if size > len(field) else size
            left -= rows.size + there * (RATIONAL_WEIGHT if kind in RATIONALS else 1)
            reads -= 1
            if left < 0 or reads < 0:
                raise OSError("its entries name more bytes than there are")
            if there < size:
                break
            if tag in INNER_FOLDERS:
                waiting.append(int.from_bytes(field[:size] if size <= len(field) else _peek(file, offset, size), endian))


def shares_bytes(exif: bytes | str) -> bool:
    """Tell whether the entries of EXIF name more bytes than there are; text is PNG's older form, lines of hexadecimal digits below three others."""
    try:
        body = exif if isinstance(exif, bytes) else bytes.fromhex("".join(exif.split("\n")[3:]))
        while body.startswith(EXIF):  # as Pillow does
            body = body[len(EXIF) :]
        refuse_shared_bytes(io.BytesIO(body), len(body))
    except (OSError, ValueError):
        return True
    return False


def _peek(file: IO[bytes], offset: int, size: int) -> bytes:
    here = file.tell()
    file.seek(offset)
    found = file.read(min(size, 8))
    file.seek(here)
    return found


def read_exif(exif: bytes, wanted: int) -> bytes:
    """Return what EXIF's folder has under a number; empty if it has nothing. Pillow's own reader would copy every entry, however large and many."""
    body = exif.removeprefix(EXIF)[:EXIF_MOST_BYTES]
    order = {b"II": "<", b"MM": ">"}.get(body[:2])
    try:
        if order is None:
            return b""
        (first,) = struct.unpack_from(order + "I", body, 4)
        folder = _find_entry(body, order, first, EXIF_FOLDER)
        found = folder and _find_entry(body, order, folder[1], wanted)
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
