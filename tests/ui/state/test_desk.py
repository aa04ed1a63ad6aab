"""The desk: which job a tab shows and Stop stops, while others wait."""

from __future__ import annotations

import dataclasses
import random
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.base.paths import home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.machine.chunk_curve import SIZES
from app.compat.machine.pretended import MACHINES, find_machine
from app.compat.machine.report import describe_report
from app.compat.machine.report_file import lay_out
from app.compat.machine.verdicts import RunFailure, Subject, Verdict, learn
from app.compat.planning.decide import decide
from app.compat.planning.types import AUTO, Choice, Chunk
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Stopped
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Actor, PictureRequest, Request, SpeechRequest, VoicePrompt
from app.engine.jobs.shelf import Search
from app.engine.jobs.tasks import SelfTest, Tune, name_lent
from app.engine.keeper import engine_life
from app.engine.keeper.recovery import Death
from app.engine.keeper.state import EngineState
from app.engine.models import catalog
from app.engine.models.chosen import keep_known_fields, read_chunk
from app.engine.models.model import describe_need
from app.engine.models.voice_limits import DIA, read_limits
from app.engine.speech.sound import spoken_parts
from app.engine.speech.sound.spoken_parts import SpokenPart
from app.engine.speech.text import script, voices
from app.launcher import failure
from app.ui import live_view, routes, window
from app.ui.api import shared
from app.ui.page import views
from app.ui.page.view_types.live import PictureView
from app.ui.page.view_types.making import PromptView
from app.ui.state import jobs_desk, json_routes
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER, Person
from app.ui.tabs import machine_view, models, paint_view, speak_view
from tests.support import light_engine
from tests.support.both_servers import CPU, keep_creation
from tests.support.database_damage import execute
from tests.support.guests import desk_at, machine_tab, page_of
from tests.support.speech_fixtures import write_clip
from tests.support.tiny_voices import STARTER, save_voice
from tests.support.waiting import WatchedLock, until


def test_what_a_program_asked_for_does_not_stay_in_the_place_of_what_is_there(tmp_path: Path) -> None:
    """A program spoke a word, and the parts that somebody was editing were gone from the window."""
    with desk_at(tmp_path) as desk:
        own = desk.jobs.begin(SpeechRequest("[S1] One."), OWNER)
        desk.jobs.stop("speech", OWNER)
        asked = desk.jobs.begin(SpeechRequest("[S1] Two."), OWNER, by_program=True)
        assert desk.jobs.find_current("speech", OWNER) == asked, "while it is made, it can be seen and stopped"
        desk.keeper.stop(asked)
        assert desk.jobs.find_current("speech", OWNER) == own
        for _ in range(2):
            asked = desk.jobs.begin(PictureRequest("a tree"), OWNER, by_program=True)
            desk.keeper.stop(asked)
            assert desk.jobs.find_current("picture", OWNER) == asked, "it takes the place of nothing, or of another program's"


