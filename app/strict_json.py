"""Parse JSON without what is no number: NaN, infinity, floats too large for one."""

from __future__ import annotations

import json
import math
from typing import Any


def parse_strictly(text: str | bytes) -> Any:
    """Parse JSON; raise a ValueError also for numbers that are none."""
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number
