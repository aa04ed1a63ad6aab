"""A model's files on their way: gone on with after a break, and dropped where they are not what they were said to be."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

model_fetch = pytest.importorskip("app.machines.cluster.helper_process", reason="the extra machines is not installed")
from tests.support.waiting import until  # noqa: E402

DATA = b"what a model is made of"
SHA256 = hashlib.sha256(DATA).hexdigest()


class Place:
    def __init__(self, sent: bytes, folder: Path, breaks_at: int = 1 << 30) -> None:
        self.told: list[dict[str, Any]] = []
        self.offsets: list[int] = []
        self._sent, self._breaks_at = sent, breaks_at
        self.fetch = model_fetch.ModelFetch(self, self._ask)
        self._folder = folder

    def tell(self, op: str, **values: Any) -> None:
        self.told.append({"op": op, **values})

    def _ask(self, model: str, sha256: str, offset: int) -> dict[str, Any]:
        assert (model, sha256) == ("files:x", SHA256)
        self.offsets.append(offset)
        if offset >= self._breaks_at:
            raise ConnectionError("unplugged")
        return {"data": self._sent[offset : offset + 5]}

    def run(self, size: int = len(DATA)) -> str:
        before = len(self.told)
        self.fetch.start({"model": "files:x", "files": {SHA256: size}, "folder": str(self._folder)})
        until(lambda: any(each["op"] != "model-step" for each in self.told[before:]))
        return str(self.told[-1]["op"])


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    assert Place(DATA, tmp_path, breaks_at=10).run() == "model-lost"
    assert not (tmp_path / SHA256).exists()
    again = Place(DATA, tmp_path)
    assert again.run() == "model-here" and again.offsets[0] == 10
    assert (tmp_path / SHA256).read_bytes() == DATA and [each.name for each in tmp_path.iterdir()] == [SHA256]


@pytest.mark.parametrize(
    ("sent", "size"), [(b"x" * len(DATA), len(DATA)), (DATA + b"more", len(DATA) + 4), (DATA * 9, 7), (DATA[:9], len(DATA))]
)
def test_other_bytes_are_dropped(sent: bytes, size: int, tmp_path: Path) -> None:
    assert Place(sent, tmp_path).run(size) == "model-lost"
    assert list(tmp_path.iterdir()) == []


def test_it_is_left_within_a_block(tmp_path: Path) -> None:
    place = Place(DATA, tmp_path)
    asked = place._ask

    def ask(**values: Any) -> dict[str, Any]:
        place.fetch.leave()
        return asked(**values)

    place.fetch._ask = ask
    place.fetch.start({"model": "files:x", "files": {SHA256: len(DATA)}, "folder": str(tmp_path)})
    until(lambda: place.offsets == [0] and not place.fetch._turn.locked())
    assert place.offsets == [0] and place.told == []
