"""Check Ed25519 signatures (RFC 8032) with the standard library alone: the launcher runs before there is an environment.

Only public values pass through here, so it need not take the same time for all of them. Signing is the release script's.
"""

from __future__ import annotations

import hashlib
from typing import Final

P: Final = 2**255 - 19
"""All arithmetic is done modulo this prime."""
ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""The group that the base point makes has this order."""
D: Final = -121665 * pow(121666, -1, P) % P
ROOT_OF_MINUS_ONE: Final = pow(2, (P - 1) // 4, P)
KEY_BYTES, SIGNATURE_BYTES = 32, 64

Point = tuple[int, int, int, int]
"""X, Y, Z and T stand for a point: x = X/Z, y = Y/Z, xy = T/Z."""


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether the key's owner signed the message. Whatever is malformed is no signature."""
    if len(public_key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    key, nonce = _decode(public_key), _decode(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or nonce is None or scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    return _is_same(_multiply(scalar, BASE), _add(nonce, _multiply(challenge, key)))


def _decode(encoded: bytes) -> Point | None:
    """Return the point of 32 bytes: y, and in the top bit whether x is odd; None where no point has that y."""
    number = int.from_bytes(encoded, "little")
    odd, y = number >> 255, number & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT_OF_MINUS_ONE % P
    if x * x % P != square or (not x and odd):
        return None
    x = P - x if x & 1 != odd else x
    return x, y, 1, x * y % P


def _add(one: Point, other: Point) -> Point:
    """Add two points of the twisted Edwards curve; complete, so doubling too."""
    (x1, y1, z1, t1), (x2, y2, z2, t2) = one, other
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * D * t1 * t2 % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _multiply(scalar: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point, scalar = _add(point, point), scalar >> 1
    return total


def _is_same(one: Point, other: Point) -> bool:
    return (one[0] * other[2] - other[0] * one[2]) % P == 0 == (one[1] * other[2] - other[1] * one[2]) % P


_BASE = _decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
assert _BASE is not None
BASE: Final = _BASE
