"""Parts of scripts that ended are there after a restart, up to a limit, and as long as their creation."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.base.paths import home
from app.base.sentence import say
from app.compat.planning.types import Choice
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Failed, Finished, PartDone, Stopped
from app.engine.jobs.journal import State
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import PictureRequest, SpeechRequest, VoicePrompt
from app.engine.keeper import job_folder, kept_parts
from app.engine.keeper.delivery import deliver
from app.engine.keeper.keeper import Keeper
from app.engine.speech.kind import match_takes
from tests.support import light_engine
from tests.support.vanishing import coming_and_going
from tests.support.waiting import Idle

TEXTS = ("[S1] One is warm.", "[S1] Two is cold.", "[S1] Three is dry.")
SCRIPT = f"{TEXTS[0]} (pause 0.2s) Two is cold. (pause 0.2s) Three is dry."
Open = Callable[[], Keeper]


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Open]:
    keepers = list[Keeper]()

    def opened() -> Keeper:
        for keeper in keepers:
            keeper.close()
        keepers[:] = [Idle(home(tmp_path / "home"))]
        return keepers[0]

    yield opened
    for keeper in keepers:
        keeper.close()


def speak(keeper: Keeper, parts: int = 3, state: State = "finished", request: SpeechRequest | None = None, owner: str = OWNER) -> str:
    """A script that was spoken as far as that, and its result on the shelf."""
    job = keeper.journal.queue(request or SpeechRequest(SCRIPT), Choice(), owner)
    keeper.journal.begin(job.id)
    for index in range(parts):
        light_engine.speak(keeper.folder(job.id), index, TEXTS[index])
    shutil.copy(keeper.folder(job.id) / "part-000.wav", result := keeper.folder(job.id) / "speech.wav")
    keeper.shelf.keep(job, [result], RunSummary("starter-voice", seconds=1.5, elapsed_s=7.0, whole=state == "finished"))
    keeper.journal.end(job.id, state, "no memory" if state == "failed" else "")
    return job.id


def age(keeper: Keeper, *jobs: str) -> None:
    for number, job in enumerate(jobs):
        os.utime(keeper.folder(job), (number, number))


def test_a_home_that_is_deleted_meanwhile_has_no_parts(open_: Open) -> None:
    """The Shelf asks at each look; it was answered 500."""
    keeper = open_()
    speak(keeper)
    shutil.rmtree(keeper.home.root)
    found = keeper.measure_parts()
    assert (found.scripts, found.bytes) == (0, 0) and found.most_bytes > 0


@pytest.mark.parametrize(("state", "parts", "end"), [("finished", 3, Finished), ("stopped", 2, Stopped), ("failed", 1, Failed)])
def test_a_script_that_ended_has_its_parts_after_a_restart(
    open_: Open, state: State, parts: int, end: type[Finished | Stopped | Failed]
) -> None:
    job = speak(open_(), parts, state)
    keeper = open_()
    found = keeper.get_progress(job)
    folder = keeper.folder(job)
    assert found.parts == tuple(PartDone(n, 3, str(folder / f"part-{n:03d}.wav"), TEXTS[n], 5, 0.5) for n in range(parts))
    assert (
        isinstance(found.end, end) and found.end.files == (str(keeper.shelf.list_of_job(job)[0].path),) and found.model == "starter-voice"
    )
    if isinstance(found.end, Failed):
        assert found.end.cure == "go-on"
    else:
        assert found.end.elapsed_s == 7.0
    assert keeper.has_parts(job) and keeper.find_last_script() == job
    shutil.rmtree(folder)
    assert keeper.get_progress(job) == found, "a page asks every second; the files are read once"
    assert not keeper.has_parts(job) and not keeper.find_last_script()


def cut(keeper: Keeper, parts: int, request: SpeechRequest | None = None) -> str:
    """A script at which Hearth was killed."""
    job = keeper.journal.queue(request or SpeechRequest(SCRIPT), Choice(), OWNER).id
    keeper.journal.begin(job)
    for index in range(parts):
        light_engine.speak(keeper.folder(job), index, TEXTS[index])
    keeper.database.write("UPDATE jobs SET runner='0:0' WHERE id=?", job)
    return job


def test_a_script_at_which_hearth_was_killed_has_its_parts_before_it_goes_on(open_: Open) -> None:
    """Its tab shows it, so that its parts are heard, and nothing that is spoken is spoken again."""
    keeper = open_()
    earlier, job = speak(keeper, 3), cut(keeper, 2)
    keeper = open_()
    found = keeper.get_progress(job)
    assert [part.index for part in found.parts] == [0, 1] and keeper.find_last_script() == job
    assert found.end == Failed(say("job.cut", "Hearth ended before this did. Resume goes on with it."), cure="go-on")
    keeper.discard(job)
    stopped = keeper.get_progress(job)
    assert isinstance(stopped.end, Stopped) and len(stopped.parts) == 2 and keeper.find_last_script() == job
    assert earlier != job


def test_a_script_at_which_hearth_was_killed_before_its_first_part_hides_no_other(open_: Open) -> None:
    keeper = open_()
    earlier, _ = speak(keeper, 3), cut(keeper, 0)
    assert open_().find_last_script() == earlier


def test_a_script_that_was_spoken_after_an_interrupted_one_is_the_last(open_: Open) -> None:
    keeper = open_()
    cut(keeper, 2)
    later = speak(keeper, 3)
    assert open_().find_last_script() == later


def test_a_job_that_was_resumed_meanwhile_is_not_given_up(open_: Open) -> None:
    """The page's list of interrupted jobs is up to a second old."""
    job = (keeper := open_()).submit(SpeechRequest(SCRIPT)).id
    keeper.journal.put_back(job)
    keeper.discard(job)
    assert keeper.journal.get(job).state == "queued"


