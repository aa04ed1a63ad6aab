"""Parse JSON from elsewhere within bounds of size, depth and count, which are checked by linear scans before anything is built."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.regular_file import open_regular
from app.base.strict_json import parse_strictly

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
_BRACKETS: Final = bytes(range(256)).translate(None, b"[]{}")
_TO_SQUARE: Final = bytes.maketrans(b"{}", b"[]")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large JSON may be. Parsing what fits the defaults takes less than a tenth of a second."""

    most_bytes: int = 2 << 20
    depth: int = 64
    values: int = 20_000
    """Objects, lists and their members count together."""
    unique: bool = False
    """True: a name may stand only once in an object, since of two, readers do not all take the same."""
    infinite: bool = False
    """True: Infinity counts as a value."""


def parse_json(data: bytes | str, bounds: Bounds = Bounds()) -> Any:
    """Return the value; raise a ValueError for what is too large, no JSON in UTF-8, not finite or not writable again."""
    raw = data.encode("utf-8", "strict") if isinstance(data, str) else data
    if len(raw) > bounds.most_bytes:
        raise ValueError(f"more than {bounds.most_bytes} bytes")
    _check_shape(raw, bounds)
    value = parse_strictly(raw.decode("utf-8-sig"), _require_unique if bounds.unique else None, bounds.infinite)
    if b"\\u" in raw:  # the only way to half a surrogate pair, which cannot be written to a file or an answer
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _require_unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a name that stands twice in one object")
    return found


def _check_shape(raw: bytes, bounds: Bounds) -> None:
    """Strings are removed; of the rest only brackets and commas count. Each pass over the brackets removes one level of depth."""
    pieces, end = [], 0
    for index, string in enumerate(_STRING.finditer(raw)):
        if index > 2 * bounds.values:
            raise ValueError(f"more than {bounds.values} values")
        pieces.append(raw[end : string.start()])
        end = string.end()
    bare = b"".join((*pieces, raw[end:]))
    brackets = bare.translate(_TO_SQUARE, _BRACKETS)
    if bare.count(b",") + len(brackets) // 2 > bounds.values:
        raise ValueError(f"more than {bounds.values} values")
    for _ in range(bounds.depth):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise ValueError(f"brackets that do not match, or nested deeper than {bounds.depth}")


def read_json(path: Path, bounds: Bounds = Bounds()) -> Any:
    """Parse a file; one that is too large is not read to its end, and what is no regular file is not opened."""
    with open_regular(path) as file:
        return parse_json(file.read(bounds.most_bytes + 1), bounds)
