"""A job too large for this computer is left to a machine that has room, for real: pretended hardware, small here and larger there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.engine.jobs.events import END, Finished, Note
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.machines import room, spreader
from app.machines.spreader import Spreader
from tests.support.lent import Main, open_main, put_models, start
from tests.support.light_painter import pace, read_made
from tests.support.waiting import LOADING_S, pass_turns, until

LARGE, LARGEST, SMALL = "sdxl", "pixart-sigma", "starter-painter"
"""For a Mac of 8 GB the first two are too large; a processor with 10 GB free has room for one of them."""


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    folder = tmp_path_factory.mktemp("machines")
    for name in ("main", "helper"):
        put_models(folder / name, [LARGE, LARGEST])
    with open_main(folder / "main", pretended="m1-8gb") as main:
        main.start_helper(folder / "helper", words=("--pretend", "cpu"))
        until(lambda: main.keeper.state.ready, LOADING_S)
        yield main


def submit(main: Main, model: str, seed: int, batch: int = 1) -> str:
    return main.keeper.submit(PictureRequest("a ball", model=model, seed=seed, batch=batch)).id


def end_of(main: Main, job: str) -> object:
    return next(event for event in main.keeper.follow(job) if isinstance(event, END))


def began(folder: Path) -> set[int]:
    return {seed for word, seed, _ in read_made(folder) if word == "began"}


def hear(main: Main, job: str) -> list[str]:
    return [str(each.sentence) for each in main.keeper.get_progress(job).said if isinstance(each, Note)]


@pytest.mark.slow
def test_it_runs_where_there_is_room_and_what_fits_passes_it_here(main: Main) -> None:
    here, there = main.keeper.home.root, main.helpers[0].home
    pace(there, step_s=0.4)
    large = submit(main, LARGE, 100, batch=2)
    until(lambda: bool(began(there) & {100, 101}), LOADING_S)
    name = main.hub.list_machines()[0].name
    assert hear(main, large) == [f"Too large for this computer; runs on {name}."]
    small = submit(main, SMALL, 200)
    assert isinstance(end_of(main, small), Finished)
    until(lambda: not main.keeper.state.job)
    pass_turns(of=Spreader, turn="_look")
    assert main.keeper.journal.get(large).state == "running", "it is not put back for the idle engine here"
    end = end_of(main, large)
    assert isinstance(end, Finished) and len(end.files) == 2
    assert [each.plan.get("machine") for each in main.keeper.shelf.list_of_job(large)] == [name, name]
    assert began(here) == {200}, "the engine here had nothing else to do"


@pytest.mark.slow
def test_it_waits_for_a_machine_that_has_room_but_other_work(main: Main) -> None:
    here, there = main.keeper.home.root, main.helpers[0].home
    pace(there, step_s=0.4)
    first, second = submit(main, LARGE, 300), submit(main, LARGE, 301)
    until(lambda: 300 in began(there), LOADING_S)
    until(lambda: hear(main, second) == ["Too large for this computer; waits for another one that has room."])
    pass_turns(of=Spreader, turn="_look")
    assert main.keeper.journal.get(second).state == "queued" and not main.keeper.state.job and len(hear(main, second)) == 1
    assert isinstance(end_of(main, first), Finished) and isinstance(end_of(main, second), Finished)
    assert not began(here) & {300, 301}


@pytest.mark.slow
def test_a_script_whose_voice_goes_from_part_to_part_is_left_as_a_whole(main: Main) -> None:
    here, there = main.keeper.home.root, main.helpers[0].home
    pace(there, step_s=0.05)
    whole = mock.patch.object(spreader, "find_pieces", return_value=None)  # as for such a voice
    with whole, mock.patch.object(room.Room, "is_too_large", return_value=True):
        script = SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=700)
        job = main.keeper.submit(script).id
        assert isinstance(end_of(main, job), Finished)
    assert hear(main, job) == [f"Too large for this computer; runs on {main.hub.list_machines()[0].name}."]
    assert {700, 701} <= began(there) and not began(here) & set(range(700, 800))


@pytest.mark.slow
def test_the_forecast_knows_who_has_room(main: Main) -> None:
    assert main.spreader is not None
    name = main.hub.list_machines()[0].name
    assert main.spreader.find_room(PictureRequest("a ball", model=LARGE)) == name
    assert main.spreader.find_room(PictureRequest("a ball", model=LARGEST)) == "", "nor there"
    assert main.spreader.find_room(PictureRequest("a ball", model="sd35-medium")) == "", "the model is not there"


@pytest.mark.slow
def test_too_large_for_all_is_tried_here_at_once(main: Main) -> None:
    pace(main.keeper.home.root, step_s=0.01)
    began_s = time.monotonic()
    job = submit(main, LARGEST, 400)
    assert isinstance(end_of(main, job), Finished), "the light painter does it all the same"
    assert 400 in began(main.keeper.home.root) and time.monotonic() - began_s < room.MAY_COME_S / 2


@pytest.mark.slow
def test_those_far_behind_in_the_queue_wait_as_well(main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks about each of them, as only the head of the queue is given away."""
    monkeypatch.setattr(room, "MAY_COME_S", 1.0)
    pace(main.helpers[0].home, step_s=0.05)
    seeds = range(600, 604 + spreader.LOOKED_AT)
    for job in [submit(main, LARGE, seed) for seed in seeds]:
        assert isinstance(end_of(main, job), Finished)
    assert not began(main.keeper.home.root) & {*seeds}


