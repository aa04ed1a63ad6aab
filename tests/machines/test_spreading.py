"""A batch over several machines, for real: helpers in processes of their own, TLS on, killed, stopped, removed; each picture once on the shelf."""

from __future__ import annotations

import random
import shutil
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from unittest import mock

import psutil
import pytest
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import assets, home
from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.events import END, Finished, PartDone, Stopped
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.speech.sound import sound
from app.machines import spreader
from app.machines.hub import TaskEnd
from app.machines.joining.join import move
from app.machines.lending import lending_folder
from app.machines.tasks.portable import pack
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.state.settings import Settings
from app.ui.tabs import paint_view
from tests.support.left_behind import leave_something
from tests.support.lent import SLOW_S, Main, open_main, start
from tests.support.light_painter import pace, read_made
from tests.support.waiting import LOADING_S, WAIT_S, until

pytestmark = pytest.mark.long

MODEL = "starter-painter"


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    """With two helpers that every test finds at work again."""
    folder = tmp_path_factory.mktemp("machines")
    with open_main(folder / "main") as main:
        for name in ("one", "two"):
            main.start_helper(folder / name)
        yield main


def submit(main: Main, batch: int, seed: int, step_s: float = SLOW_S, **more: object) -> str:
    pace(main.keeper.home.root, step_s=step_s)
    return main.keeper.submit(PictureRequest("a red ball", model=MODEL, batch=batch, seed=seed, **more)).id  # type: ignore[arg-type]


def end_of(main: Main, job: str) -> object:
    return next(event for event in main.keeper.follow(job) if isinstance(event, END))


def finished(folder: Path, since: int) -> list[int]:
    return [seed for word, seed, _ in read_made(folder)[since:] if word == "finished"]


@pytest.mark.slow
def test_a_batch_is_painted_by_all_and_each_picture_is_kept_once(main: Main) -> None:
    folders = [main.keeper.home.root, *(helper.home for helper in main.helpers)]
    before = [len(read_made(folder)) for folder in folders]
    for folder in folders[1:]:  # as slow as here, so that each gets some
        pace(folder, step_s=SLOW_S)
    job = submit(main, 8, 1000)
    events = list(main.keeper.follow(job))
    for folder in folders[1:]:
        pace(folder, step_s=0.01)
    assert isinstance(events[-1], Finished) and len(events[-1].files) == 8
    assert {event.index for event in events if isinstance(event, PartDone)} == set(range(8))
    made = [finished(folder, since) for folder, since in zip(folders, before, strict=True)]
    assert {seed for each in made for seed in each} == set(range(1000, 1008)), f"painted by: {made}"
    assert made[1] and made[2], "a helper did nothing"
    kept = main.keeper.shelf.list_of_job(job)
    assert len(kept) == 8 and len({each.path.read_bytes() for each in kept}) == 8
    assert main.keeper.journal.get(job).state == "finished"
    by = [each.plan.get("machine", "here") for each in kept]
    assert by.count("here") <= len(made[0]) and len({*by} - {"here"}) == 1, "both helpers run on this computer, so they have one name"
    for helper in main.helpers:
        assert not list((helper.home / "creations").iterdir()), "a helper keeps no picture of another's"
        until(lambda: not [*(helper.home / "scratch" / "jobs").rglob("picture-*.png")])  # noqa: B023


@pytest.mark.slow
def test_a_slow_machine_holds_nothing_up(main: Main) -> None:
    one = main.helpers[0].home
    pace(one, step_s=5.0)
    try:
        began_s = time.monotonic()
        job = submit(main, 4, 1500, step_s=2.0)  # here a picture takes 20 s, on one helper 50, on the other a moment
        end = end_of(main, job)
        assert isinstance(end, Finished) and len(end.files) == 4
        assert time.monotonic() - began_s < 20, "a slow machine was waited for"
        assert set(finished(main.helpers[1].home, 0)) >= set(range(1500, 1504))
        assert len(main.keeper.shelf.list_of_job(job)) == 4
    finally:
        pace(one, step_s=0.01)


@pytest.mark.slow
def test_a_single_picture_is_made_by_whoever_is_faster(main: Main) -> None:
    began_s = time.monotonic()
    job = submit(main, 1, 1600, step_s=4.0)  # 40 s here
    end = end_of(main, job)
    assert isinstance(end, Finished) and time.monotonic() - began_s < 30, "the slow machine was waited for"
    (kept,) = main.keeper.shelf.list_of_job(job)
    assert kept.plan.get("machine") and read_made(main.keeper.home.root)[-1][:2] == ("overtaken", 1600)


