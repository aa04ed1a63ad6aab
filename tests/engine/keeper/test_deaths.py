"""Engines that die at a job, each a real process: the job goes on while it moves, and what is finished of one that is given up is handed over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from app.base.paths import home
from app.base.sentence import say
from app.compat.planning.types import Choice
from app.engine.jobs.events import Adjusted, Event, Failed, Finished, Loading, PartDone, Stopped
from app.engine.jobs.journal import Job
from app.engine.jobs.messages import Died
from app.engine.jobs.parts import SPOKEN, mark_elsewhere
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.keeper import engine_life
from app.engine.keeper.deaths import DEATHS, DeathRecord, DeathRecords
from app.engine.keeper.delivery import Delivery, deliver, format_ranges
from app.engine.keeper.job_end import JobEnds
from app.engine.keeper.job_folder import attach_delivery
from app.engine.keeper.keeper import Keeper
from app.engine.keeper.recovery import recall_progress
from app.engine.kinds import measure_progress
from app.engine.models.on_disk import find_limits
from app.engine.pictures.run import checkpoint
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.speech.sound import sound
from app.engine.speech.text.script import parse_script
from tests.support import light_engine
from tests.support.waiting import pass_turns, until

pytestmark = pytest.mark.long

SCRIPT = " (pause 0.2s) ".join(["[S1] The water is warm today, my friend."] * 40)
"""It makes forty parts, since a pause ends one."""
Open = Callable[..., Keeper]


@pytest.fixture
def open_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A keeper whose engines live as they are told to, one after the other; the last ones live on."""
    light_engine.replace_engines(monkeypatch)
    keepers: list[Keeper] = []

    def opened(*plan: dict[str, object], **options: Any) -> Keeper:
        place = home(tmp_path / f"home {len(keepers)}").create()
        (place.root / light_engine.LIVES).write_text(json.dumps(plan))
        keepers.append(Keeper(place, **options))
        return keepers[-1]

    yield opened
    for keeper in keepers:
        keeper.close()


def end_of(keeper: Keeper, job: str) -> Event:
    return list(keeper.follow(job))[-1]


@pytest.mark.slow
def test_forty_parts_go_on_while_each_life_finishes_one(open_: Open) -> None:
    """Thirteen deaths, each with three parts finished since the one before."""
    keeper = open_(*[{"parts": 3}] * 13)
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    events = list(keeper.follow(job.id))
    assert isinstance(events[-1], Finished), events[-1]
    assert len({event.index for event in events if isinstance(event, PartDone)}) == 40
    assert sum(isinstance(event, Adjusted) and event.fallback == "restart" for event in events) == 13
    assert keeper.journal.get(job.id).state == "finished" and keeper.journal.get(job.id).attempts == 14


def test_two_deaths_while_loading_do_not_end_a_job(open_: Open) -> None:
    keeper = open_({"parts": 3}, {"dies": "loading"}, {"parts": 2}, {"dies": "loading"}, {"dies": "loading"})
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    assert isinstance(end_of(keeper, job.id), Failed), "the third in a row: five parts, then two deaths while loading"
    again = open_({"parts": 3}, {"dies": "loading"}, {"parts": 2}, {"dies": "loading"})
    job = again.submit(SpeechRequest(SCRIPT, seed=5))
    assert isinstance(end_of(again, job.id), Finished)


def test_what_is_given_up_is_handed_over_and_can_be_gone_on_with(open_: Open) -> None:
    keeper = open_({"parts": 3}, {"dies": "loading"}, {"dies": "loading"}, {})
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    end = end_of(keeper, job.id)
    assert isinstance(end, Failed) and end.cure == "go-on" and "3 times" in str(end.sentence)
    assert "Finished: 3 of 40. Missing: 4-40." in " ".join(map(str, end.objections))
    (file,) = end.files
    assert Path(file).parent == keeper.shelf.folder and abs(soundfile.info(file).duration - end.seconds) < 0.01
    assert end.seconds > 3 * 0.5 + 2 * 0.2, "all three parts, with their pauses"
    (kept,) = keeper.shelf.list_of_job(job.id)
    assert not kept.whole and kept.seconds == end.seconds and kept.settings["seed"] == 5
    assert [each.id for each in keeper.interrupted] == [job.id]
    parts = sorted(keeper.folder(job.id).glob("part-*.wav"))
    before = [part.read_bytes() for part in parts]
    assert len(parts) == 3
    keeper.resume(job.id)
    assert isinstance(end_of(keeper, job.id), Finished) and not keeper.interrupted
    assert [part.read_bytes() for part in parts] == before, "a finished part was done again"
    following = keeper.submit(SpeechRequest("[S1] Hello.", seed=5))
    assert isinstance(end_of(keeper, following.id), Finished)


