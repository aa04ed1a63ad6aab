"""Whole jobs that wait go to idle machines: kept once, stopped, and done here where no other machine can."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from PIL import Image

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import home
from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.events import END, Finished, Note, Stopped
from app.engine.jobs.journal import Job, Journal
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper.state import EngineState
from app.machines import helping_machine, shared_job, spreader
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import TaskEnd
from app.machines.outlook import UNKNOWN_S, Foresight, Outlook
from app.machines.shared_job import all_of
from app.machines.spreader import Spreader
from app.machines.tasks import begun
from tests.support.lent import Main, open_main, start
from tests.support.light_painter import pace, read_made
from tests.support.other_functions import set_in
from tests.support.waiting import LOADING_S, until

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Main]:
    folder = tmp_path_factory.mktemp("machines")
    with open_main(folder / "main") as main:
        main.start_helper(folder / "helper")
        yield main


def submit(main: Main, seed: int, batch: int = 1) -> str:
    return main.keeper.submit(PictureRequest("a ball", model="starter-painter", seed=seed, batch=batch)).id


def end_of(main: Main, job: str) -> object:
    return next(event for event in main.keeper.follow(job) if isinstance(event, END))


@pytest.mark.slow
def test_a_waiting_job_is_done_elsewhere_and_kept_once(main: Main) -> None:
    here = main.occupy(9.0)
    there = submit(main, 10, batch=12)
    end = end_of(main, there)
    assert isinstance(end, Finished) and len(end.files) == 12
    assert main.keeper.journal.get(here).state == "running", "it was done meanwhile"
    kept = main.keeper.shelf.list_of_job(there)
    assert [each.path.read_bytes()[:4] for each in kept] == [b"\x89PNG"] * 12 and len({each.path.read_bytes() for each in kept}) == 12
    assert {(each.plan["machine"] != "", each.model, each.rate, each.whole) for each in kept} == {(True, "starter-painter", 0.0, True)}
    assert main.keeper.journal.get(there).state == "finished"
    assert not [each for each in main.keeper.get_progress(there).said if isinstance(each, Note)], "it is not too large"
    main.keeper.stop(here)
    assert isinstance(end_of(main, here), Stopped)
    made = read_made(main.keeper.home.root)
    assert {seed for _, seed, _ in made} == {1}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 2])
def test_previews_of_another_machine_are_shown(batch: int, main: Main) -> None:
    helper = main.helpers[0].home
    pace(helper, step_s=0.3, previews=True)
    here = main.occupy(3.0)
    there = submit(main, 20, batch)
    until(lambda: main.keeper.get_progress(there).preview is not None, LOADING_S)
    shown = main.keeper.get_progress(there).preview
    assert shown is not None and shown.step >= 1
    step = main.keeper.get_progress(there).step
    assert (step is not None and step.done >= 1) is (batch == 1), "the steps of a single picture, not of several at once"
    with Image.open(shown.path) as picture:
        assert (picture.format, picture.size) == ("JPEG", (256, 192)) and picture.getpixel((9, 9))[0] > 250  # type: ignore[index]
    assert Path(shown.path).parent == main.keeper.folder(there)
    assert isinstance(end_of(main, there), Finished)
    assert main.keeper.get_progress(there).preview is None
    pace(helper, step_s=0.01)
    main.keeper.stop(here)
    end_of(main, here)


@pytest.mark.slow
def test_a_waiting_batch_is_shared_by_helpers_and_by_an_engine_with_nothing_else_to_do(main: Main, tmp_path: Path) -> None:
    second = main.start_helper(tmp_path / "second", step_s=0.1)
    folders = [helper.home for helper in main.helpers]
    for folder in folders:
        pace(folder, step_s=0.1)
    before = [len(read_made(folder)) for folder in (*folders, main.keeper.home.root)]
    here = main.occupy(0.3)
    there = submit(main, 500, batch=16)
    assert isinstance(end_of(main, here), Finished)
    pace(main.keeper.home.root, step_s=0.05)
    end = end_of(main, there)
    made = [
        [seed for word, seed, _ in read_made(folder)[since:] if word == "finished"]
        for folder, since in zip((*folders, main.keeper.home.root), before, strict=True)
    ]
    second.end()
    main.helpers.remove(second)
    assert isinstance(end, Finished) and len(end.files) == 16
    assert {seed for each in made for seed in each} == {1, *range(500, 516)}
    assert made[0] and made[1] and len(made[2]) > 1, f"painted by: {made}"
    kept = main.keeper.shelf.list_of_job(there)
    assert len(kept) == 16 and len({each.path.read_bytes() for each in kept}) == 16


def test_stop_reaches_it(main: Main) -> None:
    helper = main.helpers[0].home
    pace(helper, step_s=0.5)
    here = main.occupy(1.0)
    there = submit(main, 30)
    until(lambda: any(seed == 30 for _, seed, _ in read_made(helper)), LOADING_S)
    main.keeper.stop(there)
    assert isinstance(end_of(main, there), Stopped) and main.keeper.journal.get(there).state == "stopped"
    until(lambda: any(word == "stopped" and seed == 30 for word, seed, _ in read_made(helper)))
    assert not any((word, seed) == ("finished", 30) for word, seed, _ in read_made(helper))
    pace(helper, step_s=0.01)
    main.keeper.stop(here)
    end_of(main, here)  # before the next one waits behind it, and goes to the helper


@pytest.mark.slow
def test_a_job_comes_back_from_a_machine_whose_owner_needs_it(main: Main) -> None:
    helper = main.helpers[0].home
    pace(helper, step_s=0.5)
    main.occupy(0.4)
    there = submit(main, 40)
    until(lambda: any(seed == 40 for _, seed, _ in read_made(helper)), LOADING_S)
    database = Database(home(helper).database)
    try:
        own = Journal(database).queue(PictureRequest("his own"), Choice())  # as his window would, another process of the same home
        end = end_of(main, there)
        assert isinstance(end, Finished) and main.keeper.shelf.list_of_job(there)[0].plan.get("machine") is None
        Journal(database).withdraw(own.id)
        until(lambda: not main.hub.list_machines()[0].paused)
    finally:
        database.close()
        pace(helper, step_s=0.01)


@pytest.mark.slow
def test_a_whole_script_comes_back_from_a_machine_that_is_too_slow(main: Main) -> None:
    """Its parts are spoken one after another; those that are there already are not spoken again. The engine here is busy until one is
    there, however long that takes on a machine at other work."""
    helper = main.helpers[0].home
    pace(helper, step_s=0.5)
    whole = mock.patch.object(spreader, "find_pieces", return_value=None)  # as for a voice that goes from part to part
    said = mock.patch.object(Foresight, "foresee", return_value=Outlook("fits", True, 12.0))
    with whole, said:
        here = main.occupy(3.0)
        script = SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=4000)
        there = main.keeper.submit(script).id
        until(lambda: (main.keeper.folder(there) / "part-000.json").is_file(), LOADING_S)
        assert main.keeper.journal.get(here).state == "running"
        pace(main.keeper.home.root, step_s=0.01)
        main.keeper.stop(here)
        assert isinstance(end_of(main, here), Stopped)
        began_s = time.monotonic()
        assert isinstance(end_of(main, there), Finished) and time.monotonic() - began_s < 25, "the rest takes 45 s there"
    made = [seed for word, seed, _ in read_made(main.keeper.home.root) if word == "finished" and seed >= 4000]
    assert 4000 not in made and 4009 in made
    pace(helper, step_s=0.01)


class Table:
    """A queue and its machines, without an engine; it notes what was given to whom, and what came of that."""

    def __init__(self, folder: Path, *machines: HelpingMachine, **keeper: object) -> None:
        self.machines, self.given, self.told = [*machines], dict[str, str](), list[tuple[str, str]]()
        self.outlooks, self.asked, self.waiting = dict[str, Outlook](), set[PictureRequest](), list[Job]()
        self.state, self.judged = "running", helping_machine.Judged()
        self.ends = dict[str, Callable[[TaskEnd], None]]()
        self.stops = list[Callable[[], None]]()
        hub: Any = SimpleNamespace(
            list_machines=lambda: self.machines, submit=self._submit, stop=self.given.pop, judged=self.judged, name=str, ask=None
        )
        asking = SimpleNamespace(find=lambda job, machine: self.outlooks.get(job), choose=self._choose)
        models = SimpleNamespace(name=str, want=lambda machines, model: None)
        journal = SimpleNamespace(list_waiting=lambda: self.waiting, find=lambda job: SimpleNamespace(state=self.state))
        self.keeper: Any = SimpleNamespace(
            home=home(folder),
            journal=journal,
            state=EngineState(ready=True, job="own"),
            folder=lambda job: folder,
            leaves=None,
            lend_out=lambda job, model, stop: self.stops.append(stop) or job,
            read_setup=lambda choice, yields: None,
            give_up_lent_out=lambda job: self.told.append(("put back", job)),
            end_lent_out=lambda job, *_: self.told.append(("ended", job)),
            tell_lent_out=lambda job, note: self.told.append(("said", str(note.sentence))),
        )
        vars(self.keeper).update(keeper)
        asks = mock.patch.object(spreader, "Asking", return_value=asking)
        with asks, mock.patch.object(spreader, "KnownModels", return_value=models):
            self.spreader = Spreader(self.keeper, hub)  # type: ignore[arg-type]
        self.spreader._alone = "own"

    def _submit(self, task: str, portable: object, machine: str, tell: object, end: Any, **_: object) -> None:
        self.given[task], self.ends[task] = machine, end

    def _choose(self, job: str, request: PictureRequest, machines: list[HelpingMachine]) -> list[HelpingMachine]:
        self.asked.add(request)
        return machines if job in self.outlooks else []

    def share(self, request: PictureRequest | SpeechRequest, whole: bool = False) -> None:
        """Give a waiting job away."""
        self.outlooks.setdefault("job", Outlook(loaded=True, seconds=UNKNOWN_S))
        job = Job("job", OWNER, request, Choice(), "queued", 0, "", 0.0, None)
        with mock.patch.object(spreader, "find_pieces", return_value=None) if whole else nullcontext():
            self.spreader._send(job, "starter-voice" if whole else "starter-painter", self.machines, False)


def test_the_engine_here_is_idle_while_all_that_waits_is_left_to_others(tmp_path: Path) -> None:
    table = Table(tmp_path, state=EngineState(ready=True))
    waiting: list[Any] = ["too large"]
    table.waiting = waiting
    with mock.patch.object(table.spreader._room, "waits", side_effect=lambda job, machines: job == "too large"):
        assert table.spreader._is_idle_here(table.machines)
        waiting.append("small")
        assert not table.spreader._is_idle_here(table.machines)
        table.keeper.state = EngineState(ready=True, job="running")
        assert not table.spreader._is_idle_here(table.machines)
    assert table.keeper.leaves == table.spreader._room.pass_over
    table.spreader.start().close()
    assert table.keeper.leaves("too large") is False, "the engine here does it all"


def test_stop_takes_back_what_others_have_before_the_engine_here_has_ended_its_step(tmp_path: Path) -> None:
    table = Table(tmp_path, *(HelpingMachine(each, each, online=True, models=frozenset({"starter-painter"})) for each in "ab"))
    table.share(PictureRequest("a ball", "starter-painter", seed=1, batch=4))
    at = table.spreader._jobs["job"]
    at.where = "here"
    assert table.given
    table.keeper.stops("job")
    table.keeper.stops("another")
    at.give_away(table.machines, (), here=True, joins=True)
    assert not table.given, "and they get nothing more of it"


def test_a_machine_that_is_about_to_answer_for_a_job_does_not_get_one_behind_it(tmp_path: Path) -> None:
    table, sent = Table(tmp_path, HelpingMachine("a", "Attic", online=True, models=frozenset({"sd15"}))), list[str]()
    table.outlooks = {"second": Outlook()}
    table.waiting = [
        Job(each, OWNER, PictureRequest("a ball", "sd15", batch=6), Choice(), "queued", 0, "", 0.0, None) for each in ("first", "second")
    ]
    send = mock.patch.object(Spreader, "_send", side_effect=lambda job, *rest: sent.append(job.id))
    with send, mock.patch.object(table.spreader._room, "waits", return_value=False):
        table.spreader._look()
        assert sent == []
        table.outlooks["first"] = Outlook()
        table.spreader._look()
    assert sent[0] == "first" and table.asked == {PictureRequest("a ball", "sd15")}, "how long a picture takes, not all of them"


def test_what_is_stopped_on_its_way_back_is_stopped_elsewhere(tmp_path: Path) -> None:
    """It was put back as the engine here had nothing else to do."""
    table = Table(tmp_path, HelpingMachine("a", "Attic", online=True, models=frozenset({"starter-painter"})))
    table.share(PictureRequest("a ball", "starter-painter", batch=4, seed=1))
    table.keeper.state = EngineState(ready=True)
    table.state = "queued"
    table.spreader._look()
    assert table.told == [("put back", "job")] and [*table.given.values()] == ["a", "a"], "the machine goes on"
    table.state = "stopped"
    table.spreader._look()
    assert not table.given and not table.spreader._jobs


def test_a_job_that_is_stopped_while_it_is_given_away_goes_to_nobody(tmp_path: Path) -> None:
    table = Table(tmp_path, HelpingMachine("a", "Attic", online=True, models=frozenset({"starter-painter"})))
    table.keeper.lend_out = lambda job, model, stop: stop() or job  # in another thread
    table.share(PictureRequest("a ball", "starter-painter", batch=4, seed=1))
    assert not table.given and not table.spreader._jobs


def test_who_takes_a_job_over_is_named(tmp_path: Path) -> None:
    """Once each, though pieces come and go."""
    table, busy = Table(tmp_path), set[str]()
    at: Any = SimpleNamespace(busy=busy, job=SimpleNamespace(id="job"), named=[])
    machines = [HelpingMachine("a", "Attic"), HelpingMachine("b", "Box"), HelpingMachine("c", "Cellar")]
    for ids in ({"a"}, {"a"}, {"b"}, {"a", "b"}, set[str]()):
        busy.clear()
        busy.update(ids)
        table.spreader._say_where(at, machines)
    assert [said for _, said in table.told] == [
        "Too large for this computer; runs on Attic.",
        "Too large for this computer; runs on Attic, Box.",
    ]
    at.named = None
    table.spreader._say_where(at, machines)
    assert len(table.told) == 2, "one that is not too large is anybody's"


SCRIPT = SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice", seed=1)


def test_a_whole_script_that_a_machine_never_ends_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this computer has no room for it, which nobody is sooner than."""
    now_s = 1000.0
    set_in(monkeypatch, shared_job, "time", monotonic=lambda: now_s)
    table = Table(tmp_path, HelpingMachine("a", "Attic", online=True, models=frozenset({"starter-voice"})))
    table.share(SCRIPT, whole=True)
    assert [*table.given.values()] == ["a"]
    table.spreader._look()
    now_s += 4 * UNKNOWN_S
    table.spreader._look()
    assert table.given and table.spreader._busy == {"a"}
    now_s += 1
    for _ in range(2):
        table.spreader._look()
    assert not table.given and table.told == [("put back", "job")] and not table.spreader._busy
    assert table.judged.unable["job"] == {"a"} and "it did not end within 4 h" in str(table.judged.failed["a"])


