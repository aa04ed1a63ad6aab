"""A spoken script edited line by line: words, places, pauses, earlier takes chosen again, and the way back; the script and the parts agree."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Stopped
from app.engine.jobs.parts import SPOKEN, TAKES
from app.engine.jobs.request import SpeechRequest
from app.engine.speech.sound import spoken_parts
from app.ui.state.desk import Desk
from app.ui.state.editing import Edit
from app.ui.state.person import OWNER, Person
from app.ui.tabs import speak_view
from tests.support import light_engine
from tests.support.guests import desk_at, page_of
from tests.support.waiting import until

TEXT = "[S1] One is warm.\n\nTwo is cold.\n\nThree is dry."
GUEST = Person("visitor-1-a", False)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path) as desk:
        yield desk


def finish(desk: Desk, request: SpeechRequest) -> str:
    """Let a job end whose parts are all spoken, or taken over."""
    job = desk.keeper.journal.queue(request, desk.machine.read_choice(OWNER), OWNER.name).id
    end(desk, job)
    return job


def end(desk: Desk, id_: str) -> None:
    job, folder = desk.keeper.journal.get(id_), desk.keeper.folder(id_)
    assert isinstance(job.request, SpeechRequest)
    folder.mkdir(parents=True, exist_ok=True)
    for index, part in enumerate(desk.jobs.parse(job.request).parts):
        if job.request.keep and job.request.keep[index] and index not in job.request.only_parts:
            spoken_parts.adopt(Path(job.request.keep[index]), folder, index)
        else:
            light_engine.speak(folder, index, part.text)
            about = SPOKEN.shown(folder, index).with_suffix(".json")
            about.write_text(json.dumps({**json.loads(about.read_text("utf-8")), "seed": int(id_.encode().hex()[-6:], 16)}), "utf-8")
    desk.keeper.journal.begin(id_)
    shutil.copy(folder / "part-000.wav", folder / "speech.wav")
    desk.keeper.shelf.keep(job, [folder / "speech.wav"], RunSummary("starter-voice", seconds=1.5, whole=True))
    desk.keeper.journal.end(id_, "finished")
    desk.keeper.board.forget(id_)
    desk.jobs.latest[OWNER.name, "speech"] = id_


def speak_next(desk: Desk) -> str:
    """Let the job that waits be spoken."""
    job = desk.keeper.journal.list_waiting()[-1].id
    end(desk, job)
    return job


def draft(desk: Desk, text: str) -> Any:
    return speak_view.script_view(desk, text, "", OWNER, "en")["draft"]


def view(desk: Desk) -> Any:
    return speak_view.job_view(desk, desk.jobs.find_current("speech", OWNER), "en")


def test_words_are_changed_where_the_line_stands(desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    assert desk.editing.read_line(Edit(TEXT, part=1), OWNER).words == "Two is cold."
    text = desk.editing.change_words(Edit(TEXT, part=1, words=" Two is mild. "), OWNER).text
    assert text == TEXT.replace("cold", "mild")
    lines = draft(desk, text)
    assert lines["state"] == "changed" and [line["part"] for line in lines["lines"]] == [0, -1, 2] and lines["fresh"] == 1
    assert lines["lines"][1]["text"] == "[S1] Two is mild."
    assert draft(desk, TEXT)["state"] == "same" and draft(desk, "Quite another.")["state"] == "other"
    assert desk.editing.change_words(Edit(TEXT, part=1), OWNER).text == "[S1] One is warm.\n\n\n\nThree is dry.", "a line is taken out"


def test_no_other_part_is_spoken_anew_for_one_that_changed(desk: Desk) -> None:
    """Parts are gathered anew wherever a paragraph changes; pauses as long as those that were there hold their borders."""
    first = "A first sentence that is long enough to be heard alone, with quite a few words in it."
    text = " ".join(first.replace("first", each) for each in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh"))
    finish(desk, SpeechRequest(text))
    before = desk.jobs.parse(SpeechRequest(text, "starter-voice")).parts
    words = desk.editing.read_line(Edit(text, part=0), OWNER).words
    changed = desk.editing.change_words(Edit(text, part=0, words="It is short."), OWNER).text
    lines = draft(desk, changed)["lines"]
    assert len(before) > 2 and [line["part"] for line in lines if line["part"] >= 0] == [*range(1, len(before))]
    assert "(pause 0.3s)" in changed, "only what the parts need"
    plain = desk.editing.change_words(Edit(text, part=0, words=words.replace("first", "early")), OWNER).text
    assert "(pause" not in plain


def test_lines_change_places_and_pauses_are_set(desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    moved = desk.editing.move(Edit(TEXT, part=0), OWNER, later=True)
    assert moved.text == "[S1] Two is cold.\n\nOne is warm.\n\nThree is dry." and moved.part == 1
    lines = draft(desk, moved.text)
    assert [line["part"] for line in lines["lines"]] == [1, 0, 2] and lines["fresh"] == 0
    assert desk.editing.move(Edit(moved.text, part=1), OWNER, later=False).text == TEXT, "a line is moved as the script stands now"
    with pytest.raises(Trouble, match="cannot be moved any further"):
        desk.editing.move(Edit(TEXT, part=0), OWNER, later=False)
    with_pause = desk.editing.set_pause(Edit(TEXT, part=1, seconds=2.5), OWNER).text
    assert with_pause == "[S1] One is warm.\n\n(pause 2.5s) Two is cold.\n\nThree is dry."
    assert [line["pause"] for line in draft(desk, with_pause)["lines"]] == [0.0, 2.5, 0.6]
    assert desk.editing.set_pause(Edit(with_pause, part=1), OWNER).text == TEXT
    after = desk.editing.set_pause(Edit(TEXT, part=3, seconds=1.0), OWNER).text
    assert after == f"{TEXT} (pause 1s)" and desk.editing.read_line(Edit(after, part=2), OWNER).pause_after_s == 1.0


def test_each_speaker_keeps_their_lines(desk: Desk) -> None:
    text = "[Anna] Hello there, my dear. [Ben] Good day to you, madam.\nAnna: How are you, then? (pause 2s) [Ben] Quite well, thank you."
    finish(desk, SpeechRequest(text))
    moved = desk.editing.move(Edit(text, part=3), OWNER, later=False).text
    lines = draft(desk, moved)
    assert [line["part"] for line in lines["lines"]] == [0, 1, 3, 2] and lines["fresh"] == 0, moved


def test_both_takes_are_kept_and_the_chosen_one_is_the_result(desk: Desk) -> None:
    first = finish(desk, SpeechRequest(TEXT))
    changed = TEXT.replace("cold", "mild")
    desk.editing.speak(Edit(changed), OWNER)
    second = speak_next(desk)
    (take,) = view(desk)["parts"][1]["takes"]
    assert take["text"] == "[S1] Two is cold." and view(desk)["before"]
    desk.jobs.redo_part(1, OWNER)
    third = speak_next(desk)
    takes = view(desk)["parts"][1]["takes"]
    assert [each["text"] for each in takes] == ["[S1] Two is mild.", "[S1] Two is cold."], "the newest first"
    assert not view(desk)["parts"][0]["takes"]
    shutil.rmtree(desk.keeper.folder(first))  # an old script's parts may go
    chosen = desk.editing.choose_take(Edit(changed, part=1, take=1), OWNER)
    assert chosen.text == TEXT, "the words come back with their take"
    request = desk.keeper.journal.list_waiting()[-1].request
    assert isinstance(request, SpeechRequest) and request.text == TEXT and request.only_parts == ()
    assert [Path(path).parent.name for path in request.keep] == [third] * 3 and Path(request.keep[1]).name == "take-001-1.wav"
    speak_next(desk)
    assert draft(desk, TEXT)["state"] == "same" and view(desk)["parts"][1]["text"] == "[S1] Two is cold."
    assert [each["text"] for each in view(desk)["parts"][1]["takes"]] == ["[S1] Two is mild."] * 2
    assert second != third


def test_the_way_back_leads_from_script_to_script(desk: Desk) -> None:
    first = finish(desk, SpeechRequest(TEXT))
    with pytest.raises(Trouble, match="nothing to undo"):
        desk.editing.go_back(OWNER)
    changed = TEXT.replace("cold", "mild")
    desk.editing.speak(Edit(changed), OWNER)
    assert desk.editing.go_back(OWNER).text == TEXT, "also while it waits"
    assert not desk.keeper.journal.list_waiting() and desk.jobs.find_current("speech", OWNER) == first
    desk.editing.speak(Edit(changed), OWNER)
    speak_next(desk)
    assert desk.editing.read_script(OWNER).text == changed
    assert desk.editing.go_back(OWNER).text == TEXT
    assert view(desk)["job"] == first and draft(desk, TEXT)["state"] == "same" and not view(desk)["before"]


def test_what_is_undone_goes_into_the_bin_unless_it_is_marked(desk: Desk) -> None:
    first = finish(desk, SpeechRequest(TEXT))
    desk.editing.speak(Edit(TEXT.replace("cold", "mild")), OWNER)
    undone = speak_next(desk)
    desk.editing.go_back(OWNER)
    (made,) = desk.keeper.shelf.list_of_job(undone)
    newest = desk.keeper.shelf.find_newest(first)
    assert made.binned and newest is not None and newest.job == first, "a book has the chapter as it was"
    desk.editing.speak(Edit(TEXT.replace("cold", "cool")), OWNER)
    (liked,) = desk.keeper.shelf.list_of_job(speak_next(desk))
    desk.keeper.shelf.set_favourite(liked.id, True)
    desk.editing.go_back(OWNER)
    assert not desk.keeper.shelf.get(liked.id).binned


def test_what_was_being_spoken_when_it_was_undone_goes_into_the_bin_once_it_has_ended(desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    desk.editing.speak(Edit(TEXT.replace("cold", "mild")), OWNER)
    job = desk.keeper.journal.list_waiting()[-1]
    desk.keeper.journal.begin(job.id)
    desk.keeper.board.open(job.id)
    desk.editing.go_back(OWNER)
    folder = desk.keeper.folder(job.id)
    folder.mkdir(parents=True, exist_ok=True)
    light_engine.speak(folder, 0, "One is warm.")
    shutil.copy(SPOKEN.shown(folder, 0), folder / "speech.wav")
    (made,) = desk.keeper.shelf.keep(job, [folder / "speech.wav"], RunSummary("starter-voice", seconds=1.5, whole=False))
    assert not made.binned
    desk.keeper.board.post(job.id, Stopped((str(made.path),), 1.0))
    until(lambda: desk.keeper.shelf.get(made.id).binned)


def test_a_chapter_that_shares_a_few_words_with_another_one_is_another_script(desk: Desk) -> None:
    long = " ".join(["It rained on the slates until the evening came and nobody minded it at all."] * 3)
    finish(desk, SpeechRequest(f"{TEXT}\n\n{long}"))
    other = "One is warm.\n\n" + long.replace("It rained", "The sun shone")
    assert draft(desk, other)["state"] == "other", "said Anna is in every chapter"
    with pytest.raises(Trouble, match="Speak the whole script"):
        desk.jobs.speak_changed(other, OWNER)
    assert draft(desk, TEXT)["state"] == "changed", "what was shortened goes on from it"


def test_only_a_voice_that_changed_speaks_anew(desk: Desk) -> None:
    """Two numbered speakers have no cast until a voice is chosen for one of them: the other one's parts stay."""
    text = "[S1] One is warm, I would say. (pause 0.4s) [S2] Two is cold, I would say. (pause 0.4s) [S1] Three is dry, I would say."
    finish(desk, SpeechRequest(text))
    cast = desk.models.read_cast('{"S2": {"voice": "Edith"}}', "starter-voice", OWNER)
    assert cast[0].voice is not None
    compared = desk.jobs.compare_script(text, OWNER, cast)
    assert compared is not None and compared.wanted is not None and compared.wanted.only_parts == (1,)


