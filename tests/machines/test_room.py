"""Whether a job is left to other machines: too large here, and one has room for it, may say so soon, or may come back within a minute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base.paths import home
from app.base.sentence import Sentence, say
from app.compat.machine.pretended import MACHINES
from app.compat.planning.types import Choice
from app.engine.jobs.journal import Job
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import PictureRequest, Request, SpeechRequest
from app.engine.models.forecast import make_forecast
from app.engine.models.planned import Setup
from app.machines import room
from app.machines.helping_machine import HelpingMachine, Judged
from app.machines.outlook import Outlook
from app.machines.room import IN_VAIN, MAY_COME_S, Room, judge
from tests.support.other_functions import set_in

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
    "fetches it": (replace(LACKING, fetches=True, fetching="sdxl@1"), None, "comes"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_a_machine_can_do_for_it(case: str) -> None:
    machine, outlook, answer = ANSWERS[case]
    assert judge(machine, "sdxl@1", outlook) == answer


class Table:
    """A room for a Mac of 8 GB, whose clock and machines a test sets."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.machines, self.outlooks, self.now_s, self.forecasts = [READY], {"a": HAS}, 1000.0, 0
        self.hardware = MACHINES["m1-8gb"]
        set_in(monkeypatch, room, "time", monotonic=lambda: self.now_s)
        make = make_forecast

        def count(*asked: object, **more: object) -> object:
            self.forecasts += 1
            return make(*asked, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(room, "make_forecast", count)
        place = home(folder).create()
        keeper = SimpleNamespace(
            home=place, tell_waiting=self.tell_waiting, read_setup=lambda choice, yields: Setup(place, self.hardware, choice)
        )
        self.judged = Judged()
        hub = SimpleNamespace(list_machines=self._list, judged=self.judged)
        self.asked = dict[str, Request]()
        asking = SimpleNamespace(find=lambda question, machine: self.outlooks.get(machine), choose=self._note)
        self.naming, self.named, self.wanted = False, True, list[tuple[list[str], str]]()
        models = SimpleNamespace(name=self._name, is_naming=lambda model: self.naming, want=self._want)
        self.said, self.lists = list[str](), 0
        self.room = Room(keeper, hub, asking, models)  # type: ignore[arg-type]

    def _list(self) -> list[HelpingMachine]:
        self.lists += 1
        return self.machines

    def tell_waiting(self, job: str, sentence: Sentence) -> None:
        self.said.append(str(sentence))

    def _name(self, model: str) -> str:
        return f"{model}@1" if self.named else ""

    def _want(self, machines: list[HelpingMachine], model: str) -> None:
        self.wanted.append(([each.id for each in machines], model))

    def _note(self, question: str, request: Request, machines: list[HelpingMachine]) -> None:
        self.asked[question] = request

    def waits(self, request: Request, id_: str = "job") -> bool:
        return self.room.waits(self.job(request, id_), self.machines)

    def job(self, request: Request, id_: str = "job") -> Job:
        return Job(id_, OWNER, request, Choice(), "queued", 0, "", 0.0, None)


LARGE = PictureRequest("a ball", "sdxl")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    return Table(tmp_path, monkeypatch)


def test_only_what_is_too_large_is_left_to_others(table: Table) -> None:
    assert table.waits(LARGE) and not table.waits(PictureRequest("a ball", "sd15"))
    table.machines, forecasts = [], table.forecasts
    assert not table.waits(replace(LARGE, width=512)) and table.forecasts == forecasts, "nobody is known"


def test_one_that_has_room_is_enough(table: Table) -> None:
    table.outlooks = {"a": HAS_NOT, "b": HAS}
    table.machines = [READY, replace(READY, id="b"), replace(READY, id="c", online=False)]
    assert table.waits(LARGE)
    table.now_s += 2 * MAY_COME_S
    assert table.waits(LARGE)


def test_it_waits_a_minute_for_who_may_come(table: Table) -> None:
    table.machines = [replace(READY, online=False)]
    assert table.waits(LARGE)
    table.now_s += MAY_COME_S - 1
    assert table.waits(LARGE)
    table.now_s += 2
    assert not table.waits(LARGE) and not table.waits(LARGE)
    table.machines = [READY]
    table.room.see(table.machines)
    assert table.waits(LARGE), "who has room is waited for as long as it has other work"
    table.now_s += 1000
    assert table.waits(LARGE)
    table.machines = [replace(READY, online=False)]
    table.now_s += 1000
    assert table.waits(LARGE), "it was lost only now"
    table.outlooks, table.machines = {"a": HAS_NOT}, [READY]
    assert not table.waits(LARGE), "nobody has room, and all said so"


@pytest.mark.parametrize("state", [replace(READY, online=False), replace(READY, paused=True)])
def test_who_was_waited_for_in_vain_is_not_waited_for_again_until_it_is_seen(table: Table, state: HelpingMachine) -> None:
    table.machines = [state]
    assert table.waits(LARGE, "first")
    table.now_s += MAY_COME_S
    assert not table.waits(LARGE, "first")
    for model in ("sdxl", "pixart-sigma"):
        assert not table.waits(replace(LARGE, model=model), "second"), "for no model"
    table.machines = [state, replace(state, id="b")]
    assert table.waits(LARGE, "third"), "another one may come all the same"
    table.machines = [state]
    table.room.see([state])
    assert not table.waits(LARGE, "fourth")
    table.room.see([READY])
    assert table.waits(LARGE, "fourth"), "it was there meanwhile"


def test_who_had_no_room_is_asked_all_the_same(table: Table) -> None:
    table.machines, table.outlooks = [replace(READY, online=False), replace(READY, id="b")], {"b": HAS_NOT}
    assert table.waits(LARGE, "first")
    table.now_s += MAY_COME_S
    assert not table.waits(LARGE, "first")
    table.outlooks = {}
    assert table.waits(LARGE, "second"), "it is about to say so again"


def test_who_says_nothing_is_not_waited_for_again_until_it_answers(table: Table) -> None:
    table.outlooks = {}
    assert table.waits(LARGE, "first")
    table.now_s += MAY_COME_S
    table.room.see([READY])
    assert not table.waits(LARGE, "first") and not table.waits(LARGE, "second"), "it is there, and says nothing still"
    table.outlooks = {"a": HAS}
    assert table.waits(LARGE, "third")
    table.outlooks = {}
    assert table.waits(LARGE, "fourth")


def test_a_model_that_never_comes_is_not_waited_for_without_end(table: Table) -> None:
    """It is asked for again every half minute, and fails each time; what is on its way is waited for as long as it takes."""
    may, at_it = replace(LACKING, fetches=True), replace(LACKING, fetches=True, fetching="sdxl@1")
    table.machines = [may]
    tries = 0
    while tries < 9 and table.waits(LARGE):
        tries += 1
        table.now_s += 29.0
        table.machines = [at_it]
        assert table.waits(LARGE)
        table.now_s += 1000.0
        table.machines = [may]
    assert tries == 3, "a minute in all"
    assert table.wanted[-1] == (["a"], "sdxl"), "it is asked for all the same"
    table.machines = [at_it]
    assert table.waits(LARGE), "at last"
    table.machines = [may]
    assert not table.waits(LARGE, "another") and not table.waits(LARGE), "it failed once more"


def test_a_model_is_named_before_it_is_looked_for(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.named, table.naming = False, True
    assert table.waits(LARGE)
    table.now_s += 3 * MAY_COME_S
    assert table.waits(LARGE), "a large file takes minutes"
    table.naming = False
    assert not table.waits(LARGE), "it has no name for others"
    table.named = True
    assert table.waits(LARGE)
    names = iter(["", "sdxl@1"])
    monkeypatch.setattr(table.room._models, "name", lambda model: next(names))
    assert table.waits(LARGE), "named just now"


def test_who_failed_at_a_job_does_not_get_it_again(table: Table) -> None:
    table.machines, table.outlooks = [READY, replace(READY, id="b")], {"a": HAS, "b": HAS}
    table.judged.unable["job"].add("a")
    assert table.waits(LARGE)
    table.judged.unable["job"].add("b")
    assert not table.waits(LARGE) and table.waits(LARGE, "another job")
    table.judged.tidy(lambda job: False)
    assert table.waits(LARGE), "it ended here, and was resumed"
    table.judged.keep_here("job")
    assert not table.waits(LARGE)


def test_what_stays_here_needs_no_list_of_machines(table: Table) -> None:
    for request, lists in ((replace(LARGE, guide="a.png", control="c"), 0), (LARGE, 1)):
        assert table.room.pass_over(table.job(request)) is bool(lists) and table.lists == lists


def test_where_nobody_can_do_it_that_is_said(table: Table) -> None:
    assert table.room.pass_over(table.job(LARGE)) and not table.said
    assert not table.room.pass_over(table.job(PictureRequest("a ball", "sd15"))) and not table.said
    table.outlooks = {"a": HAS_NOT}
    assert not table.room.pass_over(table.job(LARGE)) and table.said == [str(IN_VAIN)]
    table.machines = []
    assert not table.room.pass_over(table.job(LARGE)) and len(table.said) == 1, "the failure says that another one could"


def test_a_part_that_is_spoken_again_is_not_left_to_others(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes with other parts, which are here."""
    monkeypatch.setattr(table.room, "is_too_large", lambda job: True)
    script, table.machines = SpeechRequest("[S1] hello.", "dia"), [replace(READY, models=frozenset({"dia@1"}))]
    assert table.waits(script) and not table.waits(replace(script, only_parts=(0,)))
    assert not table.room.pass_over(table.job(replace(script, only_parts=(0,)))) and not table.said


def test_jobs_alike_are_forecast_once_in_a_while(table: Table) -> None:
    for number in range(20):
        assert table.waits(replace(LARGE, prompt=f"ball {number}", seed=number), f"job-{number}")
    assert table.forecasts == 1
    assert [*table.asked.values()] == [PictureRequest("?", "sdxl@1", image="", mask="", enlarger="")], "all by one question"
    table.hardware = MACHINES["rtx-3060"]
    assert table.waits(LARGE)
    table.now_s += room.AGAIN_S + 1
    assert not table.waits(LARGE) and table.forecasts == 2, "other programs gave memory free"
    table.hardware = MACHINES["m1-8gb"]
    assert table.waits(replace(LARGE, width=64, height=64))
    assert table.forecasts == 3 and len(table.asked) == 2


def test_of_a_question_no_words_are_left() -> None:
    picture = PictureRequest("a secret", "sdxl", "another", 512, 768, seed=7, batch=4, image="a.png", mask="b.png")
    assert picture.what_weighs() == PictureRequest("?", "sdxl", "", 512, 768, batch=4, image="", mask="", enlarger="")
    assert SpeechRequest("[S1] A secret.", "dia", seed=7).what_weighs() == SpeechRequest("?", "dia")


def test_the_forecast_waits_a_moment_for_who_says_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        table.now_s += seconds
        if table.now_s > 1000 + answers_s:
            table.outlooks = {"a": HAS}

    set_in(monkeypatch, room, "time", sleep=sleep)
    for answers_s, name in ((0.5, "a"), (9.0, "")):
        table.outlooks, table.now_s = {}, 1000.0
        assert table.room.find_name(LARGE) == name
        assert answers_s <= table.now_s - 1000 <= answers_s + 0.1 if name else 1.0 <= table.now_s - 1000 < 1.1
    table.machines, table.outlooks = [replace(READY, online=False)], {"a": HAS}
    assert table.room.find_name(LARGE) == "", "it said so before it went"