def test_a_late_end_is_not_taken_for_that_of_the_machine_that_has_the_script_now(tmp_path: Path) -> None:
    a, b = (HelpingMachine(each, each, online=True, models=frozenset({"starter-voice"})) for each in "ab")
    table = Table(tmp_path, a, b)
    table.share(SCRIPT, whole=True)
    (first,) = table.given
    table.machines = [b]
    table.spreader._look()
    assert table.told == [("put back", "job")] and not table.given
    table.share(SCRIPT, whole=True)
    (second,) = table.given
    table.ends[first](TaskEnd(first, "a", Finished((), 1.0, 1.0, "rows", 0), {}))
    assert first != second and table.given == {second: "b"} and len(table.told) == 1 and not table.judged.failed


def test_a_whole_script_is_ended_by_what_it_comes_with_and_is_given_to_one(tmp_path: Path) -> None:
    """What comes is looked at: the engine here speaks it where it is no sound."""
    a, b = (HelpingMachine(each, each, online=True, models=frozenset({"starter-voice"})) for each in "ab")
    for right in (False, True):
        table = Table(tmp_path, a, b)
        table.share(SCRIPT, whole=True)
        table.spreader._look()
        assert [*table.given.values()] == ["a"]
        (task,) = table.given
        sound = tmp_path / "sound.wav"
        sound.write_bytes(b"junk")
        with mock.patch.object(type(all_of(table.keeper.home, SCRIPT, tmp_path).parts.kind), "is_result", return_value=right):
            table.ends[task](TaskEnd(task, "a", Finished((), 1.0, 1.0, "rows", 0), {"sound.wav": sound}))
        table.spreader._look()
        assert table.told == [("ended" if right else "put back", "job")] and not table.spreader._jobs
        assert (table.judged.unable["job"], table.judged.done["a"]) == ((set(), 1) if right else ({"a"}, 0))


