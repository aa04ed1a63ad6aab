"""Prove to each other that both know the code's secret, bound to everything that was said. Pure; standard library only."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final, Literal

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
