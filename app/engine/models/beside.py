"""Text encoders and VAEs that lie beside a denoiser's file as other programs keep them: found by their headers, each of the one kind that its family takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from app.base.trouble import Trouble
from app.engine.models.families.family import Encoder
from app.engine.models.file_facts import FileFacts, read_facts
from app.engine.models.picture_families import FAMILIES
from app.engine.models.safetensors import ENDINGS

_FOLDERS: Final = ("text_encoders", "text_encoder", "clip", "CLIP", "TextEncoders", "Text-encoder", "vae", "VAE")
_WORDS_MOST: Final = 300_000
_T5_WORDS_MOST: Final = 100_000
"""UMT5, which is for other models, has more."""
_BEST: Final = ("bfloat16", "float16", "float32", "fp8")
FILES_MOST: Final = 200
"""At most so many files of one folder are looked at."""


def find_beside(path: Path, facts: FileFacts) -> dict[str, Path]:
    """Return a file for each part that a denoiser's file lacks and that lies beside it."""
    files = list(_list_files(path)) if facts.lacks else []
    family = FAMILIES[facts.family]
    found: dict[str, Path] = {}
    for encoder in family.encoders:
        fitting = [(told, file) for file, told in files if fits(told, encoder)]
        if encoder.part in facts.lacks and fitting:
            found[encoder.part] = min(fitting, key=lambda each: (_BEST.index(each[0].precision), each[1].name))[1]
    for file, told in files:
        if "vae" in facts.lacks and told.what == "vae" and file.stem == family.vae_file:
            found.setdefault("vae", file)
    return found


def fits(facts: FileFacts, encoder: Encoder) -> bool:
    most = _T5_WORDS_MOST if encoder.kind == "T5" else _WORDS_MOST
    plain = facts.what == "encoder" and not facts.packing and not facts.gguf and facts.precision in _BEST
    return plain and facts.other == encoder.kind != "" and facts.table[1:] == (encoder.width,) and facts.table[0] <= most


def list_neighbours(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files that may hold what a model's file lacks, with their state; opens none."""
    for parent in path.parents[:3]:
        for name in _FOLDERS:
            with suppress(OSError):
                files = sorted(each for ending in ENDINGS for each in (parent / name).glob(f"*{ending}"))
                for file in files[:FILES_MOST]:
                    yield file, file.stat()


def _list_files(path: Path) -> Iterator[tuple[Path, FileFacts]]:
    for file, state in list_neighbours(path):
        with suppress(OSError, Trouble):
            yield file, _read(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _read(file: Path, size_bytes: int, changed_ns: int) -> FileFacts:
    return read_facts(file)