@pytest.mark.slow
def test_a_part_that_is_spoken_again_stays_here() -> None:
    script = SpeechRequest("[S1] hello. good morning. " * 40, model="starter-voice")
    assert not script.stays_here and replace(script, only_parts=(0,)).stays_here


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "batch"), [("fails", 1), ("fails", 2), ("killed", 1)])
def test_what_another_machine_cannot_do_is_done_here(fault: str, batch: int, main: Main) -> None:
    helper = main.helpers[0]
    before = len(read_made(helper.home))
    pace(helper.home, step_s=0.1 if fault == "fails" else 0.5, fails=fault == "fails")
    main.occupy(0.6)
    seed = 60 if fault == "killed" else 50 + 2 * batch
    there = submit(main, seed, batch)
    until(lambda: any(seed <= each < seed + batch for _, each, _ in read_made(helper.home)), LOADING_S)
    if fault == "killed":
        helper.kill()
    end = end_of(main, there)
    kept = main.keeper.shelf.list_of_job(there)
    assert isinstance(end, Finished) and len(kept) == batch
    assert [each.plan.get("machine") for each in kept] == [None] * batch
    asked = [each for word, each, _ in read_made(helper.home)[before:] if word == "began" and seed <= each < seed + batch]
    assert len(asked) <= 2 * batch - 1, "it failed there already"  # what lay ready there may have begun
    pace(helper.home, step_s=0.01)
    if fault == "killed":
        main.helpers[0] = start(helper.home)
        until(lambda: main.hub.list_machines()[0].online, LOADING_S)


