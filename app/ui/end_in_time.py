"""End Hearth in time: what still waits a while after it was told to end is left as it is, as in a crash, which loses nothing that was made."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

ENDS_S: Final = 12.0
"""Hearth may take so long from the word to its end. Each wait of an orderly end is bounded, but on a busy machine they add up."""


@contextmanager
def end_in_time(leaving: threading.Event, find_code: Callable[[], int]) -> Iterator[None]:
    """End the process with this code if the block is not left in time. Child processes end with the pipes that lead to them."""
    left, main = threading.Event(), threading.get_ident()

    def watch() -> None:
        leaving.wait()
        if not left.wait(ENDS_S):
            where = "".join(traceback.format_stack(sys._current_frames().get(main)))
            logging.getLogger("hearth").warning("the end took too long, in:\n%s", where)
            os._exit(find_code())

    threading.Thread(target=watch, name="end in time", daemon=True).start()
    try:
        yield
    finally:
        left.set()
