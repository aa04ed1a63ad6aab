"""The time that a training has had: of one processor, where pauses do not count, or of a card, which works beside it."""

from __future__ import annotations

import time
from collections.abc import Callable


def clock(device: str) -> Callable[[], float]:
    return time.process_time if device == "cpu" else time.monotonic
