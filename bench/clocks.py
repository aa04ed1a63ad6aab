"""Read the clock and the processor's own time together."""

from __future__ import annotations

import time
from typing import NamedTuple


class Took(NamedTuple):
    """How long something took: by the clock, and the processor's own time, which other programs hardly change."""

    seconds: float
    cpu_s: float


def read_clocks() -> Took:
    return Took(time.perf_counter(), time.process_time())


def since(before: Took, after: Took) -> Took:
    return Took(after.seconds - before.seconds, after.cpu_s - before.cpu_s)
