"""What a helper forgets, and how soon it comes back, by why the main machine refused it."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.machines.joining.versions import COMPARED, read_versions
from app.machines.lending import AGAIN_S, REFUSED_AGAIN_S, Lending, LendingState


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
