"""Tiny Phonon and Pocket TTS in the hub's cache, as the catalog has them: fixtures for a session."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from app.base.paths import Home
from app.engine.models.catalog import BY_ID
from app.engine.session.session import Session
from tests.support.hub import cached
from tests.support.tiny_pockets import save_as_on_the_hub, save_brought, save_frames


def put(home: Home, repo: str, folder: Path) -> Path:
    """Put a folder into the hub's cache, its files among the blobs; return its snapshot."""
    snapshot = cached(home.models, repo)
    blobs = snapshot.parents[1] / "blobs"
    blobs.mkdir(exist_ok=True)
    for file in (each for each in folder.rglob("*") if each.is_file()):
        blob, link = blobs / hashlib.sha256(file.read_bytes()).hexdigest(), snapshot / file.relative_to(folder)
        shutil.copyfile(file, blob)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    return snapshot


def put_phonon(home: Home, folder: Path) -> Path:
    """Put Phonon into a home; return where its voices are there. `folder`: to make it in."""
    made = save_as_on_the_hub(folder / "phonon", "phonon", folder / "mimi")
    values = json.loads((made / "config.json").read_text("utf-8")) | {"embeddings_ext": ["ext@1"], "languages": ["en"]}
    (made / "config.json").write_text(json.dumps(values), "utf-8")
    sources = BY_ID["phonon-31m"].companions
    put(home, "gradium/phonon-31m-en", made)
    put(home, sources[0].source.repo, folder / "mimi")
    save_frames(home.models / "outside.safetensors", 9)
    return put(home, sources[1].source.repo, save_brought(folder / "voices"))


def put_pocket(home: Home, folder: Path) -> None:
    put(home, "eustlb/pocket-tts", save_as_on_the_hub(folder / "pocket", "pocket", folder / "codec"))
    put(home, "eustlb/pocket-tts-audio-tokenizer", folder / "codec")


@pytest.fixture
def phonon(session: Session, tmp_path: Path) -> Path:
    return put_phonon(session.home, tmp_path)


@pytest.fixture
def pocket(session: Session, tmp_path: Path) -> str:
    put_pocket(session.home, tmp_path)
    return "pocket-tts"
