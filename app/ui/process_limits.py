"""What the window sets of its own process: Gradio's variables and folder, how threads take turns, how many files may be open, how long its end may take."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from app.base.paths import Home

ENDS_S: Final = 12.0
"""Hearth may take so long from the word to its end. Each wait of an orderly end is bounded, but on a busy machine they add up."""
FILES_OPEN: Final = 4096
SWITCH_S: Final = 0.001
"""A thread that computes holds the interpreter so long while others wait for it. With Python's 5 ms the server's thread, which
lets go of it at each read and write of a connection, fell behind by half a second in a crowd."""


def prepare_environment(home: Home) -> None:
    """Set Gradio's environment variables and folder, and how threads take turns. A dead proxy must not block Hearth's requests to itself."""
    sys.setswitchinterval(SWITCH_S)
    os.environ["GRADIO_TEMP_DIR"] = str(home.scratch / "uploads")
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    # Gradio sums up its last 10,000 calls with pandas after each one.
    os.environ |= {"GRADIO_ANALYTICS_MAX_EVENTS": "1", "GRADIO_ANALYTICS_CACHE_FREQUENCY": str(10**9)}
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1,localhost,::1")))
    os.chdir(home.root)


def allow_many_files() -> None:
    """Raise the number of files and lines that may be open: on a Mac it is 256, which a browser and a few guests reach."""
    if sys.platform != "win32":
        import resource

        now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES_OPEN if most == resource.RLIM_INFINITY else min(FILES_OPEN, most)
        if now != resource.RLIM_INFINITY and now < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


@contextmanager
def end_in_time(leaving: threading.Event, find_code: Callable[[], int]) -> Iterator[None]:
    """End the process with this code if the block is not left in time, as in a crash, which loses nothing that was made. Child processes end with
    the pipes that lead to them."""
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
