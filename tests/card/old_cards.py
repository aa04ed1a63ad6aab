"""Restrict this machine's card to an older one: its facts, its memory, its features."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Final
from unittest.mock import patch

import torch
from filelock import FileLock

from app.compat.machine.hardware import Hardware
from app.compat.machine.pretended import MACHINES
from app.engine.models.loading.release_memory import release

GIB: Final = 1 << 30
_LEFT_OUT: Final = 600 << 20
"""A desktop and the CUDA context hold it on the real ones (as in pretended.py); here the context is not counted."""


def _like(name: str, card: str, capability: tuple[int, int], mib: int) -> Hardware:
    return replace(MACHINES[name], name=card, capability=capability, memory_bytes=mib << 20, free_bytes=(mib << 20) - _LEFT_OUT)


CARDS: Final = {
    name: replace(card, pretended="", packages=())
    for name, card in {
        "GTX 1060, 6 GB": MACHINES["gtx-1060"],
        "GTX 1660, 6 GB": MACHINES["gtx-1660"],
        "GTX 1080, 8 GB": _like("gtx-1060", "NVIDIA GeForce GTX 1080", (6, 1), 8192),
        "T4, 15 GB": MACHINES["t4"],
        "RTX 2060, 6 GB": _like("t4", "NVIDIA GeForce RTX 2060", (7, 5), 6144),
        "GTX 1650, 4 GB": _like("gtx-1660", "NVIDIA GeForce GTX 1650", (7, 5), 4096),
    }.items()
}
"""They are not pretended: the plan is theirs, and the card of this machine computes."""


@contextmanager
def acting(name: str, room_bytes: int = 0) -> Iterator[Hardware]:
    """Report this card's facts and limit torch to its memory. `room_bytes`: the real limit, if below the reported one."""
    card = CARDS[name]
    room = room_bytes or card.free_bytes

    def left() -> int:
        return max(0, card.free_bytes - torch.cuda.memory_reserved())

    release()
    whole = torch.cuda.get_device_properties(0).total_memory
    precise, torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.allow_tf32, False  # no card before Ampere has it
    torch.cuda.set_per_process_memory_fraction(room / whole)
    torch.cuda.reset_peak_memory_stats()
    try:
        with ExitStack() as told:
            for place in ("app.compat.machine.pretended.probe", "app.engine.session.loaded_models.probe"):
                told.enter_context(patch(place, lambda: replace(card, free_bytes=left())))
            told.enter_context(patch("torch.cuda.mem_get_info", lambda *_: (left(), card.memory_bytes)))
            yield card
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.backends.cudnn.allow_tf32 = precise


@contextmanager
def alone() -> Iterator[None]:
    """Measure one run at a time; test files run side by side."""
    with FileLock(Path(gettempdir()) / "hearth-card.lock"):
        yield


def peak_gib() -> float:
    """Return the most memory that torch held since acting() began."""
    return torch.cuda.max_memory_reserved() / GIB


def off(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the relative error in the Euclidean norm; NaN if there is one."""
    found, wanted = found.double().cpu(), wanted.double().cpu()
    return float((found - wanted).norm() / wanted.norm())
