"""A file that comes and goes all the time, as another thread or process makes and deletes one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def coming_and_going(path: Path) -> Iterator[None]:
    enough = threading.Event()

    def come_and_go() -> None:
        while not enough.is_set():
            path.touch()
            path.unlink()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