def test_the_script_in_the_field_is_the_one_that_is_edited(desk: Desk) -> None:
    with pytest.raises(Trouble, match="when the script has been spoken"):
        desk.editing.read_line(Edit(TEXT), OWNER)
    finish(desk, SpeechRequest(TEXT))
    with pytest.raises(Trouble, match="another one than these 3 parts"):
        desk.editing.read_line(Edit("Nothing of it."), OWNER)
    with pytest.raises(Trouble, match="no such part"):
        desk.editing.read_line(Edit(TEXT, part=7), OWNER)
    with pytest.raises(Trouble, match="take is not there"):
        desk.editing.choose_take(Edit(TEXT, take=3), OWNER)
    with pytest.raises(Trouble, match="first, or undo it"):
        desk.editing.choose_take(Edit(TEXT.replace("cold", "mild")), OWNER)
    finish(desk, SpeechRequest("One is warm."))
    with pytest.raises(Trouble, match="the only part"):
        desk.editing.change_words(Edit("One is warm."), OWNER)


def test_a_damaged_list_of_takes_offers_none(desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    desk.editing.speak(Edit(TEXT.replace("cold", "mild")), OWNER)
    job = speak_next(desk)
    folder = desk.keeper.folder(job)
    for text in ("{", '{"before": "../x", "parts": {}}', '{"before": "", "parts": {"1": [{"words": 3}]}}', "[" * 5000):
        (folder / TAKES).write_text(text, "utf-8")
        assert not view(desk)["parts"][1]["takes"] and not view(desk)["before"]


def test_the_page_edits_and_guests_do_not(desk: Desk) -> None:
    finish(desk, SpeechRequest(TEXT))
    page = page_of(desk, OWNER)
    assert page.post("/hearth/edit/line", json={"text": TEXT, "part": 1}).json() == {"words": "Two is cold.", "before": 0.6, "after": 0.6}
    answer = page.post("/hearth/edit/words", json={"text": TEXT, "part": 1, "words": "Two is mild."}).json()
    assert answer == {"text": TEXT.replace("cold", "mild"), "part": 1}
    assert "cannot be moved" in page.post("/hearth/edit/up", json={"text": TEXT, "part": 0}).json()["trouble"]
    assert page.post("/hearth/edit/speak", json={"text": answer["text"]}).status_code == 200
    speak_next(desk)
    assert page.post("/hearth/edit/back", json={}).json() == {"text": TEXT, "part": 0, "cast": "", "says": ""}
    assert page.post("/hearth/edit/dance", json={}).status_code == 404
    assert page_of(desk, GUEST).post("/hearth/edit/line", json={"text": TEXT}).status_code == 404
