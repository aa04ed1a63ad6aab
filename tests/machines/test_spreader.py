"""What the spreader says and wants of machines for the job that runs here: only of those at work, and first of the running job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.base.paths import home
from app.engine.jobs.request import PictureRequest
from app.engine.keeper.state import EngineState
from app.machines.helping_machine import HelpingMachine, Judged
from app.machines.spreader import Spreader
from tests.support.waiting import until

MODEL = "sd15"
AT_WORK = HelpingMachine("a", "a", online=True, models=frozenset({"starter-painter"}))
AWAY = {
    "offline": replace(AT_WORK, online=False),
    "paused by its owner": replace(AT_WORK, paused=True),
    "resting": replace(AT_WORK, resting=True),
}


@contextmanager
def spreading(folder: Path, machines: list[HelpingMachine]) -> Iterator[tuple[Spreader, list[str]]]:
    """A spreader whose engine runs a batch, and the machines that were asked to fetch its model."""
    wanted = list[str]()
    job = SimpleNamespace(id="job", request=PictureRequest("a ball", MODEL, batch=2, seed=1))
    journal = SimpleNamespace(find=lambda id_: job, list_waiting=list)
    keeper = SimpleNamespace(
        home=home(folder),
        folder=lambda id_: folder,
        journal=journal,
        state=EngineState(ready=True, job="job"),
        read_setup=lambda *_, **__: None,
    )
    hub = SimpleNamespace(
        list_machines=lambda: machines,
        want=lambda machine, model, body, files: wanted.append(machine),
        ask=lambda machine, question, body, answered: None,
        judged=Judged(),
    )
    spreader = Spreader(keeper, hub).start()  # type: ignore[arg-type]
    try:
        yield spreader, wanted
    finally:
        spreader.close()


def test_it_says_why_an_idle_machine_gets_nothing_of_what_runs_here(tmp_path: Path) -> None:
    with spreading(tmp_path, [AT_WORK]) as (spreader, _):
        until(lambda: (said := spreader.explain_unused(AT_WORK)) is not None and said.key == "unused.lacks")


def test_what_nobody_thought_of_does_not_end_it(tmp_path: Path) -> None:
    faults = [RuntimeError("a"), KeyError("b")]

    class Odd(list[HelpingMachine]):
        def __iter__(self) -> Iterator[HelpingMachine]:
            if faults:
                raise faults.pop()
            return super().__iter__()

    with spreading(tmp_path, Odd([replace(AT_WORK, fetches=True)])) as (_, wanted):
        until(lambda: wanted == ["a"])
    assert not faults


@pytest.mark.parametrize("why", AWAY)
def test_of_a_machine_that_is_not_at_work_it_says_and_wants_nothing(why: str, tmp_path: Path) -> None:
    away = replace(AWAY[why], fetches=True)
    other = replace(AT_WORK, id="b", fetches=True)
    with spreading(tmp_path, [away, other]) as (spreader, wanted):
        until(lambda: bool(wanted))
        assert wanted == ["b"]
        assert spreader.explain_unused(replace(away, fetches=False)) is None
        assert spreader.explain_unused(replace(other, fetches=False)) is not None
