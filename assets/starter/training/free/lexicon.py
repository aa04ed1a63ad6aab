"""What flite's lexicon and rules say for each word of a list: the pronunciations that the starter's letter-to-sound table is learned from."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from .phones import sign

COMMON = Path("/usr/share/dict/american-english")  # Debian's wamerican
RARE = Path("/usr/share/dict/web2")  # Debian's miscfiles


def pronouncer() -> Callable[[str], str]:
    """Signs of one word, by libflite. OSError where it is not installed."""
    pointer = ctypes.c_void_p
    flite = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL("libflite_usenglish.so.1", mode=ctypes.RTLD_GLOBAL)
    words = ctypes.CDLL("libflite_cmulex.so.1", mode=ctypes.RTLD_GLOBAL)
    for library, name, kinds, result in (
        (words, "cmu_lex_init", (), pointer), (flite, "lex_lookup", (pointer, ctypes.c_char_p, ctypes.c_char_p, pointer), pointer),
        (flite, "val_car", (pointer,), pointer), (flite, "val_cdr", (pointer,), pointer), (flite, "val_string", (pointer,), ctypes.c_char_p),
        (flite, "delete_val", (pointer,), None),
    ):  # fmt: skip
        function = getattr(library, name)
        function.argtypes, function.restype = list(kinds), result
    flite.flite_init()
    lexicon = words.cmu_lex_init()

    def said(word: str) -> str:
        rest = first = flite.lex_lookup(lexicon, word.encode("ascii"), None, None)
        signs = ""
        while rest:
            phone = flite.val_string(flite.val_car(rest)).decode()
            signs += sign(phone.rstrip("012"), phone.endswith("1"))
            rest = flite.val_cdr(rest)
        flite.delete_val(first)
        return signs

    return said


def words(path: Path) -> list[str]:
    """The list's words in lower case, without possessives and accents."""
    found = {line.strip().lower() for line in path.read_text("utf-8").splitlines()}
    return sorted(word for word in found if word.isascii() and word.replace("'", "").isalpha() and not word.endswith("'s"))