def test_what_an_engine_says_cannot_be_made_is_handed_over_too(open_: Open) -> None:
    """Each part was a file of its own on the shelf, and gone from where the job would go on."""
    keeper = open_({"parts": 3, "fails": True})
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    end = end_of(keeper, job.id)
    assert isinstance(end, Failed) and end.cure == "open-folder" and end.seconds > 3 * 0.5 and len(end.files) == 1
    assert "Missing: 4-40." in str(end.objections[0]) and keeper.journal.get(job.id).state == "failed"
    keeper.resume(job.id)
    again = end_of(keeper, job.id)
    assert not keeper.state.restarts, keeper.state
    assert isinstance(again, Failed) and "Missing: 7-40." in str(again.objections[0]), "three more"


@pytest.mark.slow
def test_where_only_the_joining_kills_the_job_is_finished_all_the_same(open_: Open) -> None:
    keeper = open_(*[{"dies": "joining"}] * DEATHS)
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    end = end_of(keeper, job.id)
    assert isinstance(end, Finished) and end.seconds > 40 * 0.5, end
    assert keeper.journal.get(job.id).state == "finished" and keeper.shelf.list_of_job(job.id)[0].whole


def test_a_job_of_which_nothing_was_finished_has_failed(open_: Open) -> None:
    keeper = open_(*[{"dies": "loading"}] * DEATHS)
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    events = list(keeper.follow(job.id))
    assert sum(isinstance(event, Loading) for event in events) == DEATHS
    assert isinstance(events[-1], Failed) and not events[-1].files and events[-1].cure == "report"
    assert keeper.journal.get(job.id).state == "failed" and not keeper.interrupted


def test_who_stops_a_job_whose_engine_died_has_what_was_finished(open_: Open) -> None:
    keeper = open_({"parts": 2}, *[{"dies": "start"}] * 9)  # minutes, in which no engine finishes it
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    for event in keeper.follow(job.id):
        if isinstance(event, Adjusted):
            keeper.stop(job.id)
        end = event
    assert isinstance(end, Stopped) and len(end.files) == 1 and end.seconds > 2 * 0.5
    assert keeper.journal.get(job.id).state == "stopped"


