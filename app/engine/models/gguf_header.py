"""Judge the header of a GGUF file before a library reads it: each count, length, size and offset has a least and a most.

The library trusts them all: it would walk over 2^60 entries, or read a tensor from beyond the end of the file."""

from __future__ import annotations

import math
import os
import struct
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

from app.base.regular_file import open_regular
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.config_facts import Fact, StrangeFactError, judge_fact, refuse_fact
from app.engine.models.safetensors import AXES_MOST, Entry

HEADER_MOST: Final = 16 << 20
VALUES_MOST: Final = 20_000
"""All lists of a header together may hold so many values. Denoisers have some thousands, the original shapes of their tensors; a language
model's words would be more."""
FACTS: Final = {
    "version": Fact(int, 2, 3), "number of tensors": Fact(int, 1, 20_000), "number of settings": Fact(int, 0, 10_000),
    "length of a name": Fact(int, 1, 1024), "length of a text": Fact(int, 0, 1 << 20), "length of a list": Fact(int, 0, VALUES_MOST),
    "length of its header": Fact(int, 0, HEADER_MOST), "alignment": Fact(int, 1, 1 << 16), "number of axes": Fact(int, 0, AXES_MOST),
    "length of an axis": Fact(int, 1, 1 << 40),
}  # fmt: skip
"""Every number that is no setting of a model has these bounds."""
BLOCKS: Final[dict[int, tuple[int, int]]] = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 40), 10: (256, 84), 11: (256, 110),
    12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
    34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36), 41: (128, 18),
}  # fmt: skip
"""Tensors of the type with this number have blocks of so many values and so many bytes."""
TYPES: Final = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K",
    15: "Q8_K", 20: "IQ4_NL", 23: "IQ4_XS", 30: "BF16",
}  # fmt: skip
"""Only the usual types have names here."""
_TEXT: Final = 8
_LIST: Final = 9
_WHOLE: Final = 4
"""Types of settings have these numbers: a text, a list, 32 bits without a sign."""
_PLAIN: Final = {0: 1, 1: 1, 2: 2, 3: 2, _WHOLE: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""A setting that is a single value takes so many bytes."""
_USUAL_ALIGNMENT: Final = 32


def read_gguf(path: Path) -> dict[str, Entry]:
    """Return the names, types and shapes in a .gguf file; raise a Trouble that names the file and the number, for the first that no such file has."""
    with open_regular(path) as file:
        try:
            return _Header(file).judge()
        except StrangeFactError as strange:
            raise refuse_fact(path.parent, path.name, strange.field, strange.value, cure="models") from strange
        except struct.error as fault:
            raise Trouble(
                say(
                    "detect.not-gguf",
                    "{path} is not a valid .gguf file, or the download is incomplete. Download it again, or choose another file.",
                    path=str(path),
                ),
                cure="models",
            ) from fault


class _Header:
    """Reads on from number to number; none is used before it was judged."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._at, self._listed, self._order = file, 0, 0, "<"

    def judge(self) -> dict[str, Entry]:
        if self._read(4) != b"GGUF":
            raise struct.error
        version = self._read(4)
        if version[:2] == b"\0\0":  # from a machine of the other byte order
            self._order = ">"
        judge_fact("version", struct.unpack(f"{self._order}I", version)[0], FACTS["version"])
        tensors, settings = self._judged("Q", "number of tensors"), self._judged("Q", "number of settings")
        alignment = _USUAL_ALIGNMENT
        for _ in range(settings):
            name, kind = self._text("length of a name"), self._number("I")
            if name == b"general.alignment" and kind == _WHOLE:
                alignment = self._judged("I", "alignment")
            else:
                self._skip(kind)
        return self._judge_tensors(tensors, alignment)

    def _judge_tensors(self, count: int, alignment: int) -> dict[str, Entry]:
        spans, entries = [], dict[str, Entry]()
        for _ in range(count):
            name = self._text("length of a name").decode("utf-8", "replace")
            axes = [self._judged("Q", "length of an axis") for _ in range(self._judged("I", "number of axes"))]
            kind, begin = self._number("I"), self._number("Q")
            if kind not in BLOCKS:
                raise StrangeFactError("type of a tensor", kind)
            values, size_bytes = BLOCKS[kind]
            if math.prod(axes[:1]) % values:
                raise StrangeFactError("length of an axis", axes[0])
            entries[name] = Entry(TYPES.get(kind, f"type {kind}"), tuple(reversed(axes)))
            spans.append((begin, begin + math.prod(axes) // values * size_bytes))
        data_bytes = os.fstat(self._file.fileno()).st_size - -(-self._at // alignment) * alignment
        spans.sort()
        if spans[-1][1] > data_bytes:
            raise StrangeFactError("end of a tensor", spans[-1][1])
        for (_, end), (begin, _) in pairwise(spans):
            if begin < end:  # on top of each other
                raise StrangeFactError("beginning of a tensor", begin)
        if len(entries) < count:
            raise StrangeFactError("number of tensors", count)
        return entries

    def _skip(self, kind: int) -> None:
        """Pass over a setting: no number of it decides what is read next."""
        if kind in _PLAIN:
            self._read(_PLAIN[kind])
        elif kind == _TEXT:
            self._text("length of a text")
        elif kind == _LIST:
            inner, count = self._number("I"), self._judged("Q", "length of a list")
            self._listed += count
            judge_fact("length of a list", self._listed, FACTS["length of a list"])
            if inner in _PLAIN:
                self._read(_PLAIN[inner] * count)
            elif inner == _TEXT:
                for _ in range(count):
                    self._text("length of a text")
            else:  # lists in lists as well, which no model needs
                raise StrangeFactError("type of a list", inner)
        else:
            raise StrangeFactError("type of a setting", kind)

    def _judged(self, form: str, field: str) -> int:
        value = self._number(form)
        judge_fact(field, value, FACTS[field])
        return value

    def _number(self, form: str) -> int:
        value: int = struct.unpack(self._order + form, self._read(struct.calcsize("<" + form)))[0]
        return value

    def _text(self, field: str) -> bytes:
        return self._read(self._judged("Q", field))

    def _read(self, size_bytes: int) -> bytes:
        self._at += size_bytes
        judge_fact("length of its header", self._at, FACTS["length of its header"])
        found = self._file.read(size_bytes)
        if len(found) < size_bytes:
            raise struct.error
        return found