@pytest.mark.slow
def test_a_waiting_script_is_spoken_by_all_and_no_slow_machine_is_waited_for(main: Main) -> None:
    one, two = (helper.home for helper in main.helpers)
    before = [len(read_made(folder)) for folder in (one, two)]
    for folder, step_s in ((one, 5.0), (two, 0.05)):
        pace(folder, step_s=step_s)
    try:
        here = main.occupy(6.0)
        began_s = time.monotonic()
        job = main.keeper.submit(
            SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=3100, loudness_lufs=None, tail_s=0.0)
        ).id
        events = list(main.keeper.follow(job))
        assert isinstance(events[-1], Finished) and time.monotonic() - began_s < 40, "a part takes 50 s there"
        assert main.keeper.journal.get(here).state == "running", "it waited for nothing here"
        began = [
            {seed for word, seed, _ in read_made(folder)[since:] if word == "began"}
            for folder, since in zip((one, two), before, strict=True)
        ]
        total = len({event.index for event in events if isinstance(event, PartDone)})
        assert total >= 6 and began[1] >= set(range(3100, 3100 + total)) and any(seed >= 3100 for seed in began[0])
        (kept,) = main.keeper.shelf.list_of_job(job)
        samples, _ = sound.read(kept.path)
        levels = [samples[int((index + 0.5) * len(samples) / total)] for index in range(total)]
        assert levels == pytest.approx([0.1 + index / 100 for index in range(total)], abs=1e-3) and kept.seconds > 0
    finally:
        pace(one, step_s=0.01)
        pace(two, step_s=0.01)
        main.keeper.stop(here)
        end_of(main, here)
        until(lambda: read_made(one)[-1][0] == "stopped")


@pytest.mark.slow
def test_the_cells_of_a_grid_are_painted_by_all(main: Main) -> None:
    """Each is a job of its own; the last ones wait for no slow machine."""
    folders = [main.keeper.home.root, *(helper.home for helper in main.helpers)]
    before = [len(read_made(folder)) for folder in folders]
    desk, words = Desk(main.keeper, Settings(main.keeper.home.settings)), ["a ball", "a red ball", "a large red ball"]
    pace(folders[0], step_s=1.0)
    for folder in folders[1:]:  # quicker than here, and so slow that neither makes all of them before the other has answered
        pace(folder, step_s=0.3)
    desk.jobs.begin_grid(PictureRequest("a cell", model=MODEL, seed=1800), ("prompt", words), ("steps", [4, 8]), OWNER)
    jobs = [job for row in desk.jobs.grids[OWNER.name].jobs for job in row]
    for job in jobs:
        assert isinstance(end_of(main, job), Finished)
    found = paint_view.list_grid_files(desk, OWNER)
    assert found is not None and found[:2] == (tuple(words), ("4", "8"))
    for place, file in enumerate(found[2]):
        assert file is not None
        with Image.open(file) as picture:
            assert picture.getpixel((9, 9)) == (1800 % 256, 1800 // 256, len(words[place % 3])), "the picture of another cell"
    assert all(len(main.keeper.shelf.list_of_job(job)) == 1 for job in jobs)
    by = [main.keeper.shelf.list_of_job(job)[0].plan.get("machine", "here") for job in jobs]
    made = [finished(folder, since) for folder, since in zip(folders, before, strict=True)]
    assert made[1] and made[2] and by.count("here") <= len(made[0]) < len(jobs), f"painted by: {by}, {made}"
    for folder in folders[1:]:
        pace(folder, step_s=0.01)


@pytest.mark.slow
def test_a_machine_that_has_ended_a_task_waits_for_no_tick(main: Main) -> None:
    one, two = (helper.home for helper in main.helpers)
    pace(two, step_s=5.0)
    before = len(read_made(one))
    with mock.patch.object(spreader, "TICK_S", 4.0):
        job = submit(main, 8, 1700, step_s=4.0)
        assert isinstance(end_of(main, job), Finished)
    pace(two, step_s=0.01)
    made_s = [when for word, _, when in read_made(one)[before:] if word == "finished"]
    assert len(made_s) >= 6 and median(later - earlier for earlier, later in pairwise(made_s)) < 2.0


@pytest.mark.slow
def test_the_parts_of_a_script_are_spoken_by_all(main: Main) -> None:
    folders = [main.keeper.home.root, *(helper.home for helper in main.helpers)]
    before = [len(read_made(folder)) for folder in folders]
    for folder in folders:  # all alike, and slow beside the second that a machine which is asked may take to answer
        pace(folder, step_s=1.0)
    job = main.keeper.submit(SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=3000)).id
    events = list(main.keeper.follow(job))
    assert isinstance(events[-1], Finished) and len(events[-1].files) == 1, events[-1]
    told = {event.index: event.total for event in events if isinstance(event, PartDone)}
    total = told[0]
    assert total >= 6 and set(told) == set(range(total))
    made = [finished(folder, since) for folder, since in zip(folders, before, strict=True)]
    assert {seed for each in made for seed in each} == set(range(3000, 3000 + total)), f"spoken by: {made}"
    assert made[1] and made[2] and len(made[0]) < total, f"spoken by: {made}"
    for folder in folders[1:]:
        pace(folder, step_s=0.01)
    (kept,) = main.keeper.shelf.list_of_job(job)
    samples, _ = sound.read(kept.path)
    levels = [samples[int((index + 0.5) * len(samples) / total)] for index in range(total)]
    assert levels == pytest.approx([0.1 + index / 100 for index in range(total)], abs=1e-3), "each part once, in its place"