def test_an_engine_that_does_not_start_loses_no_job(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine waited, and all nine failed. Now they wait until it starts, which it is asked to do now and then, and by a press."""
    keeper = open_(*[{"dies": "start"}] * engine_life.STARTS)
    jobs = [keeper.submit(SpeechRequest("[S1] Hello.", seed=number)) for number in range(9)]
    until(lambda: keeper.state.gave_up)
    assert [keeper.journal.get(job.id).state for job in jobs] == ["queued"] * 9
    pass_turns()
    assert [keeper.journal.get(job.id).state for job in jobs] == ["queued"] * 9 and not keeper.state.ready
    keeper.retry_start()
    assert all(isinstance(end_of(keeper, job.id), Finished) for job in jobs)
    assert keeper.state.ready and not keeper.state.gave_up


@pytest.mark.slow
def test_it_is_started_again_now_and_then(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_life, "AGAIN_S", 1.0)
    keeper = open_(*[{"dies": "start"}] * (engine_life.STARTS + 1))
    job = keeper.submit(SpeechRequest("[S1] Hello.", seed=5))
    assert isinstance(end_of(keeper, job.id), Finished)


def test_an_engine_that_dies_at_its_start_is_no_death_of_the_job(open_: Open) -> None:
    keeper = open_({"parts": 2}, {"dies": "start"}, {"dies": "start"}, {"dies": "loading"}, {})
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    assert isinstance(end_of(keeper, job.id), Finished)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_an_engine_that_dies_of_what_another_machine_began_avoids_nothing(
    open_: Open, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    told, count = list[Died | None](), DeathRecords.count
    monkeypatch.setattr(DeathRecords, "count", lambda self, job, folder, died: (told.append(died), count(self, job, folder, died))[1])
    keeper = open_({"parts": 2})
    keeper.leaves = lambda _: True  # it waits until its folder is ready
    job = keeper.submit(SpeechRequest(SCRIPT, seed=5))
    begun = SPOKEN.begun_path(keeper.folder(job.id), 2)
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_text("{}")
    if elsewhere:
        mark_elsewhere(begun)
    keeper.leaves = lambda _: False
    assert isinstance(end_of(keeper, job.id), Finished)
    assert [each is None for each in told] == [elsewhere] and begun.exists() is not elsewhere


def test_a_command_is_told_that_it_does_not_start(open_: Open) -> None:
    keeper = open_(*[{"dies": "start"}] * engine_life.STARTS, patient=False)
    job = keeper.submit(SpeechRequest("[S1] Hello.", seed=5))
    end = end_of(keeper, job.id)
    assert isinstance(end, Failed) and end.cure == "repair" and "engine.log" in str(end.sentence)


def test_deaths_count_in_a_row(tmp_path: Path) -> None:
    far = {"part-000": 1}
    crash, memory = Died("crash", 3, "aborted"), Died("memory", None, "killed")
    one = DeathRecord().add_death(far, crash)
    assert (one.deaths, one.avoid) == (1, crash)
    two = one.add_death(far, crash)
    assert (two.deaths, two.avoid) == (2, crash), "what did not help is not enough"
    assert two.add_death(far, crash).over and not two.add_death(far | {"part-001": 1}, crash).over
    moved = two.add_death(far | {"part-001": 1}, memory)
    assert (moved.deaths, moved.avoid) == (1, None), "what got on stays as it is"
    assert moved.add_death(far, memory).deaths == 2, "a part that is gone and done again is not new"
    outside = DeathRecord().add_death(far, None)
    assert (outside.deaths, outside.avoid) == (1, None), "an end from outside teaches nothing"
    assert outside.add_death(far, crash).avoid == crash


def test_what_is_finished_is_read_from_the_folder(tmp_path: Path) -> None:
    assert measure_progress(tmp_path / "none") == {}
    samples, codes = np.zeros(100, np.float32), np.zeros((1, 1), np.int16)
    light_engine.speak(tmp_path, 0, "a")
    sound.write(tmp_path / "part-001.wav", samples, 16000)  # died before the words about it
    (tmp_path / "picture-0.png").write_bytes(b"x")
    (tmp_path / "unfinished-001.json").write_text('{"rows": [[1], [2], [3]]}')
    (tmp_path / "unfinished-002.json").write_text("{")
    for index, whole in ((1, False), (2, True)):
        kept = Checkpoint(7, torch.zeros(1), {}, torch.Generator().get_state(), whole)
        checkpoint.save(tmp_path / f"latent-{index}.safetensors", kept, "mark")
    (tmp_path / "latent-3.safetensors").write_bytes(b"no such thing")
    assert codes.size and measure_progress(tmp_path) == {
        "part-000": 1,
        "picture-0": 1,
        "unfinished-001": 3,
        "unfinished-002": 0,
        "latent-1": 7,
        "latent-2": 8,
        "latent-3": 0,
    }
    assert measure_progress(tmp_path / "picture-0.png") == {}


def test_pictures_are_handed_over_and_not_kept_twice(open_: Open, tmp_path: Path) -> None:
    keeper = open_()
    request = PictureRequest("a red circle", batch=4)
    job = keeper.submit(request)
    keeper.journal.withdraw(job.id)
    folder = keeper.folder(job.id)
    folder.mkdir(parents=True, exist_ok=True)
    for place in (0, 2):
        (folder / f"picture-{place}.png").write_bytes(bytes([place]))
    given = deliver(keeper.home, request, folder)
    assert given.missing == (2, 4) and "Finished: 2 of 4. Missing: 2, 4." in str(given.describe_missing(folder)[0])
    ends = JobEnds(keeper.stores, keeper.board, patient=True)
    end = ends.end(job.id, Failed(given.describe_missing(folder)[0]), died=True)
    assert len(end.files) == 2 and all((folder / f"picture-{place}.png").is_file() for place in (0, 2))
    for place in (1, 3):
        (folder / f"picture-{place}.png").write_bytes(bytes([place]))
    files = tuple(str(folder / f"picture-{place}.png") for place in range(4))
    whole = ends.end(job.id, Finished(files, 1.0, 1.0, "steps", 0))
    assert [Path(file).read_bytes() for file in whole.files] == [bytes([place]) for place in range(4)]
    assert len(keeper.shelf.list_of_job(job.id)) == 4 and whole.files[0] == end.files[0]


def test_what_cannot_be_joined_stays_and_is_told(tmp_path: Path) -> None:
    for index, part in enumerate(parse_script(SCRIPT, find_limits(home(tmp_path / "home"), "")).parts[:2]):
        light_engine.speak(tmp_path / "job", index, part.text)
    (tmp_path / "job" / "part-001.wav").write_bytes(b"RIFF")
    given = deliver(home(tmp_path / "home"), SpeechRequest(SCRIPT), tmp_path / "job")
    assert not given.files and str(tmp_path / "job") in str(given.describe_missing(tmp_path / "job")[0])


@pytest.mark.parametrize(("numbers", "words"), [((), ()), ((3,), ("3",)), ((1, 2), ("1-2",)), ((9, 1, 4, 5, 3), ("1", "3-5", "9"))])
def test_numbers_are_told_as_ranges(numbers: tuple[int, ...], words: tuple[str, ...]) -> None:
    assert format_ranges(numbers) == words


def test_the_wait_for_the_next_engine_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_life, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    life, due_s = engine_life.EngineLife(home(tmp_path)), []
    for _ in range(9):
        life.count_failed_start()
        due_s.append(life.start_at_s)
    assert due_s == [0.0, 0.0, 1030.0, 1060.0, 1120.0, 1240.0, 1480.0, 1600.0, 1600.0]


@pytest.mark.parametrize(("quiet_s", "hung"), [(0.0, False), (20.0, False), (20.5, True)])
def test_an_engine_hangs_once_it_is_quiet_for_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet_s: float, hung: bool) -> None:
    monkeypatch.setattr(engine_life, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    life = engine_life.EngineLife(home(tmp_path))
    assert not life.has_hung()
    life.child = SimpleNamespace(beat_s=1000.0 - quiet_s)  # type: ignore[assignment]
    assert life.has_hung() is hung


def test_a_computer_that_slept_gives_its_engine_time_to_wake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(engine_life, "time", SimpleNamespace(monotonic=lambda: clock.now))
    life = engine_life.EngineLife(home(tmp_path))
    life.child = SimpleNamespace(beat_s=1000.0)  # type: ignore[assignment]

    def ask(at_s: float) -> bool:
        clock.now = at_s
        return life.has_hung()

    assert not ask(1000.0) and not ask(4600.0), "nobody asks while it sleeps"
    assert not any(ask(4600.0 + second) for second in range(1, 21)) and ask(4621.0)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("queued", None), ("running", None), ("finished", Finished(("a.wav",), 0.0, 0.0, "", 0)), ("stopped", Stopped(("a.wav",), 0.0)),
        ("failed", Failed(say("job.ended", "This job has already ended: {words}", words="no memory"), files=("a.wav",))),
        ("interrupted", Failed(say("job.ended", "This job has already ended: {words}", words="no memory"), files=("a.wav",))),
    ],
)  # fmt: skip
def test_a_job_of_an_earlier_start_is_recalled_by_its_end(state: Any, end: Event | None) -> None:
    job = Job("a", "", PictureRequest("a cat"), Choice(), state, 1, "no memory", 0.0, None)
    made: Any = SimpleNamespace(path=Path("a.wav"), elapsed_s=0.0, model="sd15")
    assert recall_progress(job, [made], ()).end == end


def test_what_an_engine_had_finished_when_it_died_is_the_jobs_end(tmp_path: Path) -> None:
    whole, cut = Delivery(("a.wav",), 2.5, (), 3), Delivery(("a.wav",), 2.5, (2,), 3)
    failed = Failed(say("job.ended", "This job has already ended: {words}", words="no memory"))
    assert attach_delivery(failed, whole, tmp_path, died=True) == Finished(("a.wav",), 0.0, 0.0, "", 0, 2.5)
    for delivery, died in ((whole, False), (cut, True)):
        end = attach_delivery(failed, delivery, tmp_path, died)
        assert isinstance(end, Failed) and (end.files, end.seconds) == (("a.wav",), 2.5)
        assert end.objections == delivery.describe_missing(tmp_path)


def test_parts_that_an_earlier_hearth_split_elsewhere_are_not_mixed_in(tmp_path: Path) -> None:
    """A job begun before an update and gone on with after it has parts of both in its folder; those of other words are missing."""
    request = SpeechRequest("[S1] One and two. (pause 1s) Three and four. (pause 1s) Five and six.")
    for index, text in enumerate(("[S1] One and two.", "[S1] two. Three and", "[S1] Five and six.")):
        light_engine.speak(tmp_path, index, text)
    delivery = deliver(home(tmp_path / "home"), request, tmp_path)
    assert (delivery.missing, delivery.total, delivery.fault) == ((2,), 3, "")
