"""What a job leaves in its folder: previews go with its end, pieces of sound once nobody can be listening, what is made stays."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from app.base.paths import home
from app.compat.machine.meter import Reading
from app.compat.planning.types import Choice
from app.engine.jobs.database import Database
from app.engine.jobs.events import Failed, Finished, PartDone, Preview, Sound, Step, Stopped
from app.engine.jobs.journal import Journal
from app.engine.jobs.parts import MACHINES, move_in
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.shelf import Shelf
from app.engine.jobs.tasks import SelfTest, Tune
from app.engine.keeper import job_end, job_folder
from app.engine.keeper.engine_life import STARTS
from app.engine.keeper.job_folder import drop_all_passing, move_to_shelf, remove_old_folders
from tests.support.waiting import Idle, pass_turns, until


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_previews_stay_a_while_when_the_end_is_on_the_shelf(tmp_path: Path) -> None:
    database = Database(tmp_path / "hearth.db")
    shelf, job = Shelf(database, tmp_path / "shelf"), Journal(database).queue(PictureRequest("a"), Choice())
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("preview-0-2.jpg", "preview-0-4.jpg", "picture-0.png", "latent-0.safetensors"):
        (folder / name).write_bytes(b"x")
    shown = Progress().add(Preview(4, str(folder / "preview-0-4.jpg")))
    end = move_to_shelf(shelf, job, Finished((str(folder / "picture-0.png"),), 1.0, 0.0, "", 0), shown, folder)
    assert names(folder) == ["latent-0.safetensors", "preview-0-2.jpg", "preview-0-4.jpg"], "a page may be fetching one"
    assert Path(end.files[0]).is_file()
    assert shown.preview is not None and shown.add(end).preview is None
    database.close()


@pytest.mark.parametrize(("request_", "whole"), [(PictureRequest("a", batch=2), True), (SpeechRequest("a"), False)])
def test_only_speech_that_was_stopped_is_in_part(tmp_path: Path, request_: PictureRequest | SpeechRequest, whole: bool) -> None:
    """Finished pictures of a stopped batch were marked as stopped early."""
    database = Database(tmp_path / "hearth.db")
    shelf, job = Shelf(database, tmp_path / "shelf"), Journal(database).queue(request_, Choice())
    (file := tmp_path / ("one.png" if whole else "one.wav")).write_bytes(b"x")
    move_to_shelf(shelf, job, Stopped((str(file),), 1.0), Progress(), tmp_path)
    assert [each.whole for each in shelf.list_of_job(job.id)] == [whole]
    database.close()


def test_a_picture_of_another_machine_is_kept_with_its_name_and_no_figures_of_this_one(tmp_path: Path) -> None:
    database = Database(tmp_path / "hearth.db")
    shelf, job = Shelf(database, tmp_path / "shelf"), Journal(database).queue(PictureRequest("a", batch=2), Choice())
    folder = tmp_path / "job"
    folder.mkdir()
    for name, content in (("here.png", b"own"), ("theirs.png", b"theirs"), ("late.png", b"late"), ("picture-0.png", b"own")):
        (folder / name).write_bytes(content)
    theirs = move_in(folder, folder / "theirs.png", "picture-1.png", "Böx")
    assert move_in(folder, folder / "late.png", "picture-0.png", "Late").read_bytes() == b"own", "what is there stays"
    files = tuple(str(each) for each in (folder / "picture-0.png", theirs))
    step = Step(1, 1, 2.0, "steps", None, Reading(highest_bytes=7))
    move_to_shelf(shelf, job, Finished(files, 1.0, 2.0, "steps", 7), Progress(model="m").add(step), folder)
    own, other = shelf.list_of_job(job.id)
    assert (own.rate, own.highest_bytes, own.plan) == (2.0, 7, {})
    assert (other.rate, other.highest_bytes, other.plan, other.model) == (0.0, 0, {"machine": "Böx"}, "m")
    (folder / MACHINES).write_text("[")
    assert move_in(folder, folder / "late.png", "picture-2.png", "Late").read_bytes() == b"late", "a damaged note stops nothing"
    database.close()


@pytest.mark.parametrize(
    ("by", "machine", "partly"),
    [({}, None, None), ({"part-000.wav": "Böx", "part-001.wav": "Attic"}, "Attic, Böx", False), ({"part-001.wav": "Böx"}, "Böx", True)],
)
def test_a_script_names_the_machines_that_spoke_its_parts(
    by: dict[str, str], machine: str | None, partly: bool | None, tmp_path: Path
) -> None:
    database = Database(tmp_path / "hearth.db")
    shelf, job = Shelf(database, tmp_path / "shelf"), Journal(database).queue(SpeechRequest("[S1] a"), Choice())
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("speech.wav", "part-000.wav", "part-000.json", "part-001.wav", "part-001.json"):
        (folder / name).write_bytes(b"x")
    (folder / MACHINES).write_text(json.dumps(by))
    move_to_shelf(shelf, job, Finished((str(folder / "speech.wav"),), 1.0, 2.0, "frames", 7), Progress(model="m"), folder)
    (kept,) = shelf.list_of_job(job.id)
    assert (kept.plan.get("machine"), kept.plan.get("partly")) == (machine, partly)
    database.close()


def test_what_was_sent_goes_after_a_day_unless_a_job_still_wants_it(tmp_path: Path) -> None:
    uploads, now_s = tmp_path / "uploads", time.time()
    for name, age_s in (("old", 90_000), ("wanted", 90_000), ("fresh", 60)):
        (uploads / name).mkdir(parents=True)
        (uploads / name / "start.png").write_bytes(b"x")
        os.utime(uploads / name, (now_s - age_s, now_s - age_s))
    place = home(tmp_path)
    keeper = Idle(place)
    keeper.submit(PictureRequest("a red circle", image=str(uploads / "wanted" / "start.png")))
    keeper.close()
    (place.scratch / "uploads").parent.mkdir(parents=True, exist_ok=True)
    uploads.rename(place.scratch / "uploads")
    Idle(place).close()
    assert names(place.scratch / "uploads") == ["fresh", "wanted"]


def test_an_errand_that_waits_can_be_stopped(tmp_path: Path) -> None:
    keeper = Idle(home(tmp_path / "home"))
    try:
        first, second = keeper.start_task(SelfTest()), keeper.start_task(Tune("starter-painter"))
        keeper.stop(first)
        assert isinstance(keeper.get_progress(first).end, Stopped) and keeper.get_progress(second).end is None
        for _ in range(STARTS):
            keeper.engine.count_failed_start()
        until(lambda: keeper.get_progress(second).end is not None)
        assert isinstance(keeper.get_progress(second).end, Failed) and keeper.state.gave_up
    finally:
        keeper.close()


def test_pieces_of_sound_go_a_while_after_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Idle(home(tmp_path / "home"))
    try:
        job = keeper.submit(SpeechRequest("[S1] Hello."))
        keeper.lend_out(job.id, "starter-voice", lambda: None)
        folder = keeper.folder(job.id)
        for name in ("sound-000-000.wav", "sound-000-001.wav", "preview-0-2.jpg", "part-000.wav", "part-000.json", "speech.wav"):
            (folder / name).write_bytes(b"x")
        for number in range(job_folder.FOLDERS_KEPT + 2):
            (folder.parent / f"old{number:03d}").mkdir()
            os.utime(folder.parent / f"old{number:03d}", (number, number))
        for place in range(2):
            keeper.board.post(job.id, Sound(0, str(folder / f"sound-000-00{place}.wav"), place, 1.0))
        assert len(keeper.get_progress(job.id).sounds) == 2
        keeper.board.post(job.id, PartDone(0, 1, str(folder / "part-000.wav"), "Hello.", 1, 2.0))
        keeper.board.post(job.id, Sound(1, str(folder / "sound-001-000.wav"), 0.0, 1.0))
        keeper.end_lent_out(job.id, Finished((str(folder / "speech.wav"),), 1.0, 0.0, "", 0), {}, "Attic")
        assert not keeper.get_progress(job.id).sounds
        (kept,) = keeper.shelf.list_of_job(job.id)
        pass_turns()
        assert len([*folder.glob("sound-*"), *folder.glob("preview-*")]) == 3, "a page may be fetching them"
        monkeypatch.setattr(job_end, "LISTENED_S", 0.1)
        until(lambda: not [*folder.glob("sound-*"), *folder.glob("preview-*")])
        assert names(folder) == ["lent-out", "part-000.json", "part-000.wav"] and kept.path.read_bytes() == b"x"
        until(lambda: "old001" not in names(folder.parent))
        assert len(names(folder.parent)) == job_folder.FOLDERS_KEPT + 1, "a day of jobs leaves no more than a start; a script's parts stay"
    finally:
        keeper.close()


def test_a_start_clears_what_nobody_listens_to_any_more(tmp_path: Path) -> None:
    made = [tmp_path / f"{number:03d}" for number in range(job_folder.FOLDERS_KEPT + 3)]
    for age, folder in enumerate(made):
        folder.mkdir()
        for name in ("sound-000-000.wav", "preview-0-2.jpg", "part-000.wav"):
            (folder / name).write_bytes(b"x")
        os.utime(folder, (age, age))
    remove_old_folders(tmp_path, {"000", "001"})
    drop_all_passing(tmp_path, {"000"})
    assert names(tmp_path) == ["000", "001", *(folder.name for folder in made[3:])]  # only the oldest that are not needed
    for folder in tmp_path.iterdir():
        assert (names(folder) == ["part-000.wav"]) is (folder.name != "000"), "what still runs in another process is heard"


def test_a_second_process_leaves_what_the_first_runs(tmp_path: Path) -> None:
    """As `hearth speak` does beside an open window."""
    keeper = Idle(home(tmp_path / "home"))
    try:
        job = keeper.submit(SpeechRequest("[S1] Hello."))
        keeper.journal.begin(job.id)
        folder = keeper.folder(job.id)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "sound-000-000.wav").write_bytes(b"x")
        for number in range(job_folder.FOLDERS_KEPT + 2):  # newer ones of jobs that have ended
            (folder.parent / f"zz{number:03d}").mkdir()
        Idle(home(tmp_path / "home")).close()
        assert names(folder) == ["sound-000-000.wav"]
    finally:
        keeper.close()
