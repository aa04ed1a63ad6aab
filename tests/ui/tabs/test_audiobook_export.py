"""Chapters selected on the Shelf, joined in the order of their book, with its title, author and cover, also when it is not open any more."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import pytest
import soundfile
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.engine.jobs.request import Actor, PictureRequest, SpeechRequest
from app.engine.speech.sound.recode import add_cover, recode
from app.engine.speech.text.chapter_names import name_chapter
from app.ui.state.desk import Desk
from app.ui.state.person import KEY, OWNER
from app.ui.tabs import shelf
from app.ui.tabs.shelf import name_file
from tests.support.books import save_epub
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at

PAGES = {"a.xhtml": "<h1>The Ferry</h1><p>It rained.</p>", "b.xhtml": "<h1>The Storm</h1><p>It blew.</p>"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def page_of(desk: Desk) -> TestClient:
    routes = Starlette(routes=shelf.routes(desk))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY] = OWNER
        await routes(scope, receive, send)

    return TestClient(app)


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_what_is_selected_is_joined_in_the_order_it_was_made(desk: Desk, tmp_path: Path) -> None:
    import av

    made = [
        keep_creation(desk, SpeechRequest(text), f"{place}.wav").id
        for place, text in enumerate(("[S1] The Ferry\n\nIt rained.", "The Storm\n\nIt blew."))
    ]
    picture = keep_creation(desk, PictureRequest("a boat"), "b.png").id
    with save_epub(tmp_path / "x", {"a.xhtml": "<p>It rained.</p>"}, None).open("rb") as file:
        desk.book.open(file, "x.epub")
    answer = page_of(desk).get("/hearth/export", params={"audiobook": "1", "ids": f"{made[1]},{picture},{made[0]}"})
    assert answer.status_code == 200 and "audiobook.m4b" in answer.headers["content-disposition"]
    (tmp_path / "y.m4b").write_bytes(answer.content)
    with av.open(str(tmp_path / "y.m4b")) as opened:
        assert [each["metadata"]["title"] for each in opened.chapters()] == ["The Ferry", "The Storm"]
        assert opened.metadata["title"] == "The Ferry" and "artist" not in opened.metadata, "these are no chapters of the open book"
    answer = page_of(desk).get("/hearth/export", params={"audiobook": "1", "ids": str(made[0]), "title": "  My Summer "})
    (tmp_path / "z.m4b").write_bytes(answer.content)
    with av.open(str(tmp_path / "z.m4b")) as opened:
        assert opened.metadata["title"] == "My Summer"
    assert not any((desk.keeper.home.scratch / "uploads").glob("*/audiobook.m4b"))


def test_chapters_keep_their_places_though_one_was_spoken_again(desk: Desk, tmp_path: Path) -> None:
    with save_epub(tmp_path / "x", PAGES, None).open("rb") as file:
        desk.book.open(file, "x.epub")
    for _ in range(2):
        desk.book.begin(SpeechRequest("?"))
        desk.book.tick([0])  # and then the first again
    first, second = desk.book._list_jobs()
    made = [
        keep_creation(desk, SpeechRequest(title), f"{place}.wav", job)
        for place, title, job in ((0, "The Storm", second), (1, "The Ferry", first))
    ]
    for job in (first, second):
        desk.keeper.journal.end(job, "finished")
    ids = ",".join(str(each.id) for each in made)
    for kind in ("mp3", "flac"):
        answer = page_of(desk).get("/hearth/export", params={"each": kind, "ids": ids, "title": "The Ferry & the Fjord"})
        assert answer.status_code == 200 and "The Ferry" in unquote(answer.headers["content-disposition"])
        with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
            assert packed.namelist() == [f"1 The Ferry.{kind}", f"2 The Storm.{kind}"]
            packed.extractall(tmp_path)
        with soundfile.SoundFile(tmp_path / f"2 The Storm.{kind}") as file:
            told = (file.title, file.album, file.artist, file.tracknumber)
        assert told == ("The Storm", "The Ferry & the Fjord", "A. Writer", "2")
    assert page_of(desk).get("/hearth/export", params={"each": "exe", "ids": ids}).status_code == 400
    assert not any((desk.keeper.home.scratch / "uploads").glob("*"))


def test_chapters_without_spaces_keep_their_names_behind_their_numbers(desk: Desk) -> None:
    made = [keep_creation(desk, SpeechRequest(sign * 90), f"{sign}.wav") for sign in "雨雪"]
    answer = page_of(desk).get("/hearth/export", params={"each": "flac", "ids": ",".join(str(each.id) for each in made)})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        assert packed.namelist() == [f"1 {'雨' * 78}.flac", f"2 {'雪' * 78}.flac"]


def speak_backwards(desk: Desk) -> str:
    """Begin the open book's chapters and keep a sound of each, the last one first; return what an export asks for."""
    desk.book.begin(SpeechRequest("?"))
    made = []
    for place, job in enumerate(reversed(desk.jobs.chapters.jobs)):
        made.append(keep_creation(desk, desk.keeper.journal.get(job).request, f"{place}.wav", job))
        desk.keeper.journal.end(job, "finished")
    return ",".join(str(each.id) for each in made)


