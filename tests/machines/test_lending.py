"""A helper's watch over its machines process goes on whatever the system refuses."""

from __future__ import annotations

import errno
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines import lending
from app.machines.lending import Lending


def test_a_machines_process_that_the_system_does_not_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "TICK_S", 0.01)
    closing, tries = threading.Event(), list[int]()

    def start_side() -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        closing.set()

    watched = SimpleNamespace(
        _closing=closing,
        _tidied_s=time.monotonic(),
        _apply_pause=lambda: None,
        _finder=SimpleNamespace(look=lambda rests: None),
        _note_fetching=lambda: False,
        _side=SimpleNamespace(alive=False),
        _again_s=0.01,
        _start_side=start_side,
        state=SimpleNamespace(online=False, removed=False),
    )
    Lending._watch(watched)  # type: ignore[arg-type]
    assert len(tries) == 3
