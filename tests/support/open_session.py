"""A session of the engine in a home of its own, which ends with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.paths import home
from app.engine.session.session import Session


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(home(tmp_path / "home").create())
    yield session
    session.free()
