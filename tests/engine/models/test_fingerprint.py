"""Fingerprints: the same wherever the content lies, another one for any other content."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.engine.models import fingerprint as prints
from app.engine.models.fingerprint import fingerprint


def make(folder: Path) -> Path:
    (folder / "codec").mkdir(parents=True)
    for name in ("model.safetensors", "codec/model.safetensors", "config.json"):
        (folder / name).write_bytes(name.encode() * 1000)
    return folder


def test_it_is_of_the_content_alone(tmp_path: Path) -> None:
    first = make(tmp_path / "one")
    known = fingerprint(first)
    (first / "README.md").write_text("no part of the model")
    (first / ".hidden.json").write_text("nor this")
    assert fingerprint(first) == known == fingerprint(Path(shutil.copytree(first, tmp_path / "other name")))
    assert fingerprint(first / "config.json") == fingerprint(Path(shutil.copy(first / "config.json", tmp_path / "x.json"))) != known


@pytest.mark.parametrize("name", ["model.safetensors", "codec/model.safetensors", "config.json"])
def test_any_other_file_makes_another_one(name: str, tmp_path: Path) -> None:
    known, changed = fingerprint(make(tmp_path / "one")), make(tmp_path / "two")
    (changed / name).write_bytes((changed / name).read_bytes()[:-1] + b"!")
    assert fingerprint(changed) != known
    (changed / name).unlink()
    assert fingerprint(changed) != known
    (changed / name).with_name("another.json").write_bytes(b"x")
    assert fingerprint(changed) != known


def test_a_large_file_is_read_in_pieces_from_beginning_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prints, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(prints, "BLOCK_BYTES", 10)
    file = tmp_path / "model.safetensors"
    content = bytearray(b"a" * 10_000)
    file.write_bytes(content)
    known = fingerprint(file)
    for place in (0, 9_999):
        file.write_bytes(content[:place] + b"b" + content[place + 1 :])
        assert fingerprint(file) != known
    file.write_bytes(b"b" * 10_000)
    assert fingerprint(file) != known
    file.write_bytes(content + b"a")
    assert fingerprint(file) != known
