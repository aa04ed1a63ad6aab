"""A hub on loopback that has a Phonon with random weights, in its three repositories: the first natural voice that the greeting offers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from app.engine.models.catalog import BY_ID
from tests.support.hub import Hub
from tests.support.tiny_pockets import save_as_on_the_hub, save_brought

PHONON: Final = BY_ID["phonon-31m"]


def read(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def make_hub(folder: Path) -> Hub:
    made = save_as_on_the_hub(folder / "phonon", "phonon", folder / "mimi")
    codec, voices = (each.source.repo for each in PHONON.companions)
    assert PHONON.source is not None
    return Hub({PHONON.source.repo: read(made), codec: read(folder / "mimi"), voices: read(save_brought(folder / "voices"))})