def test_stop_ends_every_machine_after_the_step_that_it_is_at(main: Main) -> None:
    """By each engine's own clock; what it takes to hear of it is printed."""
    folders = [helper.home for helper in main.helpers]
    before = [len(read_made(folder)) for folder in folders]

    def find(word: str) -> list[float]:
        """Return when each helper did that first."""
        made = [read_made(folder)[since:] for folder, since in zip(folders, before, strict=True)]
        return [next(when for said, _, when in each if said == word) for each in made if any(said == word for said, *_ in each)]

    for folder in folders:
        pace(folder, step_s=0.5)
    try:
        job = submit(main, 6, 2000, step_s=0.5)
        until(lambda: len(find("began")) == len(folders), LOADING_S)
        asked_s = time.time()
        main.keeper.stop(job)
        assert isinstance(end_of(main, job), Stopped)
        until(lambda: len(find("stopped")) == len(folders))
        heard, stopped = find("heard"), find("stopped")
        print(
            "heard after", *(f"{when - asked_s:.2f} s" for when in heard), "stopped after", *(f"{when - asked_s:.2f} s" for when in stopped)
        )
        for folder, since in zip(folders, before, strict=True):
            words = [word for word, *_ in read_made(folder)[since:]]
            assert "finished" not in words[words.index("heard") :], words
    finally:
        for folder in folders:
            pace(folder, step_s=0.01)


@pytest.mark.slow
def test_a_task_that_is_stopped_at_its_beginning_is_not_left_to_itself(main: Main) -> None:
    one, task, ends = main.helpers[0].home, pack(PictureRequest("a ball", model=MODEL, seed=2900)), SimpleQueue[TaskEnd]()
    machine = main.hub.list_machines()[0].id
    pace(one, step_s=9.0)  # a picture takes 90 s, and a step is waited for when it is stopped
    for number in range(60):
        main.hub.submit(f"brief-{number}", task, machine, lambda machine, event: None, ends.put)
        time.sleep(number * 0.001)
        main.hub.stop(f"brief-{number}")
    pace(one, step_s=0.01)
    main.hub.submit("last", task, machine, lambda machine, event: None, ends.put)
    end = ends.get(timeout=WAIT_S)
    assert end.id == "last" and isinstance(end.event, Finished)


@pytest.mark.slow
def test_a_helper_that_fails_holds_nothing_up(main: Main) -> None:
    for helper in main.helpers:
        pace(helper.home, step_s=0.01, fails=True)
    try:
        job = submit(main, 4, 3000, step_s=0.5)
        until(lambda: any(each.failed is not None and each.failed.key == "helper.failed" for each in main.hub.list_machines()))
        pace(main.keeper.home.root, step_s=0.01)
        end = end_of(main, job)
        assert isinstance(end, Finished) and len(end.files) == 4
    finally:
        for helper in main.helpers:
            pace(helper.home, step_s=0.01)


