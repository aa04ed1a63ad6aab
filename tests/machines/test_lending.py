"""A helper's watch over its machines process goes on whatever the system refuses."""

from __future__ import annotations

import errno
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines import lending
from app.machines.joining.versions import COMPARED, read_versions
from app.machines.lending import AGAIN_S, REFUSED_AGAIN_S, Lending, LendingState


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


def test_only_a_machine_that_was_removed_forgets_the_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """An odd answer ended the pairing, and after one of another version each later loss was waited out for a minute."""
    lent, forgotten = object.__new__(Lending), list[int]()
    lent._lock, lent._changed, lent.state, lent._again_s = threading.RLock(), lambda state: None, LendingState("main"), AGAIN_S
    for name in ("_send_facts", "_tell"):
        monkeypatch.setattr(lent, name, lambda *_, **__: None)
    monkeypatch.setattr(lent, "_forget", lambda: forgotten.append(1))
    others = dict.fromkeys(COMPARED, "0")
    for answer in ({"reason": "odd", "versions": None}, {"reason": "versions", "versions": read_versions()}):
        lent._hear({"op": "refused", **answer})
        assert not forgotten and lent._again_s == REFUSED_AGAIN_S and not lent.state.removed and lent.state.said is None
    lent._hear({"op": "refused", "reason": "versions", "versions": others})
    assert lent.state.said is not None and lent.state.said.key == "machines.versions"
    lent._hear({"op": "online"})
    assert lent._again_s == AGAIN_S and lent.state.said is None
    lent._hear({"op": "refused", "reason": "removed", "versions": None})
    assert forgotten == [1] and lent.state.removed and lent.state.said is not None and lent.state.said.key == "machines.removed"
