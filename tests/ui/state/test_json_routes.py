"""A request that could not write is told so, by what failed: no room, or no right to write. Any other fault stays one."""

from __future__ import annotations

import errno
import json
import sqlite3
from typing import Any

import pytest
from starlette.requests import Request

from app.ui.state.json_routes import answer_not_stored
from app.ui.state.person import KEY, OWNER


def asked(method: str) -> Request:
    return Request({"type": "http", "method": method, "path": "/", "headers": [], "query_string": b"", KEY: OWNER})


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("POST", OSError(errno.ENOSPC, "why")),
        ("GET", OSError(errno.EROFS, "why")),
        ("POST", PermissionError(errno.EACCES, "why", "/home/somebody/list.json")),
    ],
    ids=["no room", "read-only", "no right"],
)
def test_what_could_not_be_written_is_told(method: str, fault: OSError) -> None:
    answer = answer_not_stored(asked(method), fault)
    told: dict[str, Any] = json.loads(bytes(answer.body))
    assert answer.status_code == 507 and told["trouble"].startswith("This could not be saved (why).")


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("GET", PermissionError(errno.EACCES, "why")),
        ("POST", OSError(errno.EIO, "why")),
        ("POST", FileNotFoundError(errno.ENOENT, "why")),
        ("POST", sqlite3.IntegrityError("why")),
    ],
    ids=["not to be read", "broken", "gone", "of the database"],
)
def test_any_other_fault_is_raised_again(method: str, fault: Exception) -> None:
    with pytest.raises(type(fault)):
        answer_not_stored(asked(method), fault)