def test_stop_takes_what_comes_next_and_not_what_was_asked_for_last(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        first, other, last = (
            desk.jobs.begin(each, OWNER) for each in (SpeechRequest("[S1] One."), PictureRequest("a tree"), SpeechRequest("[S1] Two."))
        )
        assert desk.jobs.find_current("speech", OWNER) == first
        desk.jobs.stop("speech", OWNER)
        assert [job.id for job in desk.keeper.journal.list_waiting()] == [other, last]
        assert desk.jobs.find_current("speech", OWNER) == last
        desk.jobs.stop("speech", OWNER)
        assert desk.jobs.find_current("speech", OWNER) == last, "with nothing left, the last one stays to be seen"
        assert isinstance(desk.jobs.find_progress("speech", OWNER).end, Stopped)  # type: ignore[union-attr]


def test_a_job_that_another_machine_does_is_shown_and_stopped_before_one_that_waits(tmp_path: Path) -> None:
    stopped = list[str]()
    with desk_at(tmp_path) as desk:
        away, waits = (desk.jobs.begin(PictureRequest(words), OWNER) for words in ("a tree", "a house"))
        desk.keeper.lend_out(away, "sd15", lambda: stopped.append(away))
        assert desk.jobs.find_current("picture", OWNER) == away
        desk.keeper.status.set(job=waits)
        assert desk.jobs.find_current("picture", OWNER) == waits, "what runs here is seen first"
        desk.keeper.status.set(job="")
        desk.jobs.stop("picture", OWNER)
        assert stopped == [away] and desk.jobs.find_current("picture", OWNER) == waits


def test_what_began_before_remove_was_pressed_is_not_stopped(tmp_path: Path) -> None:
    stopped = list[str]()
    with desk_at(tmp_path) as desk:
        page = page_of(desk, OWNER)
        begun, waits, gone = (desk.jobs.begin(PictureRequest(words), OWNER) for words in ("a tree", "a house", "a boat"))
        desk.keeper.lend_out(begun, "sd15", lambda: stopped.append(begun))
        refused = page.post(f"/hearth/queue/{begun}/remove")
        assert refused.status_code == 409 and "began before it could be removed" in refused.json()["trouble"]
        assert desk.keeper.journal.get(begun).state == "running" and not stopped
        assert [page.post(f"/hearth/queue/{gone}/remove").status_code for _ in range(2)] == [200, 200], (
            "pressed twice, it is gone all the same"
        )
        assert isinstance(desk.keeper.get_progress(gone).end, Stopped)
        assert [job.id for job in desk.keeper.journal.list_waiting()] == [waits]
        assert page.post(f"/hearth/queue/{begun}/stop").status_code == 200 and stopped == [begun]


def test_a_self_test_makes_way_for_a_job(tmp_path: Path) -> None:
    """A picture once waited 13 minutes behind one, as number 1 in the queue. Tune, which takes seconds, is let finish."""
    with desk_at(tmp_path) as desk:
        desk.measuring.start(SelfTest())
        desk.jobs.begin(PictureRequest("a tree"), OWNER)
        until(lambda: not desk.measuring.is_running())
        assert isinstance(desk.keeper.get_progress(desk.measuring.job).end, Stopped)
        desk.measuring.start(Tune("starter-painter"))
        desk.jobs.begin(PictureRequest("a house"), OWNER)
        assert desk.measuring.is_running()


def test_stop_stops_the_whole_grid_and_it_can_be_gone_on_with(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.jobs.begin_grid(PictureRequest("a tree"), ("steps", [2, 4]), ("guidance", [1.0, 2.0]), OWNER)
        jobs = [job.id for job in desk.keeper.journal.list_waiting()]
        assert len(jobs) == 4 and live_view.owner_view(desk, OWNER, "en", with_charts=False)["grid"]["stopped"] == []
        desk.jobs.stop("picture", OWNER)
        assert not desk.keeper.journal.list_waiting()
        assert live_view.owner_view(desk, OWNER, "en", with_charts=False)["grid"]["stopped"] == jobs
        for job in jobs:
            desk.jobs.resume(job)
        assert [job.id for job in desk.keeper.journal.list_waiting()] == jobs
        assert live_view.owner_view(desk, OWNER, "en", with_charts=False)["grid"]["latest"]
        assert live_view.owner_view(desk, OWNER, "en", with_charts=False)["grid"]["stopped"] == []
        desk.jobs.stop("picture", OWNER)
        desk.jobs.begin(PictureRequest("a house"), OWNER)
        assert not live_view.owner_view(desk, OWNER, "en", with_charts=False)["grid"]["latest"], "a later picture is shown now"


def test_a_grid_whose_process_was_killed_comes_back_as_one(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.jobs.begin_grid(PictureRequest("a tree"), ("steps", [2, 4]), ("guidance", [1.0, 2.0]), OWNER)
        first, *left = desk.keeper.journal.list_waiting()
        Image.new("RGB", (8, 8)).save(file := tmp_path / "picture.png")
        desk.keeper.shelf.keep(first, [file], RunSummary("sd15"))
        desk.keeper.journal.end(first.id, "finished")
    execute("UPDATE jobs SET runner='of a process that is gone'")(home(tmp_path).database, random.Random(1))
    with desk_at(tmp_path) as desk:
        live = live_view.owner_view(desk, OWNER, "en", with_charts=False)
        assert live["interrupted"] == {
            "jobs": [job.id for job in left],
            "text": "A grid of 4 pictures was interrupted: 1 done.",
            "kept": False,
        }
        assert [bool(cell["result"]) for cell in live["grid"]["cells"]] == [True, False, False, False]
        assert not any(cell["failed"] for cell in live["grid"]["cells"]), "they can still be painted"
        for job in left:
            desk.jobs.resume(job.id)
        assert [job.id for job in desk.keeper.journal.list_waiting()] == [job.id for job in left]
        assert live_view.owner_view(desk, OWNER, "en", with_charts=False)["interrupted"] is None
        desk.jobs.stop("picture", OWNER)
    with desk_at(tmp_path) as desk:
        assert "grid" not in live_view.owner_view(desk, OWNER, "en", with_charts=False), "nothing of it is left to do"


def begin_three(desk: Desk, folder: Path) -> tuple[str, ...]:
    """Begin a list of three prompts, and finish its first picture."""
    desk.jobs.begin_list([PictureRequest(words) for words in ("a tree", "a house", "a boat")], OWNER)
    first, *_ = desk.keeper.journal.list_waiting()
    Image.new("RGB", (8, 8)).save(file := folder / "picture.png")
    desk.keeper.shelf.keep(first, [file], RunSummary("sd15", elapsed_s=2.0))
    desk.keeper.journal.end(first.id, "finished")
    return desk.jobs.listed


def picture_of(desk: Desk) -> PictureView | None:
    return live_view.owner_view(desk, OWNER, "en", with_charts=False).get("picture")


def test_what_is_left_of_a_stopped_list_is_offered_again_after_a_restart(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        first, *left = begin_three(desk, tmp_path)
        desk.jobs.stop("picture", OWNER)
    with desk_at(tmp_path) as desk:
        shown = picture_of(desk)
        assert shown is not None and shown["left"] == left and [each["text"] for each in shown["listed"]] == ["a tree"]
        for job in left:
            desk.jobs.resume(job)
        desk.jobs.remove(left[1])
        desk.jobs.stop("picture", OWNER)
        shown = picture_of(desk)
        assert shown is not None and shown["left"] == left[:1], "what was taken out of the queue was not stopped with the list"
        assert desk.jobs.listed == (first, left[0])
        desk.keeper.journal.end(desk.jobs.begin(PictureRequest("a sea"), OWNER), "finished")
        keep_creation(desk, PictureRequest("a sea"), "sea.png")
    with desk_at(tmp_path) as desk:
        assert picture_of(desk) is None, "another picture was made since"


def test_a_list_under_way_comes_back_as_one_after_a_restart(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        _, *left = begin_three(desk, tmp_path)
    execute("UPDATE jobs SET runner='of a process that is gone'")(home(tmp_path).database, random.Random(1))
    with desk_at(tmp_path) as desk:
        told = live_view.owner_view(desk, OWNER, "en", with_charts=False)["interrupted"]
        assert told == {"jobs": left, "text": "A list of 3 pictures was interrupted: 1 done.", "kept": False}
        page = page_of(desk, OWNER)
        assert page.post(f"/hearth/queue/{left[1]}/let-go").status_code == 200
        assert page.post(f"/hearth/queue/{left[0]}/go-on").status_code == 200
        desk.jobs.stop("picture", OWNER)
        shown = picture_of(desk)
        assert shown is not None and shown["left"] == left[:1], "what was discarded is not offered again"


def test_what_was_begun_together_is_counted_together_at_the_end(tmp_path: Path) -> None:
    """The last picture of a list, or of a grid, ended it with "1 picture in 2 s"."""
    with desk_at(tmp_path) as desk:
        begin_three(desk, tmp_path)
        for at, job in enumerate(desk.keeper.journal.list_waiting()):
            Image.new("RGB", (8, 8)).save(file := tmp_path / f"picture {at}.png")
            desk.keeper.shelf.keep(job, [file], RunSummary("sd15", elapsed_s=3.0))
            desk.keeper.journal.end(job.id, "finished")
            desk.keeper.board.forget(job.id)
        shown = picture_of(desk)
        assert shown is not None and shown["end"] == {"kind": "finished", "made": 3, "elapsed_s": 8.0}
        assert [each["text"] for each in shown["listed"]] == ["a tree", "a house", "a boat"]


def test_a_list_is_shown_after_its_last_line_was_taken_out(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        _, second, third = begin_three(desk, tmp_path)
        keep_creation(desk, PictureRequest("a house"), "house.png", of=second)
        desk.keeper.journal.end(second, "finished")
        desk.jobs.remove(third)
        shown = picture_of(desk)
        assert shown is not None and shown["job"] == second and len(shown["listed"]) == 2


def test_jobs_that_were_interrupted_together_are_told_of_together(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        jobs = [desk.jobs.begin(each, OWNER) for each in (SpeechRequest("[S1] One."), PictureRequest("a tree"))]
    execute("UPDATE jobs SET runner='of a process that is gone'")(home(tmp_path).database, random.Random(1))
    with desk_at(tmp_path) as desk:
        told = live_view.owner_view(desk, OWNER, "en", with_charts=False)["interrupted"]
        assert told == {"jobs": jobs, "text": "2 jobs were interrupted. The first: [S1] One.", "kept": False}
        light_engine.speak(desk.keeper.folder(jobs[0]), 0, "[S1] One.")
        told = live_view.owner_view(desk, OWNER, "en", with_charts=False)["interrupted"]
        assert told is not None and told["kept"], "what is finished stays if they are discarded"
        for job in jobs:
            desk.keeper.discard(job)
        assert [each.text for each in desk.keeper.shelf.find(Search())] == ["[S1] One."]


def test_a_script_is_shown_as_its_own_voice_parts_it(tmp_path: Path) -> None:
    """The starter's parts are shorter than Dia's."""
    text = "[S1] Good morning, my friend. Is the kitchen warm? [S2] Yes, the fire is bright. Please bring bread and coffee."
    with desk_at(tmp_path) as desk:
        job = desk.jobs.begin(SpeechRequest(text, model="starter-voice"), OWNER)
        parts = [each["text"] for each in speak_view.job_view(desk, job, "en")["parts"]]
        assert parts == [part.text for part in script.parse_script(text, desk.models.read_limits("starter-voice")[1]).parts]
        assert len(parts) > len(script.parse_script(text).parts)


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (SpeechRequest("[S1] 漢字", model="starter-voice"), "script.no-english"),
        (SpeechRequest("[S1] Hello.", "starter-voice", VoicePrompt("mine.wav", "Hello.")), "voice.not-own"),
        (SpeechRequest("[S1] Hello.", "starter-voice", VoicePrompt("mine.wav", " ")), "voice.not-own"),
    ],
)
def test_what_a_starter_cannot_speak_is_refused_before_the_engine_starts(tmp_path: Path, request_: Request, key: str) -> None:
    with desk_at(tmp_path) as desk:
        with pytest.raises(Trouble) as refused:
            desk.jobs.begin(request_, OWNER)
        assert refused.value.sentence.key == key
        assert not refused.value.cure.startswith("use:"), "what is not here has to be got first"
        assert not desk.keeper.journal.list_waiting()
        desk.jobs.begin(SpeechRequest("[S1] Hello.", "no/such/model"), OWNER)
        assert len(desk.keeper.journal.list_waiting()) == 1, "what is not known here is the run's to tell"


@pytest.mark.parametrize(
    ("prompt", "told"), [("赤い灯台", True), ("a café by the sea", False), ("海边的红色灯塔，两只猫", False), ("красный маяк", True)]
)
def test_a_painter_that_reads_two_languages_says_so_before_it_paints(prompt: str, told: bool, tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        problems = paint_view.prompt_view(desk, prompt, "", "", OWNER, "zh")["problems"]
        assert any(each["text"].startswith("入门画师读得懂英语和简单的中文。") for each in problems) == told


def test_a_prompt_of_lines_is_judged_as_one_picture_and_then_line_by_line(tmp_path: Path) -> None:
    """Paint takes the lines as one picture, and the button beside it each as its own; only the second was told, or only the first."""
    with desk_at(tmp_path) as desk:

        def look(prompt: str, person: Person = OWNER) -> PromptView:
            return paint_view.prompt_view(desk, prompt, "", "starter-painter", person, "en")

        def judge(prompt: str, person: Person = OWNER) -> list[str]:
            return [each["text"] for each in look(prompt, person)["problems"]]

        assert judge("a red boat") == judge("a red boat\n\na green tree") == []
        (alone,) = judge("a red zeppelin")
        listed = "a red boat\n\na red zeppelin\n a green tree"
        whole, line = judge(listed)
        assert whole.startswith("Painting: a red boat, a red balloon and a green tree.")
        assert line == f"Line 3 on its own: {alone}", "empty lines are counted, as people count them"
        (told,) = judge(listed, Person("visitor-1-2", owner=False))
        assert whole.startswith(told), "guests have no lists"
        assert [each["cure"] for each in look(listed)["problems"]] == ["use:sd15", ""], "once for all"
        assert [listed[each["begin"] : each["end"]] for each in look(listed)["marks"]] == ["zeppelin"]
        (place,) = look("a red boat\non the left")["problems"]
        assert place["text"].startswith("Line 2 on its own: ") and place["cure"] == "use:sd15"
        assert len(judge("\n".join(["a red zeppelin"] * 9))) == 1 + paint_view.LINES_TOLD


def test_a_list_is_forecast_as_so_many_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paint_view, "estimate_seconds", lambda *_, **__: 16.0)
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=CPU)
        asked = PictureRequest("?", "starter-painter")
        assert "About 16 s, based on earlier runs." in paint_view.forecast_html(desk, asked, OWNER, "en")
        said = paint_view.forecast_html(desk, asked, OWNER, "en", lines=3)
        assert "About 16 s, based on earlier runs; 48 s for 3 pictures, one for each line." in said
        said = paint_view.forecast_html(desk, asked, Person("visitor-1-2", owner=False), "en", lines=3)
        assert "About 16 s, based on earlier runs." in said, "who has no lists is offered none"


def test_a_painters_card_says_how_long_a_picture_takes_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That it fits says little where a plan takes its parts in turns."""
    monkeypatch.setattr(paint_view, "estimate_seconds", lambda *_, **__: 16.0)
    said = "A picture takes about 16 s here, based on earlier runs."
    with desk_at(tmp_path) as desk:
        desk.keeper.status.set(hardware=CPU)
        assert said in models.model_view(desk, catalog.find("starter-painter"), "en")["facts"]
        assert said not in models.model_view(desk, catalog.find("starter-voice"), "en")["facts"]
        desk.keeper.status.set(hardware=find_machine("t4"))
        assert said not in models.model_view(desk, catalog.find("starter-painter"), "en")["facts"], "it was measured on another machine"


@pytest.mark.parametrize(("script_text", "read"), [("Anna: Hello.\nBen: Yes.", True), ("妈：Hello.\n小明：Yes.", False)])
def test_names_that_are_skipped_are_not_said_to_be_read(script_text: str, read: bool, tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        problems = speak_view.script_view(desk, script_text, "starter-voice", OWNER, "zh")["problems"]
        (named,) = [each["text"] for each in problems if each["cure"] == "voices"]
        assert ("名字会被读出来" in named) == read
        assert any("会跳过" in each["text"] for each in problems) != read


def test_a_resumed_job_shows_what_is_finished_before_its_model_has_loaded(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        text = " (pause 0.2s) ".join(["[S1] Hello there, my friend."] * 3)
        spoken, painted = (desk.jobs.begin(each, OWNER) for each in (SpeechRequest(text), PictureRequest("a tree", batch=3)))
        texts = [each["text"] for each in speak_view.job_view(desk, spoken, "en")["parts"]]
        for place, whole in ((0, True), (1, False)):
            path = SPOKEN.shown(desk.keeper.folder(spoken), place)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = SpokenPart(texts[place], 1, "", 2.0, whole, np.zeros((3, 9), np.int16), path)
            spoken_parts.save(part, np.zeros(100, np.float32), 16000)
        desk.keeper.folder(painted).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(desk.keeper.folder(painted) / "picture-1.png")
        for job in (spoken, painted):
            desk.keeper.journal.end(job, "interrupted")
            desk.jobs.resume(job)
        states = [each["state"] for each in speak_view.job_view(desk, spoken, "en")["parts"]]
        assert states == ["done", *["waits"] * (len(texts) - 1)], "one that was cut off is spoken on"
        assert [each["index"] for each in paint_view.job_view(desk, painted, OWNER, "en")["parts"]] == [1]
        told: list[object] = []
        with desk.keeper.board.watch(spoken, told.append):
            desk.keeper.board.post(spoken, desk.keeper.get_progress(spoken).parts[0])
        assert not told, "the engine tells of it again"


def test_a_voice_kept_from_the_shelf_notes_who_spoke_it(tmp_path: Path) -> None:
    """By the shelf's own row: files of before do not say it where no model was named."""
    with desk_at(tmp_path) as desk:
        job = desk.keeper.journal.queue(SpeechRequest("[S1] Hello."), Choice(), "owner")
        (made,) = desk.keeper.shelf.keep(job, [write_clip(tmp_path / "speech.wav", 6)], RunSummary("starter-voice"))
        desk.keep_voice(made.id, "Its own")
        (kept,) = voices.list_voices(desk.keeper.home)
        assert kept.spoken_by == "starter-voice"
        assert desk.jobs.begin(SpeechRequest("[S1] Hello.", "starter-voice", kept.prompt), OWNER)


def test_a_scene_of_two_is_kept_with_both_voices(tmp_path: Path) -> None:
    """From one saved voice to the next as well: each is spoken by names, which the clip's sound would blur."""
    scene, ready = "[S2] Who is there? [S1] Only the wind.", {each.name: each.prompt for each in voices.list_ready_voices()}
    with desk_at(tmp_path) as desk:

        def keep(name: str, text: str, voice: VoicePrompt | None) -> tuple[VoicePrompt, list[str]]:
            request = SpeechRequest(text, "starter-voice", voice)
            job = desk.keeper.journal.queue(request, Choice(), "owner")
            (made,) = desk.keeper.shelf.keep(job, [write_clip(tmp_path / f"{name}.wav", 6)], RunSummary("starter-voice"))
            desk.keep_voice(made.id, name)
            kept = next(each for each in voices.list_voices(desk.keeper.home) if each.name == name)
            return kept.prompt, [Path(clip).stem for clip in voices.find_known(Path(kept.prompt.path))]

        assert keep("usual", scene, None)[1] == ["anna", "brian"]
        first, known = keep("first", scene, ready["Daisy"])
        assert known == ["anna", "daisy"], "it is for the script's first speaker"
        assert keep("second", "[S1] Good night. [S2] Good night.", first)[1] == ["anna", "daisy"]
        assert keep("alone", "[S2] Good night.", first)[1] == ["daisy"]
        assert keep("clip", scene, VoicePrompt(write_clip(tmp_path / "own.wav", 6), "Hello."))[1] == ["clip"], "itself: nobody named it"


@pytest.mark.parametrize("parts_there", [True, False])
def test_a_voice_of_a_stopped_result_has_the_words_that_were_spoken(parts_there: bool, tmp_path: Path) -> None:
    text = " ".join(f"[S{1 + place % 2}] This sentence says a few words about the old house." for place in range(40))
    with desk_at(tmp_path) as desk:
        job = desk.keeper.journal.queue(SpeechRequest(text, "starter-voice", tail_s=0.0), Choice(), "owner")
        parts = script.parse_script(text, desk.models.read_limits("starter-voice")[1]).parts
        if parts_there:  # the first lasts longer than its words suggest
            path = SPOKEN.shown(desk.keeper.folder(job.id), 0)
            path.parent.mkdir(parents=True)
            whole = SpokenPart(parts[0].text, 1, "", 6.0, True, np.zeros((3, 9), np.int16), path)
            spoken_parts.save(whole, np.zeros(100, np.float32), 16000)
        clip = write_clip(tmp_path / "speech.wav", 6)
        (made,) = desk.keeper.shelf.keep(job, [clip], RunSummary("starter-voice", seconds=6.0, whole=False))
        desk.keep_voice(made.id, "Its own")
        (kept,) = voices.list_voices(desk.keeper.home)
        if parts_there:
            assert kept.prompt.transcript == parts[0].text
        assert text.startswith(kept.prompt.transcript) and 6 < len(kept.prompt.transcript.split()) < 40


def test_a_voice_whose_settings_are_damaged_is_still_written_for(tmp_path: Path) -> None:
    """The check goes by Dia's limits; what is wrong is said by the run."""
    voice = save_voice(tmp_path / "voice", STARTER)
    with desk_at(tmp_path / "home") as desk:
        assert desk.models.read_limits(str(voice))[1] != DIA
        (voice / "starter.json").write_text("[1, 2")
        assert desk.models.read_limits(str(voice))[1] == DIA
        with pytest.raises(Trouble, match=r"are damaged \("):
            read_limits(voice)


def test_a_model_of_the_other_kind_is_refused_before_anything_waits(tmp_path: Path) -> None:
    """By a program, by the page and as a grid; and it is no model to check a text for."""
    with desk_at(tmp_path) as desk:
        voice, painter = shared.find_model(desk, "starter-voice", "picture"), shared.find_model(desk, "starter-painter", "speech")
        asked = PictureRequest("a tree", model=voice)
        for begin in (
            lambda: desk.jobs.begin(asked, OWNER, by_program=True),
            lambda: desk.jobs.begin_grid(asked, ("steps", [2, 4]), ("guidance", [1.0]), OWNER),
        ):
            with pytest.raises(Trouble, match=r"voice is a voice and cannot paint. Installed models that paint: starter-painter"):
                begin()
        with pytest.raises(Trouble, match=r"painter paints and cannot speak. Installed models that speak: starter-voice"):
            desk.jobs.begin(SpeechRequest("[S1] Hi.", model=painter), OWNER)
        assert not desk.keeper.journal.list_waiting() and OWNER.name not in desk.jobs.grids
        assert desk.models.read_limits(painter) == (None, DIA)
        assert shared.find_model(desk, "gpt-4o", "speech") == "", "a name that clients send anyway is the best voice"


def test_a_grid_for_which_the_queue_has_no_room_begins_none_of_its_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_desk, "QUEUE_MOST", 3)
    with desk_at(tmp_path) as desk:
        with pytest.raises(Trouble, match="queue is full"):
            desk.jobs.begin_grid(PictureRequest("a tree"), ("steps", [2, 4]), ("guidance", [1.0, 2.0]), OWNER)
        assert not desk.keeper.journal.list_waiting() and OWNER.name not in desk.jobs.grids
        desk.jobs.begin_grid(PictureRequest("a tree"), ("steps", [2, 4, 6]), ("guidance", [1.0]), OWNER)
        assert len(desk.keeper.journal.list_waiting()) == 3


CHOICES = {"input", "change", "release", "submit", "blur", "select", "upload"}


def test_no_choice_is_passed_over_while_an_answer_is_on_its_way(tmp_path: Path) -> None:
    """Gradio's default for most events is to pass over what happens meanwhile."""
    with desk_at(tmp_path) as desk:
        listeners = window.build(desk).get_config_file()["dependencies"]
    asked = [each for each in listeners if each["backend_fn"] and CHOICES & {event for _, event in each["targets"]}]
    assert len(asked) > 8
    assert not [each["targets"] for each in asked if each["trigger_mode"] == "once"]


def test_what_is_shown_is_the_plan_with_which_the_engine_would_run_it(tmp_path: Path) -> None:
    """With what runs broke of before, the memory of now and what the owner chose; while a job runs, the plan of that job."""
    with desk_at(tmp_path) as desk:
        hardware = dataclasses.replace(MACHINES["cpu"], pretended="", free_bytes=3 << 30)
        seen = Verdict(Subject.fallback("sd15", "float32-decoder"), passed=False, seen=RunFailure("numbers", 4, "bfloat16"))
        learn(desk.keeper.home.verdicts, hardware, seen)
        learn(
            desk.keeper.home.verdicts,
            hardware,
            Verdict(Subject.fallback("sd15", "smaller-chunk"), False, seen=RunFailure("memory", 3, "", 512)),
        )
        desk.keeper.status.set(hardware=hardware)
        desk.machine.set_chunk(4096)
        desk.machine.keep_choice(Choice(dtype="bfloat16"))
        shown = desk.machine.plan("sd15", desk.machine.read_choice(OWNER))
        runs = decide(hardware, describe_need(catalog.find("sd15")), Choice(dtype="bfloat16"), desk.machine.load_verdicts(), chunk=4096)
        assert shown == runs and shown.chunk_q == 512
        vae = shown.of("vae")
        assert vae is not None and vae.compute == "float32"
        assert desk.machine.offer(catalog.find("sd15")).forecast.plan == runs  # type: ignore[union-attr]
        view = machine_tab(desk, "sd15", "", "en")
        assert view["curve"]["chunk"] == 4096 and view["curve"]["runs"] == "You asked for 4096; 512 is used. Memory ran out at step 3."
        tight = desk.machine.plan("sdxl", desk.machine.read_choice(OWNER))
        roomier = dataclasses.replace(hardware, free_bytes=12 << 30)
        desk.keeper.status.set(hardware=roomier)
        assert desk.machine.plan("sdxl", desk.machine.read_choice(OWNER)).offload != tight.offload, "memory is counted as it is now"
        job = desk.jobs.begin(PictureRequest("a tree", model="sd15"), OWNER)
        running = dataclasses.replace(shown, offload="model")
        desk.keeper.board.set_plan(job, "sd15", running)
        desk.keeper.status.set(job=job)
        assert (
            desk.machine.plan("sd15", desk.machine.read_choice(OWNER))
            == running
            != desk.machine.plan("sdxl", desk.machine.read_choice(OWNER))
        )


def test_two_who_store_a_choice_at_once_do_not_lose_one_anothers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunk is stored in the settings' lock, with what stood there by then."""
    with desk_at(tmp_path) as desk:
        other = threading.Thread(target=desk.settings.change, args=("choice", {}, lambda kept: {**kept, "dtype": "float32"}))
        real, lock = keep_known_fields, WatchedLock(desk.settings._lock)

        def known(kept: Any) -> dict[str, Any]:
            found = real(kept)
            lock.let_come_between(other)  # between what is read and what is written
            return found

        with monkeypatch.context() as patch:
            patch.setattr("app.ui.state.machine_desk.keep_known_fields", known)
            patch.setattr(desk.settings, "_lock", lock)
            desk.machine.set_chunk(256)
        other.join()
        assert desk.settings.get("choice") == {"chunk": 256, "dtype": "float32"}
        tried = dataclasses.replace(desk.machine.read_choice(OWNER), dtype="bfloat16")
        desk.machine.set_chunk(64)  # in another window, before this one presses Use this
        desk.machine.keep_choice(tried)
        assert desk.settings.get("choice") == {"chunk": 64, "dtype": "bfloat16"}


def test_the_chunk_is_the_keepers_and_outlives_a_restart(tmp_path: Path) -> None:
    with desk_at(tmp_path) as desk:
        desk.machine.set_chunk(300)
        assert desk.keeper.chunk == read_chunk(desk.keeper.home) == 300
    with desk_at(tmp_path) as desk:
        assert desk.keeper.chunk == 300
        desk.settings.put({"choice": {"chunk": "a lot", "nonsense": 3}})
    with desk_at(tmp_path) as desk:
        assert desk.keeper.chunk == AUTO and desk.machine.read_choice(OWNER) == Choice()
        desk.settings.put({"choice": []})
    with desk_at(tmp_path) as desk:
        desk.machine.set_chunk(64)
        assert read_chunk(desk.keeper.home) == 64 and desk.machine.read_choice(OWNER) == Choice()


def test_two_sizes_at_once_leave_keeper_and_settings_with_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other call comes between the two halves of the first."""
    with desk_at(tmp_path) as desk:
        other = threading.Thread(target=desk.machine.set_chunk, args=(512,))
        real, lock = desk.keeper.set_chunk, WatchedLock(desk.machine.choosing)

        def slow(chunk: Chunk) -> None:
            if chunk == 64:
                lock.let_come_between(other)
            real(chunk)

        object.__setattr__(desk.machine, "choosing", lock)  # which is frozen
        monkeypatch.setattr(desk.keeper, "set_chunk", slow)
        desk.machine.set_chunk(64)
        other.join()
        assert desk.settings.get("choice")["chunk"] == desk.keeper.chunk == 512


def test_what_cannot_be_written_changes_nothing_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with desk_at(tmp_path) as desk:
        desk.machine.set_chunk(512)
        built = window.build(desk)
        page = built.get_config_file()
        ids = {each["props"].get("elem_id"): each["id"] for each in page["components"]}
        slid = next(each for each in page["dependencies"] if (ids["machine-chunk"], "release") in map(tuple, each["targets"]))
        assert slid["outputs"] == [ids[each] for each in ("machine-chunk", "machine-exact", "machine-message")]
        with monkeypatch.context() as patch:
            patch.setattr("app.base.atomic_write.write_text", full)
            with pytest.raises(Trouble, match=r"No space left on device.*nothing changed"):
                desk.machine.set_chunk(64)
            with pytest.raises(Trouble, match="nothing changed"):
                desk.machine.keep_choice(Choice(dtype="bfloat16"))
            release = built.fns[slid["id"]].fn
            assert release is not None
            place, _, words = release(1, SimpleNamespace(headers={}, scope={KEY: OWNER}))
            assert place == SIZES.index(512) + 1 and "nothing changed" in words, "put back, and told there"
            assert desk.settings.get("choice") == {"chunk": 512} and desk.keeper.chunk == 512


def test_the_plan_of_a_job_that_runs_is_called_that(tmp_path: Path) -> None:
    """A guest's runs without what the owner forced; what Models says is about the next job."""
    with desk_at(tmp_path) as desk:
        hardware = dataclasses.replace(MACHINES["cpu"], pretended="")
        desk.keeper.status.set(hardware=hardware)
        desk.machine.keep_choice(Choice(dtype="bfloat16"))
        own = desk.machine.plan("sd15", desk.machine.read_choice(OWNER))
        guests = decide(hardware, describe_need(catalog.find("sd15")), Choice())
        assert own.dtype != guests.dtype
        job = desk.jobs.begin(PictureRequest("a tree", model="sd15"), OWNER)
        desk.keeper.status.set(job=job)
        desk.keeper.board.set_plan(job, "sd15", guests)
        seen = machine_tab(desk, "sd15", "", "en")
        assert seen["note"] == "This is the plan of the running job."
        assert machine_tab(desk, "sd15", "", "zh")["note"] == "这是正在运行的任务的方案。"
        assert machine_tab(desk, "sd15", "rtx-3060", "en")["note"] != seen["note"]
        assert desk.machine.offer(catalog.find("sd15")).forecast.plan == own  # type: ignore[union-attr]
        desk.keeper.board.set_plan(job, "sd15", own)
        assert machine_tab(desk, "sd15", "", "en")["note"] == "", "the next would get the same"
        desk.keeper.board.set_plan(job, "sd15", guests)
        desk.keeper.status.set(job="")
        assert machine_tab(desk, "sd15", "", "en")["note"] == "", "nothing runs"


@pytest.mark.slow
def test_a_machine_that_is_pretended_from_a_file_is_listed_while_it_is_in_force(tmp_path: Path) -> None:
    real = dataclasses.replace(MACHINES["m2-16gb"], name="Apple M2 Pro", pretended="")
    (tmp_path / "their mac.json").write_text(lay_out(describe_report(real, {})), "utf-8")
    with desk_at(tmp_path / "home") as desk:
        assert list(desk.machine.list_pretended()) == list(MACHINES)
        desk.keeper.pretended = str(tmp_path / "their mac.json")
        listed = desk.machine.list_pretended()
        assert listed["their mac.json"] == "Apple M2 Pro (their mac.json)" and list(listed) == ["their mac.json", *MACHINES]
        assert (listed["t4"], listed["m1-8gb-full"]) == ("Tesla T4", "Apple M1 (m1-8gb-full)"), "three have the same name"
        choices = [
            each
            for field in window.build(desk).blocks.values()
            if field.elem_id == "machine-as"
            for each in cast(gr.Dropdown, field).choices
        ]
        assert ("Apple M2 Pro (their mac.json)", "their mac.json") in choices
        assert machine_view.tab_view(desk, "sd15", "their mac.json", "en") is None, "until the engine has read it"
        hardware = find_machine(desk.keeper.pretended)
        desk.keeper.status.set(hardware=hardware)
        shown = [machine_tab(desk, "sd15", looked_at, "en") for looked_at in ("", "their mac.json")]
        assert shown[0] == shown[1] and "Apple M2 Pro" in shown[0]["words"] and shown[0]["pretended"] == "their mac.json"
        elsewhere = machine_tab(desk, "sd15", "m2-16gb", "en")
        assert "Apple M2," in elsewhere["other"] and elsewhere["words"] == shown[0]["words"], "and this machine stays what it is"
        with pytest.raises(Trouble, match="no pretended machine named /etc/passwd"):
            machine_tab(desk, "sd15", "/etc/passwd", "en")  # the page opens no files
        assert str(tmp_path) not in machine_view.write_report(desk)


def test_an_engine_that_does_not_start_is_told_with_its_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is not failed; the owner is told why, and has buttons for it. Nobody else has either."""
    with desk_at(tmp_path) as desk:
        app = Starlette(routes=routes.routes(desk))
        owner, guest = TestClient(app), TestClient(app)
        for module in (routes, json_routes):
            monkeypatch.setattr(module, "who", lambda request: Person("ada", False) if "guest" in request.headers else OWNER)
        assert owner.get("/hearth/live").json()["standing"] is None
        for _ in range(engine_life.STARTS):
            desk.keeper.engine.count_failed_start()
        words = say("engine.exit", "The engine stopped with exit code {code}; see its log for details.", code=7)
        desk.keeper.status.set(trouble=Death(words, "crash"))
        until(lambda: desk.keeper.state.gave_up)
        standing = owner.get("/hearth/live").json()["standing"]
        assert standing["cure"] == "repair" and "does not start" in standing["text"] and "code 7" in standing["text"]
        assert owner.get("/hearth/live").json()["strip"]["doing"] == "engine does not start"
        assert "standing" not in guest.get("/hearth/live", headers={"guest": "1"}).json()
        for act in ("again", "repair"):
            assert guest.post(f"/hearth/engine/{act}", headers={"guest": "1"}).status_code == 404
        assert desk.keeper.engine.start_at_s > 0.0
        assert owner.post("/hearth/engine/again").status_code == 200 and desk.keeper.engine.start_at_s == 0.0
        monkeypatch.delenv(failure.FILE_VARIABLE, raising=False)
        assert "repair" in owner.post("/hearth/engine/repair").json()["text"] and not desk.leaving.is_set()
        monkeypatch.setenv(failure.FILE_VARIABLE, str(tmp_path / "left.json"))
        (desk.keeper.home.logs / "engine.log").write_text("no module named torch")
        owner.post("/hearth/engine/repair")
        left = failure.read(tmp_path / "left.json")
        assert desk.leaving.is_set() and left is not None and "cannot start" in left.words["en"]
        assert "no module named torch" in left.report and "code 7" in left.words["en"]


def test_what_holds_every_job_up_is_told() -> None:
    """It said "ready" while nothing ran."""
    obstacle = say(
        "keeper.files",
        "Jobs cannot run: {file} cannot be used ({fault}). Fix that file's problem; waiting jobs then start by themselves.",
        file="x",
        fault="y",
    )
    state = EngineState(ready=True, obstacle=obstacle)
    told = views.blocker_view(state, "en")
    assert told is not None and "x cannot be used (y)" in told["text"]
    assert views.doing_text(state, None, "en") == "paused"


def test_the_strip_says_that_the_work_is_for_another_computer() -> None:
    for job, doing in (("1", "starting"), (name_lent("1-0-1"), "starting, for another computer")):
        state = EngineState(ready=True, job=job)
        assert views.strip_view(state, Progress(), "", Choice(), AUTO, "en")["doing"] == doing


def test_the_plan_is_drawn_anew_after_each_choice_also_of_another_window() -> None:
    state = EngineState(ready=True, job="")
    chosen: tuple[tuple[Choice, Chunk], ...] = ((Choice(), AUTO), (Choice(), 64), (Choice(), 77), (Choice(gqa="expanded"), AUTO))
    stamps = [views.strip_view(state, Progress(), "", *each, "en")["plan"] for each in chosen]
    assert len({*stamps}) == len(chosen)
    assert stamps[1] == views.strip_view(state, Progress(), "", Choice(), 64, "en")["plan"]


def test_jobs_of_the_same_words_are_told_apart_in_the_queue(tmp_path: Path) -> None:
    """Each has its model for the owner alone, and whose voice speaks, or size, seed and number; above them stands what runs."""
    with desk_at(tmp_path) as desk:
        edith, callum = (each for each in voices.list_ready_voices() if each.name.lower() in ("edith", "callum"))
        asked: list[Request] = [
            SpeechRequest("Hello.", model="starter-voice", voice=edith.prompt),
            SpeechRequest("Hello.", model="starter-voice", voice=callum.prompt),
            SpeechRequest("[Anna] Hello.", model="starter-voice", cast=(Actor("Anna"), Actor("Ben"))),
            PictureRequest("a boat", model="starter-painter", width=256, height=256, seed=7, batch=2),
        ]
        jobs = [desk.keeper.journal.queue(each, Choice()) for each in asked]
        told = [each["facts"] for each in desk.jobs.list_queue(OWNER, "en")]
        assert sorted(told[:2]) == ["Starter voice · Callum", "Starter voice · Edith"]
        assert told[2:] == ["Starter voice · Anna, Ben", "Starter painter · 256 x 256 · seed 7 · 2 pictures"]
        assert desk.jobs.list_queue(OWNER, "zh")[3]["facts"] == "入门画师 · 256 x 256 · 种子 7 · 2 张图片"
        guest = dataclasses.replace(OWNER, name=jobs[0].owner, owner=False)
        assert desk.jobs.list_queue(guest, "en")[3]["facts"] == "256 x 256 · seed 7 · 2 pictures"
        assert desk.jobs.find_running(OWNER, "en") is None
        desk.keeper.status.set(job=jobs[3].id)
        running = desk.jobs.find_running(OWNER, "en")
        assert running is not None and running["text"] == "a boat" and "place" not in running
        assert desk.jobs.find_running(Person("somebody else", owner=False), "en") is None
