"""Short JSON messages over one connection, each with its length, bounded in size and time; and the proofs that both sides know the code's
secret, bound to everything that was said."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
from collections.abc import Iterable
from typing import Any, Final, Literal

MESSAGE_BYTES: Final = 16 << 10
"""A request to sign takes half a KiB, a certificate one."""
PATIENCE_S: Final = 15.0
"""All of one conversation may take so long."""


class Broken(Exception):
    """The other side closed the connection, was too slow, or said what is no message."""


class Channel:
    def __init__(self, connection: socket.socket, ends_s: float) -> None:
        """`ends_s`: all must be said by then, by the monotonic clock."""
        self._connection, self.ends_s = connection, ends_s
        self.said: list[bytes] = []
        """It keeps every message so far, of both sides, as it travelled."""

    def send(self, message: dict[str, Any]) -> None:
        content = json.dumps(message, sort_keys=True).encode()
        try:
            self._connection.settimeout(self._remaining_s())
            self._connection.sendall(len(content).to_bytes(4, "big") + content)
        except OSError as fault:
            raise Broken(str(fault)) from fault
        self.said.append(content)

    def receive(self) -> dict[str, Any]:
        length = int.from_bytes(self._read(4), "big")
        if length > MESSAGE_BYTES:
            raise Broken(f"a message of {length} bytes")
        content = self._read(length)
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as fault:
            raise Broken(str(fault)) from fault
        if not isinstance(message, dict):
            raise Broken("a message that is no object")
        self.said.append(content)
        return message

    def _read(self, length: int) -> bytes:
        content = b""
        while len(content) < length:
            try:
                self._connection.settimeout(self._remaining_s())
                piece = self._connection.recv(length - len(content))
            except OSError as fault:
                raise Broken(str(fault)) from fault
            if not piece:
                raise Broken("the connection was closed")
            content += piece
        return content

    def _remaining_s(self) -> float:
        left_s = self.ends_s - time.monotonic()
        if left_s <= 0:
            raise Broken("the other side was too slow")
        return left_s


Side = Literal["helper", "main"]
NONCE_BYTES: Final = 32


def digest_transcript(pieces: Iterable[bytes]) -> bytes:
    """Digest what both sides saw, each piece with its length, so that no two conversations have the same one."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(len(piece).to_bytes(8, "big"))
        digest.update(piece)
    return digest.digest()


def prove(key: bytes, side: Side, transcript: bytes) -> str:
    """The side is part of it, so that a proof sent back is none."""
    return hmac.new(key, side.encode() + b"\0" + transcript, hashlib.sha256).hexdigest()


def is_proof(key: bytes, side: Side, transcript: bytes, given: object) -> bool:
    return isinstance(given, str) and hmac.compare_digest(prove(key, side, transcript).encode(), given.encode())