def draw(colour: tuple[int, int, int]) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (60, 90), colour).save(made, "PNG")
    return made.getvalue()


@pytest.mark.skipif(find_spec("av") is None, reason="an extra")
def test_a_book_that_is_not_open_any_more_still_has_title_author_cover_and_order(tmp_path: Path) -> None:
    import av

    def save(desk: Desk, ids: str) -> tuple[dict[str, str], list[str], list[tuple[int, int, int]]]:
        (tmp_path / "made.m4b").write_bytes(page_of(desk).get("/hearth/export", params={"audiobook": "1", "ids": ids}).content)
        with av.open(str(tmp_path / "made.m4b")) as opened:
            covers = [next(opened.decode(each)).to_image() for each in opened.streams.video]
            colours = [tuple(round(each / 10) * 10 for each in cover.getpixel((30, 45))) for cover in covers]
            return dict(opened.metadata), [each["metadata"]["title"] for each in opened.chapters()], colours

    with desk_at(tmp_path / "home") as desk:
        with save_epub(tmp_path / "x", PAGES, None, cover=draw((200, 30, 30))).open("rb") as file:
            desk.book.open(file, "x.epub")
        ids = speak_backwards(desk)
        desk.book.begin(SpeechRequest("?"))  # and once more, which is not spoken yet
    with desk_at(tmp_path / "home") as desk:
        told, chapters, covers = save(desk, ids)
        assert (told["title"], told["artist"]) == ("The Ferry & the Fjord", "A. Writer")
        assert chapters == ["The Ferry", "The Storm"] and covers == [(200, 30, 30)]
        with save_epub(tmp_path / "y", {"c.xhtml": "<h1>Home</h1><p>It snowed.</p>"}, None, cover=draw((30, 30, 200))).open("rb") as file:
            desk.book.open(file, "y.epub")
        other = speak_backwards(desk)
        assert save(desk, ids)[1:] == (["The Ferry", "The Storm"], [(200, 30, 30)]), "another one is open"
        assert save(desk, other)[1:] == (["Home"], [(30, 30, 200)])
        desk.book.close()
        told, chapters, covers = save(desk, f"{other},{ids}")
        assert "artist" not in told and chapters == ["The Storm", "The Ferry", "Home"] and not covers, "chapters of two books are of none"
        for each in desk.keeper.home.covers.iterdir():
            each.unlink()
        told, _, covers = save(desk, ids)
        assert told["artist"] == "A. Writer" and not covers, "a cover that was deleted takes nothing else with it"


def find_cover(data: bytes) -> bytes:
    """Return the front cover of an MP3: what stands in its tag's APIC frame."""
    at = data.index(b"APIC")
    return data[at + 10 : at + 10 + int.from_bytes(data[at + 4 : at + 8], "big")].removeprefix(b"\0image/jpeg\0\x03\0")


def test_one_sound_and_one_picture_are_an_mp3_with_title_and_cover(desk: Desk, tmp_path: Path) -> None:
    sound = keep_creation(desk, SpeechRequest("[Anna] Welcome to the show.", format="mp3"), "a.mp3")
    picture = keep_creation(desk, PictureRequest("a table"), "b.png")
    with Image.open(picture.path) as opened:
        size = opened.size
    before = sound.path.read_bytes()
    answer = page_of(desk).get("/hearth/export", params={"mp3": "1", "ids": f"{picture.id},{sound.id}", "title": " The Kitchen Table: 1 "})
    assert answer.status_code == 200 and "The Kitchen Table" in unquote(answer.headers["content-disposition"])
    (tmp_path / "x.mp3").write_bytes(answer.content)
    with Image.open(io.BytesIO(find_cover(answer.content))) as cover:
        assert (cover.format, cover.size) == ("JPEG", size)
    with soundfile.SoundFile(tmp_path / "x.mp3") as file, soundfile.SoundFile(sound.path) as plain:
        assert len(file) == len(plain) and (file.read() == plain.read()).all()
        assert file.title == "The Kitchen Table: 1", "though it was an MP3 before"
    assert sound.path.read_bytes() == before and not any((desk.keeper.home.scratch / "uploads").glob("*"))


