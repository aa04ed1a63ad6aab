"""Chapters of the owner's book: queued a job each, with the settings of the fields, and stopped together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.trouble import BadRequest, QueueFull
from app.engine.jobs.request import SpeechRequest
from app.ui.state.book_desk import CHAPTERS_MOST
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER, Person
from tests.support.books import save_epub
from tests.support.guests import desk_at, page_of

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


def test_a_guest_has_no_book(desk: Desk) -> None:
    guest = page_of(desk, Person("Ada", False))
    assert guest.get("/hearth/book").status_code == 404 and guest.post("/hearth/book/close", json={}).status_code == 404