@pytest.mark.slow
def test_a_machine_that_lacks_the_model_says_so(main: Main) -> None:
    assert main.spreader is not None
    pace(main.keeper.home.root, step_s=SLOW_S)
    job = main.keeper.submit(PictureRequest("a red ball", model="sd15", batch=2, seed=3500)).id

    def say_why() -> set[str | None]:
        said = [main.spreader.explain_unused(each) for each in main.hub.list_machines()]  # type: ignore[union-attr]
        return {each.key if each is not None else None for each in said}

    until(lambda: say_why() == {"unused.lacks"}, LOADING_S)
    assert isinstance(end_of(main, job), Finished)
    until(lambda: say_why() == {None})


@pytest.mark.slow
def test_a_model_that_cannot_be_sent_says_so(main: Main, tmp_path: Path) -> None:
    """Whether it runs here or waits."""
    spreader = main.spreader
    assert spreader is not None
    pace(main.keeper.home.root, step_s=2.0)
    folder = Path(shutil.copytree(assets() / "starter" / "painter", tmp_path / "My painter"))
    (folder / "spiece.model").touch()

    def say_why() -> set[str]:
        return {said.key for each in main.hub.list_machines() if (said := spreader.explain_unused(each))}

    for jobs in ((str(folder),), (MODEL, str(folder))):
        batch = 2 if len(jobs) == 1 else 1
        asked = [main.keeper.submit(PictureRequest("a red ball", model=model, batch=batch, seed=3600, steps=20)).id for model in jobs]
        until(lambda: main.keeper.state.job == asked[0])  # noqa: B023 (asked at once)
        until(lambda: say_why() == {"unused.stays"})
        assert main.keeper.state.job == asked[0], "it was said only when its turn had come"
        for job in asked:
            main.keeper.stop(job)
            end_of(main, job)
        until(lambda: not say_why())


@pytest.mark.slow
def test_a_picture_to_start_from_travels_by_its_hash(main: Main, tmp_path: Path) -> None:
    from PIL import Image

    start = tmp_path / "start.png"
    Image.frombytes("RGB", (1000, 1000), random.Random(3).randbytes(3_000_000)).save(start)
    assert start.stat().st_size > 2 << 20, "more than one piece"
    job = submit(main, 4, 4000, image=str(start))
    end = end_of(main, job)
    assert isinstance(end, Finished) and len(end.files) == 4
    colours = {Image.open(file).getpixel((3, 3)) for file in end.files}
    assert len(colours) == 1, "one of them did not start from the picture"
    assert any(finished(helper.home, 0)[-1] >= 4000 for helper in main.helpers)


@pytest.mark.slow
def test_the_helpers_own_job_goes_first(main: Main) -> None:
    one = main.helpers[0]
    before = len(read_made(one.home))
    for helper in main.helpers:  # so slow that each gets a picture before another has made all
        pace(helper.home, step_s=0.5)
    job = submit(main, 4, 4500, step_s=0.5)
    until(lambda: any(word == "began" for word, *_ in read_made(one.home)[before:]), LOADING_S)
    database = Database(home(one.home).database)
    try:
        own = Journal(database).queue(PictureRequest("his own"), Choice())  # as his window would, another process of the same home
        until(lambda: main.hub.list_machines()[0].paused)
        until(lambda: read_made(one.home)[-1][0] in ("stopped", "overtaken"))
        end = end_of(main, job)
        assert isinstance(end, Finished) and len(end.files) == 4
        Journal(database).withdraw(own.id)
        until(lambda: not main.hub.list_machines()[0].paused)
    finally:
        database.close()
        for helper in main.helpers:
            pace(helper.home, step_s=0.01)


@pytest.mark.slow
def test_a_task_waits_for_its_machine_that_is_killed(main: Main) -> None:
    pace(main.helpers[0].home, step_s=0.3)
    ends: SimpleQueue[TaskEnd] = SimpleQueue()
    task = pack(PictureRequest("a ball", model=MODEL, seed=4900))
    machine = main.hub.list_machines()[0].id
    for _ in range(2):
        main.hub.submit("task", task, machine, lambda machine, event: None, ends.put)
    until(lambda: main.hub.list_machines()[0].step is not None)
    main.helpers[0].kill()
    main.helpers[0] = start(main.helpers[0].home)
    end = ends.get(timeout=LOADING_S)
    assert isinstance(end.event, Finished) and end.machine == machine and [*end.files] == ["picture-0.png"]
    assert ends.empty(), "the same task twice"
    for helper in main.helpers:
        pace(helper.home, step_s=0.01)
    until(lambda: all(each.online and not each.paused for each in main.hub.list_machines()), LOADING_S)


