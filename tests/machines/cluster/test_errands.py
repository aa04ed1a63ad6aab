"""A task that is stopped around its beginning: the engine does not begin, or is told to stop after it began; never left to itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

worker = pytest.importorskip("app.machines.cluster.helper_process", reason="the extra machines is not installed")


class Place:
    """The keeper's process and the main machine of a helper; the task is stopped at one moment."""

    def __init__(self, folder: Path, stopped: str) -> None:
        self.told: list[str] = []
        self._stopped = stopped
        self.errands = worker.Errands(self, folder)

    def tell(self, op: str, **values: Any) -> None:
        self.told.append("leave" if op == "stop" and values["unwanted"] else op)
        if op == "run":
            self.errands.hear({"op": "event", "id": "task", "event": None})
            self._stop_at("run")
            self.errands.hear({"op": "end", "id": "task", "event": None, "files": {}})

    def _stop_at(self, moment: str) -> None:
        if self._stopped == moment:
            self.errands.stop("task")

    def ask(self, operation: str, **values: Any) -> Any:
        answer = getattr(self, operation)(**values)
        if "refused" in answer:
            raise worker.Reschedule
        return answer

    def log_event(self, topic: str, message: Any) -> None:
        pass

    def hearth_begin(self, task: str) -> dict[str, Any]:
        self._stop_at("asked")
        return {"refused": "not-yours"} if self._stopped == "before" else {}

    def hearth_end(self, task: str, event: Any) -> dict[str, Any]:
        return {}

    def run(self) -> bool:
        """Tell whether the task came to its end."""
        self._stop_at("before")
        try:
            self.errands.carry_out(self, "task", json.dumps({"files": {}}))
        except worker.Reschedule:
            return False
        return True


@pytest.mark.parametrize(
    ("stopped", "told"), [("", ["run", "delivered"]), ("before", ["leave"]), ("asked", ["leave"]), ("run", ["run", "leave"])]
)
def test_no_stopped_task_goes_on(stopped: str, told: list[str], tmp_path: Path) -> None:
    place = Place(tmp_path, stopped)
    assert place.run() is (stopped == "") and place.told == told


def test_what_goes_back_is_not_left_for_good(tmp_path: Path) -> None:
    """The helper's owner needs his machine, which may get the same task again."""
    place = Place(tmp_path, "")
    place.hearth_begin = lambda task: place.errands.give_all_back() or {}  # type: ignore[method-assign]
    assert not place.run() and place.told == ["stop"]