def test_a_picture_that_is_none_leaves_the_mp3_as_it_is(desk: Desk) -> None:
    sound = keep_creation(desk, SpeechRequest("[S1] Hello."), "a.wav")
    made = recode(sound, "mp3", sound.path.parent, "Hello")
    before = made.read_bytes()
    assert before.startswith(b"ID3\x03") and b"Hello" in before[:4096]
    add_cover(made, b"no picture")
    assert made.read_bytes() == before
    picture = keep_creation(desk, PictureRequest("a table"), "b.png").path.read_bytes()
    add_cover(made, picture)
    assert len(find_cover(made.read_bytes())) > 100
    with soundfile.SoundFile(made) as file:
        assert file.title == "Hello", "the words of its tag stay"
    later = before.replace(b"ID3\x03", b"ID3\x04", 1)
    made.write_bytes(later)
    add_cover(made, picture)
    assert made.read_bytes() == later, "another version's tag is not touched"


def test_several_sounds_are_no_mp3(desk: Desk) -> None:
    made = [keep_creation(desk, SpeechRequest(text), f"{text}.wav").id for text in ("One.", "Two.")]
    answer = page_of(desk).get("/hearth/export", params={"mp3": "1", "ids": ",".join(map(str, made))})
    assert answer.status_code >= 400 and "one sound and one picture" in answer.json()["trouble"]


def test_pictures_alone_are_told_to_be_no_chapters(desk: Desk) -> None:
    picture = keep_creation(desk, PictureRequest("a boat"), "b.png").id
    answer = page_of(desk).get("/hearth/export", params={"audiobook": "1", "ids": str(picture)})
    assert answer.status_code >= 400 and "Nothing spoken is selected" in answer.json()["trouble"]
    assert not any((desk.keeper.home.scratch / "uploads").glob("*"))


def test_a_chapter_is_named_by_its_first_line() -> None:
    assert name_chapter("\n[S1] The Ferry \n\nIt rained.") == "The Ferry"
    assert name_chapter("## " + "long " * 40) == ("long " * 40).strip(), "whole"
    assert name_chapter("long " * 400) == ("long " * 60).strip() and name_chapter("長" * 400) == "長" * 300
    assert name_chapter("第一章 " + "雨" * 400) == "第一章 " + "雨" * 296, "it has no other space"
    assert [name_chapter(f"The{end}Ferry") for end in "\r\x85\u2028"] == ["The"] * 3 and name_chapter(
        "The \0Fer\x1bry\u202e"
    ) == "The Ferry"
    assert name_chapter("") == name_chapter("\0") == ""


def test_a_long_title_is_whole_in_the_file_and_cut_after_a_word_in_its_name(desk: Desk, tmp_path: Path) -> None:
    line = "Where we stood that morning, and what we could see of the boats and of the harbour from up there."
    spoken = keep_creation(desk, SpeechRequest(f"{line}\nIt was cold.", cast=(Actor("Anna"), Actor("Ben"))), "a.wav")
    picture = keep_creation(desk, PictureRequest("a boat"), "b.png")
    exported = page_of(desk).get("/hearth/export", params={"mp3": "1", "ids": f"{picture.id},{spoken.id}"})
    (tmp_path / "x.mp3").write_bytes(exported.content)
    with soundfile.SoundFile(tmp_path / "x.mp3") as file:
        assert (file.title, file.artist) == (line, "Anna, Ben")
    assert name_file(Path("a.mp3"), line, ".mp3") == "Where we stood that morning, and what we could see of the boats and of the.mp3"
    assert name_file(Path("a.mp3"), f"第一章 {'雨' * 90}", ".mp3") == f"第一章 {'雨' * 75}.mp3"
    assert name_file(Path("a.mp3"), "\U00020000" * 80, ".mp3") == "\U00020000" * 59 + ".mp3", "file systems count bytes"
    assert name_file(Path("a.mp3"), "x" * 90, ".mp3") == "x" * 80 + ".mp3" and name_file(Path("a.mp3"), "", ".mp3") == "a.mp3"
