"""Put the index of an MP4 in front of its sound: recorders write it at the end, where a program that reads a pipe never finds it."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final

import numpy as np

INDEX_MOST_BYTES: Final = 8 << 20
"""An hour has less than one."""
BOXES_MOST: Final = 100_000
WITHIN: Final = {
    b"moov": {b"trak"}, b"trak": {b"mdia"}, b"mdia": {b"minf"}, b"minf": {b"stbl", b"dinf"}, b"stbl": {b"stco", b"co64"}, b"dinf": {b"dref"},
}  # fmt: skip
"""These boxes lead to the offsets of the sound, and to the names of the files that it lies in."""
OFFSETS: Final = {b"stco": ">u4", b"co64": ">u8"}
BLOCK_BYTES: Final = 1 << 20
OWN_FILE: Final = b"\1"
"""A data reference has this flag if the sound is in this very file."""


@dataclass(frozen=True, slots=True)
class Box:
    name: bytes
    begin: int
    body: int
    end: int


def put_index_first(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy a file, with its index before its sound; raise ValueError for one without an index, or whose sound lies in another file."""
    length = source.seek(0, io.SEEK_END)
    boxes = [*_list_boxes(source, 0, length)]
    index = next((box for box in boxes if box.name == b"moov"), None)
    if index is None or index.end - index.begin > INDEX_MOST_BYTES:
        raise ValueError("no index")
    begin = min(index.begin, *(box.begin for box in boxes if box.name == b"mdat"), length)
    source.seek(index.begin)
    moved = bytearray(source.read(index.end - index.begin))
    _refuse_other_files(moved)
    _shift_offsets(moved, range(begin, index.begin))
    for offset, count in ((0, begin), (begin, index.begin - begin), (index.end, length - index.end)):
        source.seek(offset)
        if offset == begin:
            target.write(moved)
        while count > 0 and (block := source.read(min(count, BLOCK_BYTES))):
            target.write(block)
            count -= len(block)


def _list_boxes(file: IO[bytes], begin: int, end: int) -> Iterator[Box]:
    for _ in range(BOXES_MOST):
        if begin + 8 > end:
            return
        file.seek(begin)
        size, name = struct.unpack(">I4s", file.read(8))
        body = begin + 8
        if size == 1:
            (size,) = struct.unpack(">Q", file.read(8).ljust(8, b"\0"))
            body += 8
        box = Box(name, begin, body, end if size == 0 else begin + size)
        if box.end < body or (box.end > end and name != b"mdat"):
            raise ValueError("a box that is longer than the file")
        yield box
        begin = box.end
    raise ValueError("too many boxes")


def _walk(file: IO[bytes], box: Box) -> Iterator[Box]:
    for each in _list_boxes(file, box.body, box.end):
        if each.name in WITHIN[box.name]:
            yield from _walk(file, each) if each.name in WITHIN else (each,)


def _list_within(index: bytearray) -> Iterator[Box]:
    file = io.BytesIO(index)
    return _walk(file, next(_list_boxes(file, 0, len(index))))


def _refuse_other_files(index: bytearray) -> None:
    references = [box for box in _list_within(index) if box.name == b"dref"]
    entries = (each for box in references for each in _list_boxes(io.BytesIO(index), box.body + 8, box.end))
    if len(references) != index.count(b"dref") or b"cmov" in index or b"rmra" in index:
        raise ValueError("an index that hides something")
    if not all(index[each.body + 3 : each.body + 4] == OWN_FILE for each in entries):
        raise ValueError("its sound lies in another file")


def _shift_offsets(index: bytearray, moved: range) -> None:
    """Let the offsets of what the index goes before say where that will be."""
    for box in _list_within(index):
        if box.name in OFFSETS:
            kind = np.dtype(OFFSETS[box.name])
            (count,) = struct.unpack_from(">I", index, box.body + 4)
            if box.body + 8 + count * kind.itemsize > box.end:
                raise ValueError("more offsets than there is room for")
            offsets = np.frombuffer(index, kind, count, box.body + 8)
            offsets[(offsets >= moved.start) & (offsets < moved.stop)] += len(index)
