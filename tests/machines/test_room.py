"""Whether a job is left to other machines: too large here, and one has room for it, may say so soon, or may come back within a minute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.journal import Job
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.machines import room
from app.machines.helping_machine import HelpingMachine
from app.machines.outlook import Outlook
from app.machines.room import MAY_COME_S, Room, find_room, leave_words_out
from app.paths import home
from app.sentence import say

READY = HelpingMachine("a", "a", online=True, models=frozenset({"sdxl@1"}))
LACKING = replace(READY, models=frozenset())
HAS, HAS_NOT = Outlook("tight"), Outlook("no")
ANSWERS = {
    "has room": (READY, HAS, "yes"),
    "has room and other work": (replace(READY, tasks=("other",)), HAS, "yes"),
    "has none": (READY, HAS_NOT, "no"),
    "has not answered": (READY, None, "perhaps"),
    "offline": (replace(READY, online=False), HAS, "perhaps"),
    "paused by its owner": (replace(READY, paused=True), HAS, "perhaps"),
    "gets no work": (replace(READY, resting=True), HAS, "no"),
    "helps no more": (replace(READY, online=False, left=True), HAS, "no"),
    "refused": (replace(READY, online=False, refused=say("test.refused", "no")), HAS, "no"),
    "lacks the model": (LACKING, None, "no"),
    "has another revision": (replace(READY, models=frozenset({"sdxl@2"}), fetches=True), None, "no"),
    "may fetch the model": (replace(LACKING, fetches=True), None, "perhaps"),
    "fetches it": (replace(LACKING, fetches=True, fetching="sdxl@1"), None, "yes"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_a_machine_can_do_for_it(case: str) -> None:
    machine, outlook, answer = ANSWERS[case]
    assert find_room([machine], "sdxl@1", {"a": outlook}) == answer


def test_one_that_has_room_is_enough() -> None:
    others = [replace(READY, id="b"), replace(READY, id="c", online=False)]
    assert find_room([*others, READY], "sdxl@1", {"b": HAS_NOT, "a": HAS}) == "yes"
    assert find_room(others, "sdxl@1", {"b": HAS_NOT}) == "perhaps"
    assert find_room([], "sdxl@1", {}) == "no"


class Table:
    """A room for a Mac of 8 GB, whose clock and machines a test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.machines, self.outlooks, self.now_s, self.forecasts = [READY], {"a": HAS}, 1000.0, 0
        self.hardware = MACHINES["m1-8gb"]
        monkeypatch.setattr(room.time, "monotonic", lambda: self.now_s)
        make = room.make_forecast

        def count(*asked: object) -> object:
            self.forecasts += 1
            return make(*asked)  # type: ignore[arg-type]

        monkeypatch.setattr(room, "make_forecast", count)
        keeper = SimpleNamespace(home=home(folder).create(), chunk=AUTO, state=self)
        hub = SimpleNamespace(list_machines=lambda: self.machines)
        self.asked = dict[str, Request]()
        asking = SimpleNamespace(find=lambda question, machine: self.outlooks.get(machine), choose=self._note)
        models = SimpleNamespace(name=lambda model: f"{model}@1", stays=lambda model: False)
        self.room = Room(keeper, hub, asking, models)  # type: ignore[arg-type]

    def _note(self, question: str, request: Request, machines: list[HelpingMachine]) -> None:
        self.asked[question] = request

    def waits(self, request: Request, id_: str = "job") -> bool:
        return self.room.waits(Job(id_, OWNER, request, Choice(), "queued", 0, "", 0.0, None))


LARGE = PictureRequest("a ball", "sdxl")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    return Table(tmp_path, monkeypatch)


def test_only_what_is_too_large_is_left_to_others(table: Table) -> None:
    assert table.waits(LARGE) and not table.waits(PictureRequest("a ball", "sd15"))
    table.machines, forecasts = [], table.forecasts
    assert not table.waits(replace(LARGE, width=512)) and table.forecasts == forecasts, "nobody is known"


def test_it_waits_a_minute_for_who_may_come(table: Table) -> None:
    table.machines = [replace(READY, online=False)]
    assert table.waits(LARGE)
    table.now_s += MAY_COME_S - 1
    assert table.waits(LARGE)
    table.now_s += 2
    assert not table.waits(LARGE)
    table.machines = [READY]
    assert table.waits(LARGE), "who has room is waited for as long as it has other work"
    table.now_s += 1000
    assert table.waits(LARGE)
    table.machines = [replace(READY, online=False)]
    table.now_s += 1000
    assert table.waits(LARGE), "it was lost only now"
    table.outlooks, table.machines = {"a": HAS_NOT}, [READY]
    assert not table.waits(LARGE), "nobody has room, and all said so"


def test_jobs_alike_are_forecast_once_in_a_while(table: Table) -> None:
    for number in range(20):
        assert table.waits(replace(LARGE, prompt=f"ball {number}", seed=number), f"job-{number}")
    assert table.forecasts == 1
    assert [*table.asked.values()] == [PictureRequest("?", "sdxl@1", image="", mask="")], "all by one question"
    table.hardware = MACHINES["rtx-3060"]
    assert table.waits(LARGE)
    table.now_s += room.AGAIN_S + 1
    assert not table.waits(LARGE) and table.forecasts == 2, "other programs gave memory free"
    table.hardware = MACHINES["m1-8gb"]
    assert table.waits(replace(LARGE, width=64, height=64))
    assert table.forecasts == 3 and len(table.asked) == 2


def test_of_a_question_no_words_are_left() -> None:
    picture = PictureRequest("a secret", "sdxl", "another", 512, 768, seed=7, batch=4, image="a.png", mask="b.png")
    assert leave_words_out(picture) == PictureRequest("?", "sdxl", "", 512, 768, batch=4, image="", mask="")
    assert leave_words_out(SpeechRequest("[S1] A secret.", "dia", seed=7)) == SpeechRequest("?", "dia")


def test_the_forecast_waits_a_moment_for_who_says_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        table.now_s += seconds
        if table.now_s > 1000 + answers_s:
            table.outlooks = {"a": HAS}

    monkeypatch.setattr(room.time, "sleep", sleep)
    for answers_s, name in ((0.5, "a"), (9.0, "")):
        table.outlooks, table.now_s = {}, 1000.0
        assert table.room.find_name(LARGE) == name
        assert answers_s <= table.now_s - 1000 <= answers_s + 0.1 if name else 1.0 <= table.now_s - 1000 < 1.1
    table.machines, table.outlooks = [replace(READY, online=False)], {"a": HAS}
    assert table.room.find_name(LARGE) == "", "it said so before it went"
