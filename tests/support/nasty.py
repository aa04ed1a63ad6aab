"""Nasty values for fuzzers: numbers, texts, nestings, JSON and paths that break careless readers; all drawn from one seeded generator."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

LONE: Final = "\ud800"
NUMBERS: Final[Sequence[Any]] = (
    0, -1, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, -1e308, 1e-320, float("inf"), float("-inf"),
    float("nan"), True, False, None,
)  # fmt: skip
TEXTS: Final = (
    "", " ", "0", "-1", "1e999", "nan", "inf", "٣", "²", "9" * 5000, "a" * 300, "a" * 70_000, "\x00", "a\x00b", "\r\nX-Evil: 1", "\x1b[2J", "\x7f", "\u202e",
    LONE, f"a{LONE}b", "\udfff", "\U0001f600", "../../etc/passwd", "..\\..", "/dev/zero", "~nobody", "file:///etc/passwd", "C:\\con", "%", "{0}", "{name}",
    "<lora:" * 2000, "(" * 5000, "[S1]" * 2000, " " * 5000, "," * 5000, "\n" * 5000, "[S3] Hi.", "(pause 1" + " " * 5000 + "x)", "(pause 99999s)",
    "data:image/png;base64,", "AAAA", "iVBORw0KGgo=", "x" * 100 + ".png", "true", "null", "[]", "{}", "None", "a'b", 'a"b', "a;b", "512x", "x", "1e9x1e9",
)  # fmt: skip
RAW: Final = (
    b"", b"null", b"[]", b"0", b'"a"', b"{", b"[" * 100_000, b'{"a":' * 50_000, b'{"a":1e999}', b'{"a":Infinity}', b'{"a":NaN}', b"\xff\xfe\x00", b"\x00",
    '{"a":1}'.encode("utf-16"), b'{"a":"\\ud800"}', b'{"a":"\xff"}', b"9" * 6000, b'{"a":' + b"9" * 6000 + b"}", b"{}" * 3, b"a=1&b=2", b"\xef\xbb\xbf{}",
    b'{"a":1,"a":2}', b"[" * 500 + b"]" * 500, b"[[],"* 3000, b"--x\r\n\r\n--x--",
)  # fmt: skip
"""These bodies are no object, or hardly one."""


def draw_value(random: random.Random, depth: int = 3) -> Any:
    kind = random.randrange(10)
    if kind < 4:
        return random.choice(NUMBERS)
    if kind < 8 or not depth:
        return random.choice(TEXTS)
    if kind == 8:
        return [draw_value(random, depth - 1) for _ in range(random.randrange(4))]
    return {str(draw_key(random)): draw_value(random, depth - 1) for _ in range(random.randrange(4))}


def draw_key(random: random.Random) -> str:
    return random.choice((*TEXTS[:12], "path", "__type__", "meta", "session_hash", "data", "url", "_type", "__class__"))


def nest(value: Any, deep: int, by: str = "list") -> Any:
    for _ in range(deep):
        value = [value] if by == "list" else {"a": value}
    return value


def break_object(random: random.Random, given: dict[str, Any], names: Sequence[str]) -> bytes:
    """Return JSON in which a few values of a good request are nasty, or something that is hardly JSON."""
    if random.random() < 0.12:
        return random.choice(RAW)
    given = dict(given)
    for _ in range(random.randrange(4)):
        name = random.choice((*given, *names)) if random.random() < 0.95 and (given or names) else draw_key(random)
        given[name] = nest(draw_value(random), random.choice((50, 300, 800))) if random.random() < 0.05 else draw_value(random)
    if random.random() < 0.1 and given:
        given.pop(random.choice(list(given)))
    plain = json.dumps(given, ensure_ascii=random.random() < 0.9)
    encoding = "utf-8" if random.random() < 0.95 else random.choice(("utf-16", "latin-1", "utf-32"))
    return plain.encode(encoding, "surrogatepass" if encoding.startswith("utf") else "replace")


def break_text(random: random.Random, good: str) -> str:
    """Return a good text, a nasty one, or a good one with a nasty piece inside."""
    kind = random.randrange(4)
    if kind == 0:
        return good
    if kind == 1:
        return str(random.choice(NUMBERS))[:6000]
    nasty = random.choice(TEXTS)
    at = random.randrange(len(good) + 1)
    return nasty if kind == 2 else good[:at] + nasty + good[at:]


def make_chunk(name: bytes, body: bytes) -> bytes:
    """Make one of the pieces of which a PNG consists, its checksum right."""
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
