"""Turn work that reports by callback into an iterator of its reports: it runs in a thread, at most one report ahead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class Abandoned(BaseException):
    """The reader has gone; ends the work at its next report. A BaseException, so that no handler swallows it."""


def iterate_reports(work: Callable[[Callable[[Item], None]], None]) -> Iterator[Item]:
    """Yield what `work` passes to its callback; raise its exception here."""
    items: queue.Queue[tuple[bool, Item | BaseException | None]] = queue.Queue(maxsize=1)
    gone = threading.Event()

    def put(last: bool, item: Item | BaseException | None) -> None:
        while not gone.is_set():
            try:
                items.put((last, item), timeout=0.1)
                return
            except queue.Full:
                continue
        if not last:
            raise Abandoned

    def run() -> None:
        try:
            work(lambda item: put(False, item))
        except BaseException as fault:
            put(True, fault)
        else:
            put(True, None)

    thread = threading.Thread(target=run, name="painting", daemon=True)
    thread.start()
    try:
        while True:
            last, item = items.get()
            if not last:
                yield item  # type: ignore[misc]
            elif isinstance(item, BaseException):
                raise item
            else:
                return
    finally:
        gone.set()
        thread.join()
