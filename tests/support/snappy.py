"""Snappy's framing, there and back: what comes is unpacked, what goes is framed as it is, which every reader must take."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

NAME = b"\xff\x06\x00\x00sNaPpY"
"""How every stream begins."""
PACKED, PLAIN = 0x00, 0x01
CHUNK_BYTES = 64 << 10
POLYNOMIAL = 0x82F63B78
"""Castagnoli's, mirrored."""
LANE_BYTES = 64
ONES = bytes.fromhex("54641f64")
"""After which a remainder that began with zeros is all ones, as it has to be at the beginning."""


def _row(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ POLYNOMIAL * (value & 1)
    return value


def _far(rows: NDArray[np.uint32], place: int) -> list[int]:
    """What each value of this byte of a remainder has become after a lane of zeros."""
    state = np.arange(256, dtype=np.uint32) << np.uint32(8 * place)
    for _ in range(LANE_BYTES):
        state = state >> 8 ^ rows[state & 255]
    return [int(each) for each in state]


ROWS = np.array([_row(value) for value in range(256)], dtype=np.uint32)
FAR = [_far(ROWS, place) for place in range(4)]


def checksum(data: bytes) -> int:
    """CRC-32C, turned and shifted as the format asks. In lanes side by side: byte after byte it would take nearly all of a test's time."""
    laid = bytearray(-len(ONES + data) % LANE_BYTES) + ONES + data
    lanes = np.frombuffer(laid, dtype=np.uint8).reshape(-1, LANE_BYTES).T
    state = np.zeros(lanes.shape[1], dtype=np.uint32)
    for column in lanes:
        state = state >> 8 ^ ROWS[(state ^ column) & 255]
    crc = 0
    for each in state.tolist():
        crc = FAR[0][crc & 255] ^ FAR[1][crc >> 8 & 255] ^ FAR[2][crc >> 16 & 255] ^ FAR[3][crc >> 24] ^ each
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """Without the stream's beginning."""
    chunks = [data[start : start + CHUNK_BYTES] for start in range(0, len(data), CHUNK_BYTES)]
    return b"".join(struct.pack("<II", (len(each) + 4) << 8 | PLAIN, checksum(each)) + each for each in chunks)


def unframed(kind: int, body: bytes) -> bytes:
    """One chunk's content; nothing, where it is the stream's beginning."""
    if kind not in (PACKED, PLAIN):
        assert bytes([kind]) + len(body).to_bytes(3, "little") + body == NAME, f"an unknown chunk {kind}"
        return b""
    data = unpacked(body[4:]) if kind == PACKED else body[4:]
    assert checksum(data) == int.from_bytes(body[:4], "little"), "a wrong checksum"
    return data


def unpacked(block: bytes) -> bytes:
    """Literals and copies of what was there before."""
    total, at = number(block)
    made = bytearray()
    while at < len(block):
        tag = block[at]
        kind, at = tag & 3, at + 1
        if kind == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length, at = int.from_bytes(block[at : at + more], "little"), at + more
            made += block[at : at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            length, back, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | block[at], at + 1
        else:
            size = 2 if kind == 2 else 4
            length, back, at = (tag >> 2) + 1, int.from_bytes(block[at : at + size], "little"), at + size
        start = len(made) - back
        piece = made[start : start + length]
        made += (piece * (length // len(piece) + 1))[:length]
    assert len(made) == total, "not as long as it says"
    return bytes(made)


def number(block: bytes) -> tuple[int, int]:
    """The length at a block's beginning, seven bits at a time; and where the rest begins."""
    value = at = 0
    while True:
        value |= (block[at] & 127) << 7 * at
        at += 1
        if block[at - 1] < 128:
            return value, at
