"""What of a helper's own words is believed, and what is shown of it; what a helper shows of itself."""

from __future__ import annotations

import pytest

from app.base.sentence import Sentence, say
from app.machines.helping_machine import FREE_MOST, HelpingMachine, read_facts
from app.machines.lending import LendingState, describe_state, explain_pause
from app.ui.tabs.other_machines import describe_work, machine_view, tell_apart

FULL = say("test.full", "The disk is full.")


@pytest.mark.parametrize(("said", "believed"), [
    (8 << 30, 8 << 30), (FREE_MOST, FREE_MOST), (FREE_MOST + 1, 0), (2**62, 0), (-5 << 30, 0), ("8", 0), (float("nan"), 0), (None, 0),
])  # fmt: skip
def test_only_what_may_be_true_of_its_memory_is_shown(said: object, believed: int) -> None:
    assert read_facts({"free_bytes": said})["free_bytes"] == believed


def test_its_card_is_one_short_line() -> None:
    name = "11th Gen Intel(R) Core(TM) i7-1185G7 @ 3.00GHz"
    assert read_facts({"card": name})["card"] == name
    assert read_facts({"card": "a\u202e\x00\n card" + "!" * 5000})["card"].startswith("a card!!") and read_facts({})["card"] == ""


def test_a_model_that_is_none_is_not_fetched() -> None:
    lying = HelpingMachine("a", "Box", online=True, fetching="<b>x")
    assert describe_work(lying, "").key == "helper.ready"
    assert describe_work(lying, "Dia").key == "helper.fetching"


def test_a_machine_whose_owner_ended_it_is_not_waited_for() -> None:
    assert describe_work(HelpingMachine("a", "Box", left=True), "").key == "helper.left"
    assert describe_work(HelpingMachine("a", "Box"), "").key == "helper.offline"


def test_machines_of_one_name_are_told_apart() -> None:
    named = tell_apart([HelpingMachine("1" * 32, "box"), HelpingMachine("2" * 32, "box"), HelpingMachine("3" * 32, "mini")])
    assert [each.name for each in named] == ["box (11111111)", "box (22222222)", "mini"]


def test_why_its_latest_task_came_to_nothing_stands_beside_it() -> None:
    failed = HelpingMachine("a", "Box", online=True, failed=say("helper.failed", "its latest task came to nothing: {reason}", reason="x"))
    assert machine_view(failed, "", None, "en")["why"] == "its latest task came to nothing: x"


@pytest.mark.parametrize(("by_owner", "own_work", "obstacle", "ready", "key"), [
    (True, True, FULL, False, "lend.paused"), (False, True, FULL, False, "lend.own-work"), (False, False, FULL, False, "lend.obstacle"),
    (False, False, None, False, "lend.starting"), (False, False, None, True, ""),
])  # fmt: skip
def test_a_helper_that_does_not_help_says_the_one_reason(
    by_owner: bool, own_work: bool, obstacle: Sentence | None, ready: bool, key: str
) -> None:
    pause = explain_pause(by_owner, own_work, obstacle, ready)
    assert (pause.key if pause is not None else "") == key
    shown = LendingState("main", online=True, connecting=False, pause=pause)
    assert describe_state(shown).key == (key or "lend.ready") and shown.paused == bool(key)
