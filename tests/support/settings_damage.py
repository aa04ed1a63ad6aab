"""Damages of the settings file: the whole file, and one wrong value each, with where it lies."""

from __future__ import annotations

import copy
from typing import Any, Final

GOOD: Final[dict[str, Any]] = {
    "choice": {"chunk": 512, "dtype": "float32", "kernels": ["math"]}, "visitors": {"letters": 900, "share": 0.25}, "models": [],
    "speak": {"model": "", "speed": 1.5, "format": "flac", "own": True, "guidance": 3.0, "temperature": 1.2, "carry": False},
    "paint": {"model": "", "width": 128, "height": None, "steps": 4, "guidance": 5.0, "scheduler": "", "batch": 2, "strength": 0.5},
    "presets": {"speak": {"evening": {"speed": 0.9}}, "paint": {"small": {"steps": 3}}},
    "drafts": {"speak-text": "[S1] A draft.", "paint-prompt": "a draft"}, "greeted": True,
}  # fmt: skip

WHOLE: Final[tuple[bytes, ...]] = (
    b"", b"{", b"[1, 2]", b"null", b'"text"', b"\xff\xfe\x00", b"{" * 9, b'{"a":' * 100_000, b"[" * 100_000, bytes(300), b'{"speak": {"speed": 1.5}', b"12"
)  # fmt: skip

WRONG: Final[tuple[tuple[tuple[str, ...], Any], ...]] = (
    (("choice",), "fast"), (("choice",), [1]), (("choice", "dtype"), 7), (("choice", "dtype"), ["float32"]), (("choice", "kernels"), {"a": 1}),
    (("choice", "kernels"), ["math", 3]), (("choice", "offload"), "everything"), (("choice", "gqa"), {}), (("choice", "chunk"), [3]),
    (("visitors",), [1]), (("visitors",), None), (("visitors", "letters"), "many"), (("visitors", "share"), {}), (("models",), "one"),
    (("models",), {"a": 1}), (("models",), [3, None]), (("speak",), 5), (("speak",), None), (("speak", "speed"), "fast"), (("speak", "speed"), 1e9),
    (("speak", "format"), "exe"), (("speak", "own"), "yes"), (("speak", "guidance"), None), (("speak", "model"), 5), (("speak", "model"), ["a"]),
    (("paint",), []), (("paint", "width"), "wide"), (("paint", "steps"), -4), (("paint", "batch"), {}), (("paint", "scheduler"), 3),
    (("paint", "strength"), "\ud800"), (("paint", "model"), {}), (("presets",), [1]), (("presets", "speak"), "x"), (("presets", "paint", "small"), 4),
    (("presets", "speak", "evening", "speed"), []), (("drafts",), "x"), (("drafts", "speak-text"), 5), (("drafts", "paint-prompt"), "\udfff"),
    (("greeted",), "maybe"),
)  # fmt: skip
"""Each tells where, and what stands there in place of a right value."""


def damage(where: tuple[str, ...], wrong: Any) -> dict[str, Any]:
    values = copy.deepcopy(GOOD)
    inner = values
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = wrong
    return values


def without(where: tuple[str, ...]) -> dict[str, Any]:
    """The good settings without this one."""
    values = damage(where, None)
    inner = values
    for key in where[:-1]:
        inner = inner[key]
    del inner[where[-1]]
    return values
