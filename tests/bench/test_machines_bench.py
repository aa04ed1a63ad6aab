"""hearth bench machines: what pretended helpers are given, and both halves through real processes."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.__main__ import main
from app.machines.tasks.portable import Portable
from bench.pretended_machines import HandingOut, draw_lengths, name_task


class Clockwork:
    """A hub whose machines work in a time of its own, at one task after another."""

    def __init__(self, speeds: dict[str, float]) -> None:
        self.speeds, self.now_s, self.ended = speeds, 0.0, list[str]()
        self._given: dict[str, list[tuple[str, float, Callable[[Any], None]]]] = {machine: [] for machine in speeds}
        self._coming: list[tuple[float, str, str]] = []
        """Here stands when each machine ends the first task that it has."""

    def submit(self, id_: str, portable: Portable, machine: str, tell: object, end: Callable[[Any], None]) -> None:
        self._given[machine].append((id_, json.loads(portable.body)["request"]["seconds"] / self.speeds[machine], end))
        assert len(self._given[machine]) <= 2
        if len(self._given[machine]) == 1:
            self._begin(machine)

    def _begin(self, machine: str) -> None:
        if self._given[machine]:
            id_, needed_s, _ = self._given[machine][0]
            heapq.heappush(self._coming, (self.now_s + needed_s, id_, machine))

    def stop(self, id_: str) -> None:
        for machine, given in self._given.items():
            for place, each in enumerate(given):
                if each[0] == id_:
                    del given[place]
                    if place == 0:
                        self._coming = [coming for coming in self._coming if coming[1] != id_]
                        heapq.heapify(self._coming)
                        self._begin(machine)
                    return

    def run(self) -> None:
        while self._coming:
            self.now_s, id_, machine = heapq.heappop(self._coming)
            end = self._given[machine].pop(0)[2]
            self._begin(machine)
            self.ended.append(id_)
            end(SimpleNamespace(machine=machine))


def test_lengths_are_mixed_and_have_the_sum_that_was_asked_for() -> None:
    lengths = draw_lengths(1000, 60.0)
    assert sum(lengths) == pytest.approx(60) and 5 < max(lengths) / min(lengths) <= 10
    assert lengths == draw_lengths(1000, 60.0)


@pytest.mark.slow
@pytest.mark.parametrize("helpers", [4, 50, 200])
def test_mixed_helpers_finish_mixed_tasks_near_the_ideal(helpers: int) -> None:
    speeds = {str(number): (1.0, 2.0, 4.0)[number % 3] for number in range(helpers)}
    hub, lengths = Clockwork(speeds), draw_lengths(10_000, 120 * sum(speeds.values()))
    handing = HandingOut(hub, lengths, list(speeds))  # type: ignore[arg-type]
    handing.begin()
    hub.run()
    assert handing.done.is_set() and hub.now_s <= 1.15 * 120
    assert len({each.split("-")[1] for each in hub.ended}) == 10_000 == len(hub.ended), "each task ends once"


def test_a_slow_machine_does_not_hold_up_the_end() -> None:
    hub = Clockwork({"slow": 0.01, "fast": 1.0})
    handing = HandingOut(hub, [1.0, 1.0], ["slow", "fast"])  # type: ignore[arg-type]
    handing.begin()
    hub.run()
    assert hub.now_s == pytest.approx(2.0) and hub.ended == [name_task(1, "fast"), name_task(0, "fast")]


@pytest.mark.slow
def test_a_few_pretended_helpers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["bench", "machines", "--helpers", "--pretended", "3", "--tasks", "30", "--seconds", "2", "--json", "--home", str(tmp_path)]
    assert main(command) == 0
    values = json.loads(capsys.readouterr().out)
    (row,) = values["tables"]["placed"]
    assert row["helpers"] == "3 pretended helpers, 30 tasks" and row["ideal_s"] == pytest.approx(2)
    assert row["seconds"] >= 2 and row["scheduler_s"] > 0 and row["helpers_s"] > 0 and row["memory"] > 10 << 20
    assert [each["most"] for each in values["bounds"]] == [1.15]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_real_helpers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    sizes = ["--helpers", "1", "2", "--pictures", "6", "--steps", "4", "--singles", "3", "--pretended"]
    assert main(["bench", "machines", *sizes, "--json", "--home", str(tmp_path)]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["helpers"] for row in values["tables"]["pictures"]] == ["helpers: none", "helpers: 1", "helpers: 2"]
    assert values["tables"]["pictures"][0]["here"] == 6 > values["tables"]["pictures"][2]["here"]
    (task,) = values["tables"]["task"]
    assert task["here_s"] > 0 and 0 < task["seconds"] <= task["most_s"] and task["overhead_s"] == task["seconds"] - task["here_s"]
    assert not list((tmp_path / "scratch").iterdir())