def test_a_part_that_is_likely_wrong_keeps_its_mark_after_a_restart(open_: Open) -> None:
    job = speak(keeper := open_(), 2, "finished")
    about = keeper.folder(job) / "part-001.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "doubt": "long"}))
    assert [part.doubt for part in open_().get_progress(job).parts] == ["", "long"]


def test_what_was_stopped_goes_on_after_a_restart_with_the_parts_that_a_redo_left_out(open_: Open) -> None:
    job = speak(keeper := open_(), 2, "stopped")
    keep = (str(keeper.folder(job) / "part-000.wav"), str(keeper.folder(job) / "part-001.wav"), "")
    redone = speak(keeper, 2, "stopped", SpeechRequest(SCRIPT, only_parts=(1,), keep=keep))
    given = deliver(keeper.home, SpeechRequest(SCRIPT, only_parts=(1,), keep=keep), keeper.folder(redone))
    assert given.missing == (3,) and not given.whole, "what nobody spoke yet is missing, too"
    keeper = open_()
    for each, wanted in ((job, ()), (redone, (1, 2))):
        keeper.resume(each)
        known = keeper.journal.get(each)
        assert known.state == "queued" and isinstance(known.request, SpeechRequest) and known.request.only_parts == wanted
        assert [part.index for part in keeper.get_progress(each).parts] == [0, 1] and keeper.get_progress(each).end is None