@pytest.mark.slow
def test_a_helper_killed_in_the_middle_and_started_again(main: Main) -> None:
    one = main.helpers[0]
    before = len(read_made(one.home))
    pace(one.home, step_s=0.5)
    job = submit(main, 6, 5000)
    until(lambda: any(word == "began" for word, *_ in read_made(one.home)[before:]), LOADING_S)
    one.kill()
    until(lambda: not main.find(one).online)
    end = end_of(main, job)
    assert isinstance(end, Finished) and len(end.files) == 6 and len(main.keeper.shelf.list_of_job(job)) == 6
    pace(one.home, step_s=0.01)
    main.helpers[0] = start(one.home)
    until(lambda: main.hub.list_machines()[0].online, LOADING_S)


@pytest.mark.slow
def test_a_helper_that_falls_asleep_is_not_waited_for_and_comes_back(main: Main) -> None:
    one = main.helpers[0]
    before = len(read_made(one.home))
    pace(one.home, step_s=0.5)
    job = submit(main, 6, 5500)
    until(lambda: any(word == "began" for word, *_ in read_made(one.home)[before:]), LOADING_S)
    asleep = one.list_processes()
    for each in asleep:
        each.suspend()
    try:
        end = end_of(main, job)
        assert isinstance(end, Finished) and len(end.files) == 6
        assert not finished(one.home, before), "it was waited for"
        until(lambda: not main.find(one).online, LOADING_S)
    finally:
        for each in asleep:
            each.resume()
    until(lambda: main.find(one).online, LOADING_S)
    pace(one.home, step_s=0.01)
    kept = main.keeper.shelf.list_of_job(job)
    assert len(kept) == 6 and len({each.path.read_bytes() for each in kept}) == 6, "what it ends after waking is kept by nobody"
    before = len(read_made(one.home))
    assert isinstance(end_of(main, submit(main, 8, 5600)), Finished) and finished(one.home, before), "it does nothing since it woke"


@pytest.mark.slow
def test_a_killed_machines_process_comes_back_on_either_side(main: Main) -> None:
    for pid in (main.hub.pid, None):
        process = psutil.Process(pid) if pid is not None else find_machines_process(main)
        process.kill()
        process.wait(20)
        until(lambda: not all(each.online for each in main.hub.list_machines()))
        until(lambda: all(each.online for each in main.hub.list_machines()), LOADING_S)
    job = submit(main, 4, 6000)
    end = end_of(main, job)
    assert isinstance(end, Finished) and len(end.files) == 4


def find_machines_process(main: Main) -> psutil.Process:
    """The helper's child that holds a connection to the main machine."""
    below = psutil.Process(main.helpers[0].process.pid).children()
    return next(each for each in below if any(c.raddr and c.raddr.port == main.hub.port for c in each.net_connections()))


@pytest.mark.slow
def test_a_helper_says_that_it_cannot_reach_the_main_machine_only_after_trying(main: Main) -> None:
    two = main.helpers[1]
    two.end()
    main.helpers[1] = two = start(two.home)
    until(lambda: two.said("Ready to help"), LOADING_S)
    assert two.said("Connecting to") and not two.said("cannot be reached"), two.log
    two.end()
    membership = lending_folder(home(two.home))
    with socket.socket() as unanswered:  # bound and not listening
        unanswered.bind(("127.0.0.1", 0))
        move(membership, *unanswered.getsockname())
        main.helpers[1] = two = start(two.home)
        until(lambda: two.said("cannot be reached"), LOADING_S)
    two.end()
    move(membership, "127.0.0.1", main.hub.port)
    main.helpers[1] = start(two.home)
    until(lambda: main.hub.list_machines()[1].online, LOADING_S)


@pytest.mark.slow
def test_a_removed_machine_is_dropped_at_once_and_told(main: Main) -> None:
    two = main.helpers[1]
    removed = main.find(two)
    left = leave_something(home(two.home))
    began_s = time.monotonic()
    main.hub.remove(removed.id)
    until(lambda: two.said("no longer uses this computer"), LOADING_S)
    assert removed.id not in {each.id for each in main.hub.list_machines()}
    assert time.monotonic() - began_s < LOADING_S
    until(lambda: [file.exists() for file in left] == [False, False, True])
    job = submit(main, 3, 7000, step_s=0.05)
    assert isinstance(end_of(main, job), Finished)
    assert not any(seed >= 7000 for seed in finished(two.home, 0))
