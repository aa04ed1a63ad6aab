"""A file that moves or goes between the answer's start and its end: it is sent whole, in ranges too, and is let go afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.ui.routes import HeldFile, send_file

BYTES = bytes(range(256)) * 1024


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "picture-0.png"
    file.write_bytes(BYTES)
    return file


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=1000-200000"}, {"Range": "bytes=0-9,500-509"}])
@pytest.mark.parametrize("moved", [True, False])
def test_what_moved_or_went_after_the_answer_began_is_sent_whole(file: Path, headers: dict[str, str], moved: bool) -> None:
    still = TestClient(send_file(file)).get("/", headers=headers)
    answer = send_file(file)
    file.rename(file.with_name("elsewhere.png")) if moved else file.unlink()
    got = TestClient(answer).get("/", headers=headers)
    if "," in headers.get("Range", ""):  # each answer draws its own boundary
        assert (got.status_code, len(got.content)) == (206, len(still.content)) and BYTES[500:510] in got.content
    else:
        assert (got.status_code, got.content, got.headers) == (still.status_code, still.content, still.headers)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_file_is_let_go_when_it_is_sent(file: Path, method: str) -> None:
    answer = send_file(file)
    assert TestClient(answer).request(method, "/").headers["content-length"] == str(len(BYTES))
    assert isinstance(answer, HeldFile) and answer._held.closed


def test_what_is_gone_before_is_not_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda path: True)  # it goes between the look and the opening
    file.unlink()
    assert send_file(file).status_code == 404