def test_only_the_newest_parts_are_kept_and_pictures_do_not_push_them_out(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = open_()
    oldest, source, newer, newest = (speak(keeper) for _ in range(4))
    keeper.submit(SpeechRequest(SCRIPT, only_parts=(0,), keep=(str(keeper.folder(source) / "part-000.wav"), "", "")))
    pictures = [keeper.folder(f"picture{number:02d}") for number in range(job_folder.FOLDERS_KEPT + 2)]
    for folder in pictures:
        folder.mkdir()
    age(keeper, oldest, source, newer, newest)
    each = kept_parts.measure(keeper.stores).bytes // 4

    def tidied() -> set[str]:
        kept_parts.tidy(keeper.stores, {job.id for job in keeper.journal.list_live()})
        return {folder.name for folder in keeper.stores.jobs_folder.iterdir()} - {folder.name for folder in pictures}

    assert tidied() == {oldest, source, newer, newest} and sum(folder.is_dir() for folder in pictures) == job_folder.FOLDERS_KEPT
    assert kept_parts.measure(keeper.stores) == kept_parts.KeptParts(4, 4 * each, keeper.measure_parts().most_bytes)
    monkeypatch.setattr(kept_parts, "MOST_BYTES", int(3.5 * each))
    assert tidied() == {source, newer, newest}
    monkeypatch.setattr(kept_parts, "MOST_BYTES", 1.5 * each)
    assert tidied() == {source, newest}, "a job that waits takes parts over from the other"
    speak(keeper)
    monkeypatch.undo()
    monkeypatch.setattr(kept_parts, "read_free_bytes", lambda _: 0)
    assert len(tidied()) == 2 and keeper.measure_parts().most_bytes < each, "a tenth of what would be free; of the newest script all stay"


def test_a_script_counts_whatever_comes_and_goes_in_its_folder(open_: Open) -> None:
    """One that does not count is nobody's: its parts, and the recording of its voice, would go as those of old jobs do."""
    keeper = open_()
    with coming_and_going(keeper.folder(speak(keeper)) / "sounding.wav"):
        assert {kept_parts.measure(keeper.stores).scripts for _ in range(1000)} == {1}


def test_parts_go_with_the_last_creation_that_is_emptied_from_the_bin(open_: Open, tmp_path: Path) -> None:
    keeper = open_()
    gone, stays, needed, half = (speak(keeper) for _ in range(4))
    keeper.submit(SpeechRequest(SCRIPT, only_parts=(0,), keep=("", str(keeper.folder(needed) / "part-001.wav"), "")))
    (tmp_path / "x.wav").write_bytes(b"another")
    keeper.shelf.keep(keeper.journal.get(half), [tmp_path / "x.wav"], RunSummary("", whole=False))
    assert len(keeper.shelf.list_of_job(half)) == 2
    for job in (gone, needed, half):
        keeper.shelf.delete(keeper.shelf.list_of_job(job)[0].id)
    keeper.database.write("UPDATE creations SET job='' WHERE job=?", stays)  # as a row that was made from its file has none
    keeper.shelf.delete(keeper.shelf.list_of_job("")[0].id)
    assert keeper.has_parts(gone), "what lies in the bin can be restored"
    assert keeper.empty_bin() == (0, {gone})
    assert {folder.name for folder in keeper.stores.jobs_folder.iterdir()} == {stays, needed, half}
    assert not keeper.get_progress(gone).parts


def test_the_recording_of_a_voice_stays_as_long_as_parts_that_were_spoken_with_it(open_: Open) -> None:
    keeper = open_()
    uploads = keeper.home.scratch / "uploads"
    clips = [uploads / name / "clip.wav" for name in ("of a script", "of nothing")]
    for clip in clips:
        clip.parent.mkdir(parents=True)
        clip.write_bytes(b"x")
        os.utime(clip.parent, (time.time() - 2 * job_folder.UPLOADS_S,) * 2)
    speak(keeper, request=SpeechRequest(SCRIPT, voice=VoicePrompt(str(clips[0]), "words")))
    open_()
    assert [clip.is_file() for clip in clips] == [True, False]


def test_a_picture_has_no_parts_to_open(open_: Open) -> None:
    keeper = open_()
    job = keeper.journal.queue(PictureRequest("a tree"), Choice())
    keeper.journal.end(job.id, "finished")
    assert not keeper.get_progress(job.id).parts and not keeper.has_parts(job.id) and not keeper.find_last_script()


@pytest.mark.parametrize(
    ("spoken", "script", "taken"),
    [
        ("abc", "abc", "012"), ("abc", "aXc", "0-2"), ("abc", "aXbc", "0-12"), ("abc", "ac", "02"), ("abc", "cab", "201"), ("abc", "xyz", "---"),
        ("abac", "Xabac", "-0123"), ("ba", "aba", "-01"), ("aaa", "aXaa", "0-12"), ("a", "aa", "0-"), ("aa", "a", "0"), ("abB", "abB", "01-"), ("", "a", "-"),
    ],
)  # fmt: skip
def test_a_take_is_found_again_by_its_words(tmp_path: Path, spoken: str, script: str, taken: str) -> None:
    """A capital letter stands for a part that was cut off."""
    paths = [str(tmp_path / f"{place}") for place in range(len(spoken))]
    for path in paths:
        Path(path).touch()
    parts = [PartDone(place, 9, paths[place], f"[S1] {word}", 1, whole=word.islower()) for place, word in enumerate(spoken)]
    wanted = [(f"[S1] {word}", ()) for word in script]
    assert [Path(path).name if path else "-" for path in match_takes(parts, [], wanted)] == list(taken)


def test_a_take_in_another_voice_is_not_taken_over(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{place}") for place in range(3)]
    for path in paths:
        Path(path).touch()
    parts = [PartDone(place, 3, path, "[Anna] Yes.", 1, whole=True) for place, path in enumerate(paths)]
    anna, ben = (("dia", "a"),), (("dia", "b"),)
    before = [("[Anna] Yes.", way) for way in (anna, ben, anna)]
    wanted = [("[Anna] Yes.", way) for way in (ben, anna, (("pocket", "a"),))]
    assert [Path(path).name if path else "-" for path in match_takes(parts, before, wanted)] == ["1", "0", "-"]
