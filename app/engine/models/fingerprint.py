"""Fingerprints of models and files: the same on every machine that has the same content, whatever its name or folder. Loads nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from app.base.regular_file import open_regular
from app.engine.models.model_folder import holds

WHOLE_BYTES: Final = 16 << 20
"""Up to here a file is read whole: pictures, settings."""
BLOCK_BYTES: Final = 1 << 16
BLOCKS: Final = 64
"""So many blocks of a larger file are read, evenly spread: its beginning, with names and shapes, and its end are among them. Other weights
differ in all."""
_KINDS: Final = ("*.safetensors", "*.json")


def fingerprint(path: Path) -> str:
    """Return the fingerprint of a file, or of a folder's weights and settings; raise OSError for what cannot be read."""
    digest = hashlib.sha256()
    for name, file in _list_files(path):
        with open_regular(file) as opened:
            size = os.fstat(opened.fileno()).st_size
            digest.update(f"{name} {size}\n".encode())
            if size <= WHOLE_BYTES:
                digest.update(opened.read())
                continue
            for block in range(BLOCKS):
                opened.seek(block * (size - BLOCK_BYTES) // (BLOCKS - 1))
                digest.update(opened.read(BLOCK_BYTES))
    return digest.hexdigest()


def hash_whole(path: Path) -> str:
    """Hash all of a file; raise OSError for what cannot be read."""
    with open_regular(path) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _list_files(path: Path) -> list[tuple[str, Path]]:
    if not path.is_dir():
        return [("", path)]
    found = {each for kind in _KINDS for depth in ("", "*/") for each in path.glob(f"{depth}{kind}") if holds(path, each)}
    return sorted((each.relative_to(path).as_posix(), each) for each in found if not each.name.startswith("."))
