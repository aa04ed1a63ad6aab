"""Combinations of parameters, of which a quick run asks as few as hold each value once; the long run asks all."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def combine(*axes: Iterable[Any]) -> list[Any]:
    """List all combinations; those that the quick run leaves out are marked slow."""
    rows = [list(axis) for axis in axes]
    quick = {tuple(turn % len(row) for row in rows) for turn in range(max(map(len, rows)))}
    places = itertools.product(*(range(len(row)) for row in rows))
    return [
        pytest.param(*(row[at] for row, at in zip(rows, place, strict=True)), marks=[] if place in quick else pytest.mark.slow)
        for place in places
    ]
