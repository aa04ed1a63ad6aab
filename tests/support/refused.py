"""Take private operators away from torch: one that it lacks, and one that refuses, from the start or in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Literal, NoReturn

import pytest
import torch

from app.compat.machine import processor

Lack = Literal["missing", "refused"]
WORDS = "bf16 path needs the cpu support avx_ne_convert"


@pytest.fixture
def asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what the processor was found to do, before and after."""
    monkeypatch.setattr(processor, "_given_up", set())
    forget = processor.find_refusal.cache_clear  # of the function itself, which a test may replace
    forget()
    yield
    forget()


class _Without:
    def __init__(self, whole: object, name: str) -> None:
        self._whole, self._name = whole, name

    def __getattr__(self, asked: str) -> Any:
        if asked == self._name:
            raise AttributeError(f"no such operator: {asked}")
        return getattr(self._whole, asked)


def take_away(monkeypatch: pytest.MonkeyPatch, path: str, lack: Lack = "refused") -> None:
    """`path`: of an operator in torch, such as "ops.mkldnn._linear_pointwise"."""
    above, _, name = path.rpartition(".")
    place, _, own = above.rpartition(".")
    holder = attrgetter(place)(torch) if place else torch
    if lack == "missing":
        monkeypatch.setattr(holder, own, _Without(getattr(holder, own), name))
    else:
        monkeypatch.setattr(getattr(holder, own), name, _refuse)


def _refuse(*_: Any) -> NoReturn:
    raise RuntimeError(WORDS)
