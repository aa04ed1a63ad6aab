"""Parse JSON without what is no number: NaN, infinity, floats too large for one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn


def parse_strictly(text: str | bytes, make: Callable[[list[tuple[str, Any]]], Any] | None = None, infinite: bool = False) -> Any:
    """Parse JSON; raise a ValueError also for numbers that are none. `make`: makes an object of its members. `infinite`: take Infinity
    where it is written so."""
    return json.loads(
        text, parse_constant=_read_infinity if infinite else _refuse_constant, parse_float=_read_float, object_pairs_hook=make
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _read_infinity(name: str) -> float:
    return float(name) if name != "NaN" else _refuse_constant(name)


def _read_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number