@pytest.mark.slow
def test_a_job_whose_machine_is_killed_goes_on_from_its_last_kept_step(main: Main) -> None:
    """First here as nobody else is there, then on another machine that gets it with what was made of it."""
    helper = main.helpers[0]
    for again in (False, True):
        seed = 90 + again
        pace(helper.home, step_s=0.5, keeps=True)
        here = main.occupy(9.0)
        there = submit(main, seed)
        latent = main.keeper.folder(there) / "latent-0.safetensors"
        until(lambda: begun.measure(latent) >= 3, LOADING_S)  # noqa: B023
        helper.kill()
        kept = begun.measure(latent)
        until(lambda: not main.hub.list_machines()[0].online, LOADING_S)
        if again:
            shutil.rmtree(helper.home / "scratch" / "jobs")  # another machine would not have its own either
            main.helpers[0] = helper = start(helper.home)
        else:
            pace(main.keeper.home.root, step_s=0.1)
            main.keeper.stop(here)
        end = end_of(main, there)
        assert isinstance(end, Finished) and len(end.files) == 1
        folder = helper.home if again else main.keeper.home.root
        assert (f"from-{kept}", seed) in {(word, which) for word, which, _ in read_made(folder)}, read_made(folder)[-5:]
        if not again:
            main.helpers[0] = helper = start(helper.home)
        main.keeper.stop(here)
        end_of(main, here)
        until(lambda: main.hub.list_machines()[0].online and not main.hub.list_machines()[0].paused, LOADING_S)
    pace(helper.home, step_s=0.01)


@pytest.mark.slow
def test_a_job_whose_machine_never_ends_it_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helping_machine, "SILENT_S", 2.0)
    with open_main(tmp_path / "main") as main:
        main.start_helper(tmp_path / "helper", module="tests.support.silent_helper")
        pace(tmp_path / "main", step_s=0.5)
        until(lambda: main.keeper.state.ready, LOADING_S)
        here, away = submit(main, 1), submit(main, 2)
        until(lambda: "its latest task came to nothing" in str(main.hub.list_machines()[0].failed), LOADING_S)
        assert isinstance(end_of(main, here), Finished) and isinstance(end_of(main, away), Finished)
