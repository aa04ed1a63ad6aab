"""A machines process that ends is started again until it is closed or is to stay away; what is told in between is heard by nobody."""

from __future__ import annotations

import errno
import multiprocessing
import os
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from app.machines.pipe import Pipe
from app.machines.side_process import SideProcess
from tests.support.waiting import WAIT_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes have no file numbers there")


class Process:
    """It ends once its end of the pipe is closed."""

    def __init__(self, *, args: tuple[Any, ...], **_: Any) -> None:
        self.connection, self.arguments = os.dup(args[0].fileno()), args[2]

    def start(self) -> None: ...
    def join(self, *_: Any) -> None: ...
    def kill(self) -> None: ...


class Table:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.told = SimpleQueue[Process](), SimpleQueue[str]()
        self.wait_s: float | None = 0.0
        self.refusals = 0
        monkeypatch.setattr(multiprocessing.get_context("spawn"), "Process", self._make)
        self._number = 0
        self.side = SideProcess(
            "module", lambda: {"number": self._number}, folder / "log", self._hear, self._end, lambda side: self.told.put("again")
        )

    def _make(self, **given: Any) -> Process:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        process = Process(**given)
        self._number += 1
        self.started.put(process)
        return process

    def _hear(self, message: dict[str, Any]) -> None:
        self.told.put(message["op"])
        assert message["op"] != "odd"

    def _end(self) -> float | None:
        self.told.put("ended")
        return self.wait_s

    def take(self) -> str:
        return self.told.get(timeout=WAIT_S)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    table = Table(tmp_path, monkeypatch)
    yield table
    while not table.started.empty():
        os.close(table.started.get().connection)
    table.side.close()


def end(process: Process, *words: str) -> None:
    """Say something, and end."""
    with Connection(process.connection) as connection:
        for word in words:
            Pipe(connection).tell(word)


def test_it_is_started_again_with_what_holds_by_then(table: Table) -> None:
    for number in (0, 1, 2):
        process = table.started.get(timeout=WAIT_S)
        assert process.arguments == {"number": number}
        table.refusals = 2
        end(process, "odd", "even")
        assert [table.take() for _ in range(4)] == ["odd", "even", "ended", "again"], "one that cannot be heard ends nothing"


def test_one_that_is_to_stay_away_does(table: Table) -> None:
    table.wait_s = None
    end(table.started.get(timeout=WAIT_S))
    assert table.take() == "ended"
    table.side.tell("nobody", hears="this")
    table.side.close()
    assert table.started.empty() and table.told.empty()
