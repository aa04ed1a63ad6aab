"""When jobs run: by hand, by the clock, while nobody is here, on the battery; as pure rules, and held to by the keeper over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from app.base import idle
from app.base.paths import home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.request import SpeechRequest
from app.ui.state.other_machines import OtherMachines
from app.ui.state.pausing import AWAY_S, Pausing, find_reason, is_within, next_time, parse_clock
from app.ui.state.settings import Settings
from app.ui.state.settings_schema import PauseValues
from app.ui.tabs.pause import pause_view
from tests.support.guests import desk_at
from tests.support.waiting import Idle, until

NOON, NIGHT = datetime(2026, 11, 27, 12, 0), datetime(2026, 11, 27, 23, 30)


@pytest.mark.parametrize(
    ("rules", "now", "facts", "words"),
    [
        ({}, NOON, {}, ""),
        ({"held": True, "until_s": None}, NOON, {}, "Paused: the card"),
        ({"held": True, "until_s": NIGHT.timestamp()}, NOON, {}, "Paused until 23:30"),
        ({"held": True, "until_s": NOON.timestamp()}, NIGHT, {}, ""),
        ({"hours": (22 * 60, 7 * 60)}, NOON, {}, "Jobs run from 22:00 to 07:00."),
        ({"hours": (22 * 60, 7 * 60)}, NIGHT, {}, ""),
        ({"away": True}, NOON, {"idle_s": 3.0}, "nobody has used"),
        ({"away": True}, NOON, {"idle_s": AWAY_S}, ""),
        ({"away": True}, NOON, {"idle_s": None}, ""),
        ({"plugged": True}, NOON, {"on_battery": True}, "plugged in"),
        ({"plugged": True}, NOON, {"on_battery": False}, ""),
    ],
)
def test_why_jobs_wait(rules: PauseValues, now: datetime, facts: dict[str, Any], words: str) -> None:
    reason = find_reason(rules, now, **facts)
    assert (reason is None) == (not words) and words in str(reason or "")


def test_hours_go_over_midnight() -> None:
    assert [is_within(hour * 60, 22 * 60, 7 * 60) for hour in (21, 22, 0, 6, 7)] == [False, True, True, True, False]
    assert [is_within(hour * 60, 9 * 60, 17 * 60) for hour in (8, 9, 16, 17)] == [False, True, True, False]
    assert is_within(5, 60, 60)
    assert next_time(13 * 60, NOON) == datetime(2026, 11, 27, 13, 0).timestamp()
    assert next_time(12 * 60, NOON) == datetime(2026, 11, 28, 12, 0).timestamp()
    assert parse_clock("07:05") == 425
    for wrong in ("", "7", "25:00", "07:60", "-1:00", "noon"):
        with pytest.raises(Trouble, match="no time of day"):
            parse_clock(wrong)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Idle]:
    keeper = Idle(home(tmp_path / "home"))
    yield keeper
    keeper.close()


def opened(keeper: Idle, idle_s: float | None = 0.0, battery: bool = False) -> Pausing:
    return Pausing(keeper, Settings(keeper.home.settings), idle=lambda: idle_s, battery=lambda: battery)


def test_a_pause_is_kept_over_a_restart_and_taken_back(keeper: Idle) -> None:
    opened(keeper).hold()
    until(lambda: "Paused" in str(keeper.state.paused))
    later = opened(keeper)
    later.look()
    assert later.rules == {"held": True, "until_s": None}
    later.go_on()
    until(lambda: keeper.state.paused is None)
    assert not Settings(keeper.home.settings).get("pause")["held"]


def test_what_goes_on_against_the_rules_does_so_until_the_queue_is_empty(keeper: Idle) -> None:
    pausing = opened(keeper)
    job = keeper.journal.queue(SpeechRequest("hello"), Choice())
    pausing.plan("away", "", "")
    until(lambda: keeper.state.paused is not None)
    pausing.go_on()
    until(lambda: keeper.state.paused is None)
    keeper.journal.withdraw(job.id)
    pausing.look()
    until(lambda: keeper.state.paused is not None)
    with pytest.raises(Trouble, match="does not tell"):
        opened(keeper, idle_s=None).plan("away", "", "")


def test_a_laptop_asks_once_each_time_it_is_unplugged(keeper: Idle) -> None:
    plugged = [False]
    pausing = Pausing(keeper, Settings(keeper.home.settings), idle=lambda: None, battery=lambda: not plugged[0])

    def look() -> bool:
        pausing._looked_s = float("-inf")
        pausing.look()
        return pausing.asks

    assert not look(), "nothing runs"
    keeper.journal.queue(SpeechRequest("hello"), Choice())
    assert look()
    pausing.answer_battery(wait=False)
    assert not look() and keeper.state.paused is None
    plugged[0] = True
    assert not look()
    plugged[0] = False
    assert look()
    pausing.answer_battery(wait=True)
    until(lambda: "plugged in" in str(keeper.state.paused))
    assert not look()


def test_what_systems_answer_is_read() -> None:
    assert (idle.read_answer("(uint64 1500,)\n"), idle.read_answer("250"), idle.read_answer("Error")) == (1.5, 0.25, None)


def test_a_pause_says_that_helpers_go_on_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_at(tmp_path) as desk:
        desk.pausing.hold("")
        until(lambda: desk.keeper.state.paused is not None)
        assert "Computers that help" not in pause_view(desk, "en")["reason"]
        monkeypatch.setattr(OtherMachines, "known", True)
        assert pause_view(desk, "en")["reason"].endswith("Computers that help this one go on.")
