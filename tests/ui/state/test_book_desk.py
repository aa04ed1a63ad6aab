"""Chapters of the owner's book: queued a job each, with the settings of the fields, and stopped together."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.base import notices
from app.base.sentence import say
from app.base.trouble import BadRequest, DiskFull, QueueFull
from app.compat.machine.meter import Reading
from app.engine.jobs.events import Step
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Actor, SpeechRequest
from app.engine.speech.text.said_by import tag_chapter
from app.ui.state import book_desk
from app.ui.state.book_desk import BOOKS, CHAPTERS_MOST, Spoken
from app.ui.state.desk import Desk
from app.ui.state.jobs_desk import EndedScript, JobsDesk
from app.ui.state.person import OWNER, Person
from app.ui.state.settings import Settings
from tests.support.books import save_epub
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at, page_of
from tests.ui.state.test_editing import end
from tests.ui.tabs.test_audiobook_export import page_of as shelf_of

ASKED = SpeechRequest("?", seed=7, speed=1.5)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def open_book(desk: Desk, folder: Path, chapters: int) -> None:
    pages = {f"{each}.xhtml": f"<h1>No. {each}</h1><p>It rained.</p>" for each in range(chapters)}
    with save_epub(folder / "x", pages, {page: f"No. {place}" for place, page in enumerate(pages)}).open("rb") as file:
        desk.book.open(file, "x.epub")


def waiting(desk: Desk) -> list[SpeechRequest]:
    return [job.request for job in desk.keeper.journal.list_waiting() if isinstance(job.request, SpeechRequest)]


def test_the_ticked_chapters_are_queued_in_their_order_and_stopped_together(desk: Desk, tmp_path: Path) -> None:
    open_book(desk, tmp_path, 4)
    desk.book.tick([3, 1, 1, 99, -1])
    desk.book.begin(ASKED)
    assert [each.text for each in waiting(desk)] == ["No. 1\n\nIt rained.", "No. 3\n\nIt rained."]
    assert all(each.seed == 7 and each.speed == 1.5 for each in waiting(desk))
    desk.jobs.begin(SpeechRequest("Another."), OWNER)
    desk.jobs.stop("speech", OWNER)
    assert [each.text for each in waiting(desk)] == ["Another."]


@pytest.mark.slow
def test_no_chapter_too_many_and_no_room_are_refused_before_anything_is_queued(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="No chapter"):
        desk.book.begin(ASKED)
    open_book(desk, tmp_path, CHAPTERS_MOST + 1)
    with pytest.raises(BadRequest, match=str(CHAPTERS_MOST)):
        desk.book.begin(ASKED)
    assert not waiting(desk)
    desk.book.tick(range(150))
    desk.book.begin(ASKED)
    with pytest.raises(QueueFull):
        desk.book.begin(ASKED)
    assert len(waiting(desk)) == 150


def test_chapters_that_cannot_all_be_queued_are_taken_back(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, room = desk.keeper.submit, [2]

    def submit(*asked: Any) -> Job:
        room[0] -= 1
        if room[0] < 0:
            raise DiskFull(say("test.full", "The disk is full."))
        return real(*asked)

    open_book(desk, tmp_path, 4)
    monkeypatch.setattr(desk.keeper, "submit", submit)
    with pytest.raises(DiskFull, match=r"The disk is full\. No chapter was begun"):
        desk.book.begin(ASKED)
    assert not waiting(desk) and desk.jobs.chapters.jobs == ()


def test_what_is_left_for_the_book_is_told_and_chapters_stay_together_after_a_restart(desk: Desk, tmp_path: Path) -> None:
    open_book(desk, tmp_path, 3)
    desk.book.begin(ASKED)
    first, _, third = desk.jobs.chapters.jobs
    assert desk.jobs.estimate_left(first) == (1, 3, None) and desk.jobs.estimate_left("another") is None
    desk.keeper.board.post(first, Step(5, 10, 20.0, "frames", 4.0, Reading(), realtime=2.0))
    lasts_s = desk.jobs.chapters.seconds
    assert list(desk.jobs.estimate_left(first) or ()) == [1, 3, pytest.approx(4.0 + (lasts_s[1] + lasts_s[2]) / 2.0)] and min(lasts_s) > 0.5
    desk.keeper.stop(third)
    assert list(desk.jobs.estimate_left(first) or ()) == [1, 3, pytest.approx(4.0 + lasts_s[1] / 2.0)]
    again = JobsDesk(desk.keeper, Settings(desk.settings._file), desk.models, desk.machine, desk.measuring, desk.hearing)
    assert again.chapters == desk.jobs.chapters
    again.stop("speech", OWNER)
    assert not waiting(desk)


def test_the_route_opens_ticks_gives_the_script_and_closes(desk: Desk, tmp_path: Path) -> None:
    path = save_epub(tmp_path / "x", {"a.xhtml": "<h1>One</h1><p>It rained.</p>"}, None)
    page = page_of(desk, OWNER)
    assert page.get("/hearth/book").json() == {}
    opened = page.post("/hearth/book", files={"file": ("x.epub", path.read_bytes())}).json()
    assert [(each["title"], each["ticked"]) for each in opened["chapters"]] == [("One", True)]
    assert page.post("/hearth/book/script", json={"chapters": [0]}).json() == {"words": "One\n\nIt rained."}
    assert page.post("/hearth/book/script", json={"chapters": []}).json()["trouble"].startswith("No chapter is ticked")
    refused = page.post("/hearth/book", files={"file": ("y.rtf", b"{\\rtf1}")})
    assert refused.status_code == 400 and "y.rtf is a RTF file" in refused.json()["trouble"]
    assert page.get("/hearth/book").json()["chapters"], "the open one stays"
    assert "No file" in page.post("/hearth/book", data={"file": "words"}).json()["trouble"]
    page.post("/hearth/book/close", json={})
    assert page.get("/hearth/book").json() == {}


def test_a_book_in_a_language_that_the_voice_lacks_is_told_before_it_is_spoken(desk: Desk, tmp_path: Path) -> None:
    words = "Il est venu dans la maison pour voir les enfants, et elle ne lui a pas dit que vous \u00e9tiez l\u00e0."
    path = save_epub(tmp_path / "x", {"a.xhtml": f"<h1>Un</h1><p>{words}</p>", "b.xhtml": "<p>Fin.</p>"}, None)
    opened = page_of(desk, OWNER).post("/hearth/book", files={"file": ("x.epub", path.read_bytes())}).json()
    assert opened["note"] == "This seems to be French. Starter voice speaks English only, so it may not be understood."


PAGES = {
    "one.xhtml": "<h1>One</h1><p>\u201cCome in,\u201d said Ben.</p><p>\u201cNo,\u201d said Anna.</p><p>\u201cWell,\u201d said Ben.</p>",
    "two.xhtml": "<h1>Two</h1><p>\u201cStay,\u201d said Anna.</p><p>\u201cNever,\u201d said Carl.</p>",
    "three.xhtml": "<h1>Three</h1><p>It rained.</p>",
}


def open_story(desk: Desk, folder: Path) -> None:
    with save_epub(folder / "story", PAGES, None).open("rb") as file:
        desk.book.open(file, "story.epub")


def test_who_seems_to_speak_gets_the_same_voice_in_every_chapter_once_it_is_confirmed(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    assert desk.book.speakers == {"Ben": 2, "Anna": 2} and not desk.book.voiced, "a guess, until somebody confirms it"
    assert not any("[" in each for each in desk.book.list_scripts())
    desk.book.give_voices(["Anna", "Ben", "Carl"])
    assert desk.book.voiced == ("Ben", "Anna"), "Carl was not offered"
    daisy = next(each for each in desk.models.list_voices("starter-voice", OWNER) if each.name == "Daisy")
    desk.book.begin(SpeechRequest("?", "starter-voice", cast=(Actor("Anna", daisy.prompt),)))
    one, two, three = waiting(desk)
    assert "[Ben] \u201cCome in,\u201d [Narrator] said Ben." in one.text and "Carl" not in [each.name for each in two.cast]
    assert three.text == "[Narrator] Three\n\nIt rained.", "the narrator has the same voice where nobody else speaks"
    heard = [{each.name: each.voice for each in request.cast} for request in (one, two, three)]
    assert heard[0].keys() == {"Narrator", "Ben", "Anna"} and heard[1].keys() == {"Narrator", "Anna"} and heard[2].keys() == {"Narrator"}
    assert all(each.items() <= heard[0].items() and None not in each.values() for each in heard)
    assert heard[0]["Anna"] == daisy.prompt and len({*heard[0].values()}) == 3
    assert one.seed == two.seed == three.seed is not None, "what makes voices up makes one up"


def test_the_voice_that_is_chosen_for_a_script_of_one_reads_as_the_narrator(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    desk.book.give_voices(["Ben"])
    edith = next(each for each in desk.models.list_voices("starter-voice", OWNER) if each.name == "Edith")
    desk.book.begin(SpeechRequest("?", "starter-voice", edith.prompt))
    assert all(
        request.voice is None and {each.name: each.voice for each in request.cast}["Narrator"] == edith.prompt for request in waiting(desk)
    )


def cast_with(desk: Desk, anna: str) -> SpeechRequest:
    """Ask for the story with this voice for Anna, and those for the others that no other voice of hers takes away."""
    known = {each.name: each.prompt for each in desk.models.list_voices("starter-voice", OWNER)}
    others = (Actor("Narrator", known["George"]), Actor("Ben", known["Brian"]))
    return SpeechRequest("?", "starter-voice", cast=(*others, Actor("Anna", known[anna])))


def speak_story(desk: Desk, folder: Path) -> tuple[str, ...]:
    """Have all of the story spoken, and tick all of it again."""
    open_story(desk, folder)
    desk.book.give_voices(["Anna", "Ben"])
    desk.book.begin(cast_with(desk, "Daisy"))
    spoken = desk.jobs.chapters.jobs
    for job in spoken:
        end(desk, job)
    return spoken


def edit(desk: Desk, job: str, words: str, others: str) -> str:
    """Have other words spoken in a chapter; return its script."""
    request = desk.keeper.journal.get(job).request
    assert isinstance(request, SpeechRequest) and words in request.text
    desk.jobs.show_script(job, OWNER)
    edited = request.text.replace(words, others)
    end(desk, desk.jobs.speak_changed(edited, OWNER, request.cast))
    return edited


def begin_first(desk: Desk, asked: SpeechRequest, *names: str) -> SpeechRequest:
    """Begin the first chapter with voices for these names alone."""
    desk.book.give_voices(names)
    desk.book.tick([0])
    desk.book.begin(asked)
    (one,) = waiting(desk)
    return one


def list_tagged(request: SpeechRequest) -> set[str]:
    return {*re.findall(r"\[(\w+)\]", request.text)}


def list_fresh(desk: Desk, request: SpeechRequest) -> list[str]:
    parts = desk.jobs.parse(request).parts
    return [part.text for place, part in enumerate(parts) if place in request.choose_parts(len(parts))]


def test_of_a_spoken_book_only_the_lines_of_whoever_got_another_voice_are_spoken_anew(desk: Desk, tmp_path: Path) -> None:
    first, second, third = speak_story(desk, tmp_path)
    desk.book.begin(cast_with(desk, "Edith"))
    one, two = waiting(desk)
    assert list_fresh(desk, one) == ["[Anna] No"] and list_fresh(desk, two) == ["[Anna] Stay"]
    assert {Path(path).parent.name for path in one.keep} == {"", first} and {Path(path).parent.name for path in two.keep} == {"", second}
    assert 0 < sum(desk.jobs.chapters.seconds) < 6, "what is forecast is the lines"
    assert [each.state for each in desk.book.list_spoken()] == ["waits", "waits", "done"]
    again = desk.jobs.chapters.jobs
    for job in again:
        end(desk, job)
    assert [each.state for each in desk.book.list_spoken()] == ["done"] * 3
    made = [desk.keeper.shelf.list_of_job(job)[0] for job in (*again, third)]
    desk.book.close()
    assert desk.book.find_book(made)[1] == {each.id: place for place, each in enumerate(made)}


def test_which_spoken_chapters_a_changed_voice_touches_is_told_and_they_alone_are_spoken_anew(desk: Desk, tmp_path: Path) -> None:
    first, second, _ = speak_story(desk, tmp_path)
    assert desk.book.list_revoiced(cast_with(desk, "Daisy")) == []
    page = page_of(desk, OWNER)
    cast = {each.name: {"voice": name} for each, name in zip(cast_with(desk, "Edith").cast, ("George", "Brian", "Edith"), strict=True)}
    voices = {"model": "starter-voice", "cast": json.dumps(cast)}
    told = page.post("/hearth/book/revoiced", json=voices).json()
    assert [(each["place"], each["fresh"]) for each in told["chapters"]] == [(0, 1), (1, 1)]
    assert all(each["parts"] > 1 for each in told["chapters"]) and not waiting(desk)
    desk.book.tick([2])
    assert page.post("/hearth/book/revoice", json=voices).json()["chapters"][0]["state"] == "waits"
    one, two = waiting(desk)
    assert list_fresh(desk, one) == ["[Anna] No"] and list_fresh(desk, two) == ["[Anna] Stay"]
    assert {Path(path).parent.name for each in (one, two) for path in each.keep} == {"", first, second}
    assert page.post("/hearth/book/revoiced", json=voices).json()["chapters"] == [], "they are on their way"
    for job in desk.jobs.chapters.jobs:
        end(desk, job)
    assert "have these voices already" in page.post("/hearth/book/revoice", json=voices).json()["trouble"]


def test_what_changed_voices_touch_is_found_out_once_and_where_they_are_equal_without_a_look(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = speak_story(desk, tmp_path)
    read, tag, take_over = list[str](), tag_chapter, JobsDesk.take_over

    def note_tag(text: str, *rest: Any) -> str:
        read.append("tags")
        return tag(text, *rest)

    def note_take(jobs: JobsDesk, spoken: EndedScript, *rest: Any) -> SpeechRequest | None:
        read.append(spoken.job)
        return take_over(jobs, spoken, *rest)

    monkeypatch.setattr(book_desk, "tag_chapter", note_tag)
    monkeypatch.setattr(JobsDesk, "take_over", note_take)
    assert desk.book.list_revoiced(cast_with(desk, "Daisy")) == [] and read == [], "all have these voices"
    touched = desk.book.list_revoiced(cast_with(desk, "Edith"))
    assert [each.place for each in touched] == [0, 1] and read.count("tags") == 2 and first in read, (
        "the third names nobody with another voice"
    )
    read.clear()
    assert desk.book.list_revoiced(cast_with(desk, "Edith")) == touched and read == []
    monkeypatch.setattr(book_desk, "CHAPTERS_MOST", 1)
    assert [each.place for each in desk.book.list_revoiced(cast_with(desk, "Edith"))] == [0], "no more than are begun at once"
    edited = edit(desk, first, "Come in,", "Do come in,")
    (again,) = desk.book.list_revoiced(cast_with(desk, "Edith"))
    assert again.request.text == edited, "there is a newer result"


def test_another_voice_for_all_touches_every_chapter_with_the_settings_it_was_spoken_with(desk: Desk, tmp_path: Path) -> None:
    open_book(desk, tmp_path, 2)
    known = {each.name: each.prompt for each in desk.models.list_voices("starter-voice", OWNER)}
    asked = SpeechRequest("?", "starter-voice", known["George"], seed=7, temperature=0.5)
    desk.book.begin(asked)
    for job in desk.jobs.chapters.jobs:
        end(desk, job)
    assert desk.book.list_revoiced(dataclasses.replace(asked, temperature=0.9)) == [], "that is no voice"
    desk.book.speak_revoiced(SpeechRequest("?", "starter-voice", known["Edith"]))
    assert [(each.voice, each.seed, each.temperature, each.keep) for each in waiting(desk)] == [(known["Edith"], 7, 0.5, ())] * 2


def test_chapters_that_are_as_they_were_are_spoken_once_more_as_a_whole(desk: Desk, tmp_path: Path) -> None:
    speak_story(desk, tmp_path)
    desk.book.tick([0, 2])
    desk.book.begin(cast_with(desk, "Daisy"))
    assert [each.keep for each in waiting(desk)] == [(), ()]


def test_another_manner_of_speaking_takes_nothing_over_and_another_format_joins_anew(desk: Desk, tmp_path: Path) -> None:
    speak_story(desk, tmp_path)
    desk.book.begin(dataclasses.replace(cast_with(desk, "Edith"), format="flac"))
    assert [(len(list_fresh(desk, each)), each.format) for each in waiting(desk)] == [(1, "flac"), (1, "flac"), (0, "flac")]
    for job in desk.jobs.chapters.jobs:
        desk.keeper.stop(job)
    assert [each.state for each in desk.book.list_spoken()] == ["cut"] * 3 and all(each.creation for each in desk.book.list_spoken())
    desk.book.begin(dataclasses.replace(cast_with(desk, "Edith"), temperature=0.5))
    assert [each.keep for each in waiting(desk)] == [()] * 3


def test_lines_of_a_chapter_that_were_edited_stay_so_in_another_voice(desk: Desk, tmp_path: Path) -> None:
    first, *_ = speak_story(desk, tmp_path)
    edited = edit(desk, first, "Come in,", "Do come in,")
    desk.book.tick([0])
    desk.book.begin(cast_with(desk, "Edith"))
    (one,) = waiting(desk)
    assert one.text == edited and list_fresh(desk, one) == ["[Anna] No"]
    end(desk, desk.jobs.chapters.jobs[0])
    desk.editing.go_back(OWNER)
    assert desk.book.list_spoken()[0].state == "done", "the one before is back"


def test_whoever_has_no_voice_any_more_is_read_by_the_narrator(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    for names in (["Ben"], ["Ben", "Anna"], ["Ben"]):
        one = begin_first(desk, cast_with(desk, "Daisy"), *names)
        assert list_tagged(one) == {each.name for each in one.cast} == {"Narrator", *names}
        end(desk, *desk.jobs.chapters.jobs)
    assert one.keep, "Ben's lines are taken over"
    assert begin_first(desk, ASKED).text == desk.book.book.chapters[0].script  # type: ignore[union-attr]


def test_edited_lines_stay_whoever_gets_a_voice_or_loses_it(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    begin_first(desk, cast_with(desk, "Daisy"), "Ben")
    end(desk, *desk.jobs.chapters.jobs)
    edit(desk, desk.jobs.chapters.jobs[0], "Come in,", "Do come in,")
    for names in (["Ben", "Anna"], ["Anna"], [], ["Ben"]):
        one = begin_first(desk, cast_with(desk, "Daisy") if names else ASKED, *names)
        assert "Do come in," in one.text and list_tagged(one) == ({"Narrator", *names} if names else set())
        assert one.text.count("Do come in") == 1 and one.text.endswith("said Ben.")
        end(desk, *desk.jobs.chapters.jobs)
    assert not notices.list_notices()


@pytest.mark.parametrize("again", ["as it was", "colder", "in other voices", "unspoken"])
def test_edited_lines_stay_where_the_whole_chapter_is_spoken_again(again: str, desk: Desk, tmp_path: Path) -> None:
    first, *_ = speak_story(desk, tmp_path)
    edited = edit(desk, first, "Come in,", "Do come in,")
    asked = cast_with(desk, "Daisy")
    others = [each.prompt for each in desk.models.list_voices("starter-voice", OWNER) if each.prompt not in asked.prompts]
    if again in ("colder", "unspoken"):
        asked = dataclasses.replace(asked, temperature=0.5)
    elif again == "in other voices":
        asked = dataclasses.replace(asked, cast=tuple(Actor(each.name, voice) for each, voice in zip(asked.cast, others, strict=False)))
    one = begin_first(desk, asked, "Anna", "Ben")
    assert one.text == edited and not one.keep
    if again == "unspoken":
        desk.jobs.remove(*desk.jobs.chapters.jobs)
        assert begin_first(desk, asked, "Anna", "Ben").text == edited, "it was begun, but nothing of it is spoken"


def test_a_chapter_whose_lines_were_given_to_others_by_hand_says_where_it_is_spoken_as_the_book_has_it(desk: Desk, tmp_path: Path) -> None:
    first, *_ = speak_story(desk, tmp_path)
    edited = edit(desk, first, "[Ben] \u201cWell", "[Anna] \u201cWell")
    assert begin_first(desk, cast_with(desk, "Edith"), "Anna", "Ben").text == edited, "both have voices"
    end(desk, *desk.jobs.chapters.jobs)
    assert not notices.list_notices()
    one = begin_first(desk, cast_with(desk, "Edith"), "Ben")
    assert one.text == desk.book.list_scripts()[0] and list_tagged(one) == {"Narrator", "Ben"}
    (told,) = notices.take_all()
    assert "What you changed in One does not fit who has a voice now" in str(told)


def test_nobody_speaks_by_a_tag_of_ones_own_who_has_no_voice_in_the_book(desk: Desk, tmp_path: Path) -> None:
    _, second, _ = speak_story(desk, tmp_path)
    edit(desk, second, "\u201cNever,\u201d said", "[Carl] \u201cNever,\u201d [Narrator] said")
    desk.book.tick([1])
    desk.book.begin(cast_with(desk, "Edith"))
    (two,) = waiting(desk)
    assert list_tagged(two) == {each.name for each in two.cast} == {"Narrator", "Anna"}
    (told,) = notices.take_all()
    assert "What you changed in Two" in str(told)


def test_a_book_that_is_opened_again_knows_what_of_it_is_spoken_and_by_whom(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    desk.book.give_voices(["Anna"])
    desk.book.begin(ASKED)
    first, _, third = desk.jobs.chapters.jobs
    desk.keeper.journal.end(first, "finished")
    made = keep_creation(desk, SpeechRequest("[Narrator] One"), "one.wav", first)
    desk.keeper.stop(third)
    assert desk.book.list_spoken() == [Spoken("done", made.id), Spoken("waits"), Spoken("cut")]
    desk.book.close()
    assert desk.book.list_spoken() == [] and not desk.book.speakers
    changed = {**PAGES, "two.xhtml": "<h1>Two</h1><p>\u201cGo,\u201d said Anna.</p>"}
    with save_epub(tmp_path / "later", changed, None).open("rb") as file:
        desk.book.open(file, "story.epub")
    assert [each.state for each in desk.book.list_spoken()] == ["done", "", "cut"], "a chapter that was written anew is not spoken"
    assert desk.book.ticked == (1, 2) and desk.book.voiced == ("Anna",)


def test_of_books_that_were_spoken_the_last_are_kept_each_once(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_desk, "BOOKS_MOST", 2)
    jobs: list[str] = []
    own = desk.keeper.home.covers / "own.jpg"  # of nobody's book: it stays
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(b"")
    for number in (1, 2, 1, 3):
        Image.new("RGB", (8, 8), (0, 60 * number, 0)).save(made := io.BytesIO(), "PNG")
        page = {"a.xhtml": f"<h1>No. {number}</h1><p>It rained.</p>"}
        with save_epub(tmp_path / "x", page, None, cover=made.getvalue()).open("rb") as file:
            desk.book.open(file, "x.epub")
        desk.book.begin(ASKED)
        jobs.append(*desk.jobs.chapters.jobs)
    kept = desk.settings.get(BOOKS)
    assert [each["jobs"] for each in kept] == [{jobs[0]: 0, jobs[2]: 0}, {jobs[3]: 0}]
    assert {own.name, *(each["cover"] for each in kept)} == {each.name for each in desk.keeper.home.covers.iterdir()}


@pytest.mark.parametrize("where", ["shelf/empty", "disk/bin"])
def test_a_book_is_forgotten_with_its_last_chapter_in_the_bin(where: str, desk: Desk, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(made := io.BytesIO(), "PNG")
    with save_epub(tmp_path / "x", {"a.xhtml": "<h1>A</h1><p>It rained.</p>"}, None, cover=made.getvalue()).open("rb") as file:
        desk.book.open(file, "x.epub")
    desk.book.begin(ASKED)
    (job,) = desk.jobs.chapters.jobs
    desk.keeper.journal.end(job, "finished")
    chapter = keep_creation(desk, SpeechRequest("A"), "a.wav", job)
    other = keep_creation(desk, SpeechRequest("Of no book."), "b.wav")
    desk.book.close()

    def empty() -> None:
        if where == "shelf/empty":
            assert shelf_of(desk).post("/hearth/shelf/empty").status_code == 200
        else:
            desk.disk.delete("bin")

    desk.keeper.shelf.delete(other.id)
    empty()
    desk.keeper.shelf.delete(chapter.id)
    assert desk.settings.get(BOOKS), "it may be restored"
    desk.keeper.shelf.restore(chapter.id)
    assert desk.book.find_book([desk.keeper.shelf.get(chapter.id)])[0]
    empty()
    assert desk.settings.get(BOOKS), "it is not in the bin any more"
    desk.keeper.shelf.delete(chapter.id)
    empty()
    assert desk.settings.get(BOOKS) == [] and not [*desk.keeper.home.covers.iterdir()]


def test_a_book_stays_whose_next_chapter_is_still_to_come(desk: Desk, tmp_path: Path) -> None:
    open_book(desk, tmp_path, 2)
    desk.book.begin(ASKED)
    first, _ = desk.jobs.chapters.jobs
    desk.keeper.journal.end(first, "finished")
    desk.keeper.shelf.delete(keep_creation(desk, SpeechRequest("No. 0"), "a.wav", first).id)
    desk.book.empty_bin()
    assert desk.settings.get(BOOKS)


def test_a_stopped_book_shows_the_chapter_that_ran_and_goes_on_as_a_whole(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    desk.book.begin(ASKED)
    first, second, third = desk.jobs.chapters.jobs
    desk.keeper.journal.end(first, "finished")
    desk.jobs.stop("speech", OWNER)
    assert not waiting(desk) and desk.jobs.find_current("speech", OWNER) == second
    desk.jobs.resume(second)
    assert [job.id for job in desk.keeper.journal.list_waiting()] == [second, third]


def test_a_chapter_that_was_taken_out_does_not_come_back_with_the_others(desk: Desk, tmp_path: Path) -> None:
    open_story(desk, tmp_path)
    desk.book.begin(ASKED)
    first, second, third = desk.jobs.chapters.jobs
    desk.jobs.remove(second)
    assert (
        desk.jobs.chapters.jobs
        == (first, third)
        == JobsDesk(desk.keeper, Settings(desk.settings._file), desk.models, desk.machine, desk.measuring, desk.hearing).chapters.jobs
    ), "also after a restart"
    desk.jobs.stop("speech", OWNER)
    desk.jobs.resume(first)
    assert [job.id for job in desk.keeper.journal.list_waiting()] == [first, third]


def test_a_guest_has_no_book(desk: Desk) -> None:
    guest = page_of(desk, Person("Ada", False))
    assert guest.get("/hearth/book").status_code == 404 and guest.post("/hearth/book/close", json={}).status_code == 404