@pytest.mark.slow
def test_it_waits_for_a_machine_that_was_lost_and_may_come_back(main: Main, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside one that has the model and no room: it is not waited for, nor is the job left to it."""
    here, helper = main.keeper.home.root, main.helpers[0]
    put_models(tmp_path, [LARGE])
    small = main.start_helper(tmp_path, words=("--pretend", "m1-8gb"))
    pace(helper.home, step_s=1.0)
    job = submit(main, LARGE, 500)
    until(lambda: 500 in began(helper.home), LOADING_S)
    helper.kill()
    until(lambda: main.keeper.journal.get(job).state == "queued", LOADING_S)
    pass_turns(of=Spreader, turn="_look")
    assert main.keeper.journal.get(job).state == "queued" and 500 not in began(here)
    pace(helper.home, step_s=0.01)
    main.helpers[0] = start(helper.home, words=("--pretend", "cpu"))
    assert isinstance(end_of(main, job), Finished) and 500 not in began(here) | began(small.home)

    main.helpers[0].kill()
    until(lambda: not main.hub.list_machines()[0].online, LOADING_S)
    monkeypatch.setattr(room, "MAY_COME_S", 3.0)
    began_s = time.monotonic()
    job = submit(main, LARGE, 501)
    assert isinstance(end_of(main, job), Finished) and time.monotonic() - began_s > 2.5
    assert 501 in began(here) - began(small.home), "nobody came"


@pytest.mark.slow
def test_what_fails_at_one_machine_goes_to_another_that_has_room(main: Main, tmp_path: Path) -> None:
    """And comes here where both fail, with a sentence; each is asked once."""
    here, first = main.keeper.home.root, main.helpers[0]
    put_models(tmp_path / "second", [LARGE])
    second = main.start_helper(tmp_path / "second", words=("--pretend", "cpu"))
    for seed, able in ((800, second), (801, None)):
        for helper in (first, second):
            pace(helper.home, step_s=0.05, fails=helper is not able)
        job = submit(main, LARGE, seed)
        assert isinstance(end_of(main, job), Finished)
        made = {folder: [word for word, which, _ in read_made(folder) if which == seed] for folder in (first.home, second.home, here)}
        assert made[first.home].count("began") <= 1 and made[second.home].count("began") == 1, made
        assert ("began" in made[here]) is (able is None)
    assert [str(room.IN_VAIN)] == hear(main, job)
    second.end()
    main.helpers.remove(second)
    pace(first.home, step_s=0.01)
