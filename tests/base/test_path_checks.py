"""Path checks: none fails, whatever the name, and while somebody renames: no look may count a download's bytes twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base import path_checks
from app.base.paths import Home
from app.engine.models import on_disk
from app.engine.models.on_disk import repo_folder
from tests.support.downloaded import MODEL, REPO

ETAG, BYTES, LOOKS = "e" * 40, 1000, 500


@pytest.fixture
def coming_and_going(tmp_path: Path) -> Iterator[Home]:
    """A part that becomes whole and a part again, as fast as the disk lets it; and a folder beside it that comes and goes."""
    home = Home(tmp_path, tmp_path / "models")
    blob = repo_folder(home.models, REPO) / "blobs" / ETAG
    part, beside = on_disk.partial_path(blob), blob.parent.parent / "snapshots" / "one"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * BYTES)
    enough = threading.Event()

    def rename() -> None:
        while not enough.is_set():
            part.replace(blob)
            beside.mkdir(parents=True)
            blob.replace(part)
            beside.rmdir()

    thread = threading.Thread(target=rename)
    thread.start()
    yield home
    enough.set()
    thread.join()


def test_what_is_on_the_disk_can_be_asked_while_a_download_ends(coming_and_going: Home) -> None:
    seen = {on_disk.count_bytes_here(coming_and_going.models, REPO, ETAG) for _ in range(LOOKS)}
    assert seen <= {0, BYTES} and BYTES in seen


def test_what_a_model_takes_can_be_asked_while_a_download_ends(coming_and_going: Home) -> None:
    seen = {on_disk.measure_bytes(coming_and_going, MODEL) for _ in range(LOOKS)}
    assert seen <= {0, BYTES} and BYTES in seen


@pytest.mark.parametrize("name", ["x" * 300, "nul\0", "file/below"])
def test_a_name_that_cannot_be_a_file_is_a_missing_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    assert not path_checks.is_file(path) and path_checks.size_bytes(path) == 0 and path_checks.find_path(str(path)) is None
