"""A project as one file: what it carries to another computer, what stays out, what is refused, and how the work of before comes back."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.engine.jobs.request import Actor, Lora, PictureRequest, SpeechRequest, VoicePrompt
from app.engine.models.voice_limits import DIA
from app.engine.speech.text import voices
from app.engine.speech.text.pronunciations import store_everywhere
from app.ui.state import book_desk
from app.ui.state.desk import Desk
from tests.support.books import save_epub
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at
from tests.ui.tabs.test_audiobook_export import page_of

READY = voices.list_ready_voices()[0]
SCRIPT = "[Ann] Dr. Nguyen read.\n[Bo] Yes."


@pytest.fixture
def desks(tmp_path: Path) -> Iterator[tuple[Desk, Desk]]:
    with desk_at(tmp_path / "mine") as mine, desk_at(tmp_path / "theirs") as theirs:
        yield mine, theirs


def make_project(desk: Desk) -> int:
    """Make an album with a picture and a sound, which is a project, and a kept voice that its cast has."""
    home = desk.keeper.home
    voices.keep_voice(home, "Tom", Path(READY.prompt.path), READY.prompt.transcript, DIA)
    voices.keep_voice(home, "Unused", Path(READY.prompt.path), READY.prompt.transcript, DIA)
    store_everywhere(home, {"Nguyen": "Win", "elsewhere": "other place"})
    tom = next(each.prompt for each in voices.list_voices(home) if each.name == "Tom")
    spoken = SpeechRequest(SCRIPT, "dia-1.6b", VoicePrompt(tom.path, tom.transcript), cast=(Actor("Ann", tom),))
    painted = PictureRequest(
        "a boat", "/home/me/models/mine.safetensors", seed=7, image="/home/me/start.png", loras=(Lora("/home/me/ink.safetensors"),)
    )
    made = [keep_creation(desk, painted, "b.png").id, keep_creation(desk, spoken, "a.wav").id]
    desk.settings.put(
        {
            "drafts": {"speak-text": SCRIPT, "paint-prompt": "a sea", "paint-prompt-used": ["my secret prompts"]},
            "speak": {
                "voice": "Tom",
                "model": "/home/me/voices/dia",
                "cast": json.dumps({"Ann": {"voice": "tom", "model": "/home/me/voices/dia"}}),
                "speed": 1.1,
            },
            "paint": {"steps": 7},
        }
    )
    page = page_of(desk)
    album: int = page.post("/hearth/albums/make", json={"ids": ",".join(map(str, made)), "value": "Sea"}).json()["album"]
    page.post("/hearth/albums/name", json={"ids": str(made[0]), "value": "The cover"})
    page.post("/hearth/albums/tag", json={"ids": str(made[0]), "value": "blue"})
    page.post(f"/hearth/shelf/{made[0]}/favourite")
    page.post("/hearth/albums/keep", json={"album": album})
    return album


def save(desk: Desk, album: int) -> bytes:
    sent = page_of(desk).get("/hearth/project", params={"album": album})
    assert sent.status_code == 200 and "Sea.hearth.zip" in sent.headers["content-disposition"]
    return sent.content


def bring(desk: Desk, content: bytes, name: str = "Sea.hearth.zip") -> Any:
    return page_of(desk).post("/hearth/project", files={"file": (name, content, "application/zip")})


def test_it_goes_to_another_computer_and_nothing_else_does(desks: tuple[Desk, Desk]) -> None:
    mine, theirs = desks
    content = save(mine, make_project(mine))
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        assert sorted(bundle.namelist()) == ["creations/0000.png", "creations/0001.wav", "project.json", "voices/0000.wav"]
        listed = bundle.read("project.json").decode()
    for private in ("/home/me", str(mine.keeper.home.root), "secret", "elsewhere", "Unused"):
        assert private not in listed
    answer = bring(theirs, content).json()
    assert "The album Sea is here, with 2 creations and 1 voice." in answer["note"] and "This was made with dia." in answer["note"]
    page = page_of(theirs)
    sound, boat = page.get("/hearth/shelf", params={"album": answer["album"]}).json()["creations"]
    assert (boat["named"], boat["tags"], boat["favourite"], boat["text"]) == ("The cover", ["blue"], True, "a boat")
    kept = theirs.keeper.shelf.get(boat["id"])
    before = next(each for each in mine.keeper.shelf.find(_all()) if each.kind == "picture")
    assert kept.path.read_bytes() == before.path.read_bytes() and kept.created_s == before.created_s
    assert (
        kept.request.files == ("start.png",)
        and kept.request.loras[0].path == "ink.safetensors"
        and kept.request.model == "mine.safetensors"
    )
    (tom,) = voices.list_voices(theirs.keeper.home)
    spoken = theirs.keeper.shelf.get(sound["id"]).request
    assert isinstance(spoken, SpeechRequest) and spoken.voice == tom.prompt == spoken.cast[0].voice, "its voice is found again"
    assert page.post("/hearth/albums/open", json={"album": answer["album"]}).json()["drafts"] == {
        "speak-text": SCRIPT,
        "paint-prompt": "a sea",
    }
    speak = theirs.settings.get("speak")
    assert (speak["voice"], speak["model"], speak["speed"], json.loads(speak["says"])) == ("Tom", "", 1.1, {"Nguyen": "Win"})
    assert json.loads(speak["cast"]) == {"Ann": {"voice": "Tom", "model": ""}} and theirs.settings.get("paint") == {"steps": 7}


def _all() -> Any:
    from app.engine.jobs.shelf import Search

    return Search()


def test_taken_in_twice_it_stands_beside_itself_and_brings_no_voice_twice(desks: tuple[Desk, Desk]) -> None:
    mine, theirs = desks
    content = save(mine, make_project(mine))
    for name in ("Sea", "Sea 2"):
        assert f"The album {name} is here" in bring(theirs, content).json()["note"]
    voices.rename_voice(theirs.keeper.home, "Tom", "Other")
    voices.keep_voice(theirs.keeper.home, "Tom", Path(voices.list_ready_voices()[1].prompt.path), "Other words.", DIA)
    last = bring(theirs, content).json()["album"]
    assert sorted(each.name for each in voices.list_voices(theirs.keeper.home)) == ["Other", "Tom", "Tom 2"]
    page_of(theirs).post("/hearth/albums/open", json={"album": last})
    assert theirs.settings.get("speak")["voice"] == "Tom 2", "another voice of that name is not taken for it"


def test_the_book_of_its_chapters_goes_along(desks: tuple[Desk, Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = desks
    Image.new("RGB", (60, 90), (0, 90, 0)).save(cover := io.BytesIO(), "PNG")
    pages = {f"{name}.xhtml": f"<h1>{name}</h1><p>It rained.</p>" for name in ("One", "Two", "Three")}
    with save_epub(tmp_path / "x", pages, None, cover=cover.getvalue()).open("rb") as file:
        mine.book.open(file, "x.epub")
    mine.book.begin(SpeechRequest("?", seed=7))
    one, _, three = mine.jobs.chapters.jobs
    last, first = keep_creation(mine, SpeechRequest("Three"), "c.wav", three), keep_creation(mine, SpeechRequest("One"), "a.wav", one)
    alone = keep_creation(mine, SpeechRequest("Of no book."), "b.wav")
    album = page_of(mine).post("/hearth/albums/make", json={"ids": f"{last.id},{first.id},{alone.id}", "value": "Sea"}).json()["album"]
    content = save(mine, album)
    assert bring(theirs, content).json()["note"].startswith("The album Sea is here, with 3 creations")
    brought = {each.text.partition("\n")[0]: each for each in theirs.keeper.shelf.find(_all())}
    book, places = theirs.book.find_book([brought["Three"], brought["One"]])
    assert book and (book.title, book.author) == (mine.book.book and mine.book.book.title, mine.book.book and mine.book.book.author)
    assert places == {brought["One"].id: 0, brought["Three"].id: 2}
    with Image.open(io.BytesIO(book.cover)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (60, 90))
    assert theirs.book.find_book([brought["Of no book."]])[0] is None
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        listed = json.loads(bundle.read("project.json"))
        older = io.BytesIO()
        with zipfile.ZipFile(older, "w") as made:
            for name in (each for each in bundle.namelist() if not each.startswith(("project", "covers"))):
                made.writestr(name, bundle.read(name))
            made.writestr("project.json", json.dumps({name: each for name, each in listed.items() if name != "books"}))
    told = theirs.settings.get(book_desk.BOOKS)
    foreign = {**listed["books"][0], "title": "Of a stranger"}
    for most, row in ((book_desk.BOOKS_MOST, {**foreign, "places": {"creations/9999.wav": 0}}), (1, foreign)):
        monkeypatch.setattr(book_desk, "BOOKS_MOST", most)
        with zipfile.ZipFile(io.BytesIO(content)) as bundle, zipfile.ZipFile(other := io.BytesIO(), "w") as made:
            for name in bundle.namelist():
                made.writestr(name, json.dumps({**listed, "books": [row]}) if name == "project.json" else bundle.read(name))
        assert "with 3 creations" in bring(theirs, other.getvalue()).json()["note"]
        assert theirs.settings.get(book_desk.BOOKS) == told, "it takes the place of none"
        assert {each.name for each in theirs.keeper.home.covers.iterdir()} == {told[0]["cover"]}
    assert one not in json.dumps(listed), "jobs of this computer stay out"
    assert "with 3 creations" in bring(theirs, older.getvalue()).json()["note"], "one of before there were books"


def test_the_order_of_its_album_goes_along(desks: tuple[Desk, Desk]) -> None:
    mine, theirs = desks
    here, there = page_of(mine), page_of(theirs)
    made = [keep_creation(mine, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abcd"]
    album = here.post("/hearth/albums/make", json={"ids": ",".join(map(str, made)), "value": "Sea"}).json()["album"]

    def shown_there() -> tuple[list[str], bool]:
        brought = bring(theirs, content).json()["album"]
        found = there.get("/hearth/shelf", params={"album": brought}).json()
        return [each["text"][-1] for each in found["creations"]], next(each["ordered"] for each in found["albums"] if each["id"] == brought)

    content = save(mine, album)
    assert shown_there() == ([*"dcba"], False)
    here.post("/hearth/albums/order", json={"album": album, "value": "own"})
    here.post("/hearth/albums/place", json={"album": album, "ids": str(made[3]), "value": str(made[0])})
    content = save(mine, album)
    assert shown_there() == ([*"dabc"], True)
    with zipfile.ZipFile(io.BytesIO(content)) as bundle, zipfile.ZipFile(older := io.BytesIO(), "w") as packed:
        for name in bundle.namelist():
            listed = json.loads(bundle.read(name)) if name == "project.json" else {}
            listed.pop("ordered", None)
            packed.writestr(name, json.dumps(listed) if listed else bundle.read(name))
    content = older.getvalue()
    assert shown_there() == ([*"dcba"], False), "a file of before says nothing of an order"


def test_joined_letters_of_its_name_go_along(desks: tuple[Desk, Desk]) -> None:
    mine, theirs = desks
    album = mine.keeper.gallery.make_album("👩\u200d🎨 می\u200cخواهم")
    content = page_of(mine).get("/hearth/project", params={"album": album}).content
    assert "The album 👩\u200d🎨 می\u200cخواهم is here" in bring(theirs, content).json()["note"]


def test_the_work_of_before_comes_back_and_so_does_the_projects(desks: tuple[Desk, Desk]) -> None:
    mine, _ = desks
    page, album = page_of(mine), make_project(mine)
    own = {"speak": {"voice": "Bob", "own": True}, "paint": {"steps": 9}}
    mine.settings.put({**own, "drafts": {"speak-text": "mine"}})
    assert page.get("/hearth/shelf").json()["before"] is None
    page.post("/hearth/albums/open", json={"album": album})
    assert mine.settings.get("speak")["voice"] == "Tom" and page.get("/hearth/shelf").json()["before"] == ""
    mine.settings.put({"drafts": {"speak-text": "the novel goes on"}})
    assert page.post("/hearth/albums/back", json={}).json()["drafts"] == {"speak-text": "mine"}
    assert {name: mine.settings.get(name) for name in own} == own and page.get("/hearth/shelf").json()["before"] == "Sea"
    assert page.post("/hearth/albums/back", json={}).json()["drafts"] == {"speak-text": "the novel goes on"}
    assert page.get("/hearth/shelf").json()["before"] == ""


def test_there_is_nothing_to_bring_back_at_first(desks: tuple[Desk, Desk]) -> None:
    assert "Open one first" in page_of(desks[0]).post("/hearth/albums/back", json={}).json()["trouble"]


def change_list(**values: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["project.json"] = json.dumps(json.loads(members["project.json"]) | values).encode()

    return change


def change_first(**values: Any) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        listed = json.loads(members["project.json"])
        listed["creations"][0] |= values
        members["project.json"] = json.dumps(listed).encode()

    return change


def add_book(cover: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        book = {"title": "A", "author": "", "words": "0" * 32, "cover": cover, "places": {"creations/0001.wav": 0}}
        change_list(books=[book])(members)
        members[cover] = content

    return change


def put(name: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda members: members.update({name: content})


def large_picture() -> bytes:
    written = io.BytesIO()
    Image.new("1", (20_000, 16)).save(written, "PNG")
    return written.getvalue()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with desk_at(tmp_path_factory.mktemp("mine")) as mine:
        return save(mine, make_project(mine))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(put("creations/0001.wav", b"#!/bin/sh"), "no sound that Hearth made", id="a script"),
        pytest.param(put("creations/0000.png", b"GIF89a"), "no picture that Hearth made", id="another format"),
        pytest.param(put("creations/0000.png", large_picture()), "no picture that Hearth made", id="too large a picture"),
        pytest.param(put("voices/0000.wav", b"RIFF1234WAVE"), "is no voice", id="a voice that is none"),
        pytest.param(put("../../evil.py", b"?"), "../../evil.py does not belong", id="a way out"),
        pytest.param(put("creations/evil.exe", b"MZ"), "creations/evil.exe does not belong", id="an unknown member"),
        pytest.param(lambda members: members.pop("voices/0000.wav"), "voices/0000.wav is missing", id="a lost member"),
        pytest.param(lambda members: members.pop("project.json"), "no project that Hearth saved", id="no list"),
        pytest.param(put("project.json", b"{"), "no project that Hearth saved", id="a broken list"),
        pytest.param(put("project.json", b"[" * 100_000), "no project that Hearth saved", id="a deep list"),
        pytest.param(put("creations/0001.wav", bytes(100 << 20)), "no project that Hearth saved", id="what unpacks to far more"),
        pytest.param(change_list(hearth_project=2), "newer Hearth", id="of a newer Hearth"),
        pytest.param(change_list(name="\u202e"), "no project that Hearth saved", id="a name of no letters"),
        pytest.param(
            change_list(voices=[{"file": "../../voice.wav", "clip": "x"}]), "no project that Hearth saved", id="a way out in the list"
        ),
        pytest.param(add_book("covers/0000.jpg", b"GIF89a"), "no picture that Hearth made", id="a cover that is none"),
        pytest.param(add_book("../evil.jpg", large_picture()), "no project that Hearth saved", id="a way out for a cover"),
        pytest.param(change_first(file="creations/0001.wav"), "does not belong", id="one member for two"),
        pytest.param(
            change_first(request={"kind": "picture", "prompt": "a", "unheard": 1}), "cannot be read", id="settings of a newer Hearth"
        ),
        pytest.param(change_first(request={"kind": "speech", "text": "a"}), "no picture that Hearth made", id="settings of another kind"),
        pytest.param(change_first(seconds=-1), "no project that Hearth saved", id="a length below none"),
    ],
)
def test_what_a_stranger_made_of_it_is_refused_and_nothing_kept(saved: bytes, tmp_path: Path, spoil: Any, said: str) -> None:
    with zipfile.ZipFile(io.BytesIO(saved)) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    spoil(members)
    spoiled = io.BytesIO()
    with zipfile.ZipFile(spoiled, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    with desk_at(tmp_path / "theirs") as theirs:
        answer = bring(theirs, spoiled.getvalue())
        assert answer.status_code in (400, 409) and said in answer.json()["trouble"]
        home = theirs.keeper.home
        assert not voices.list_voices(home) and not theirs.keeper.gallery.list_albums() and not theirs.keeper.shelf.find(_all())
        assert not theirs.settings.get("spoken_books")
        assert not [*home.scratch.glob("project-*")] and not list(home.root.parent.rglob("evil*"))


def test_no_archive_and_no_file_are_told(desks: tuple[Desk, Desk]) -> None:
    mine, _ = desks
    assert "notes.txt is no project" in bring(mine, b"hello", "notes.txt").json()["trouble"]
    assert "No file came" in page_of(mine).post("/hearth/project", data={"file": "words"}).json()["trouble"]
    assert "not there any more" in page_of(mine).get("/hearth/project", params={"album": 99}).json()["trouble"]


def test_a_foreign_projects_settings_are_judged_when_it_is_opened(desks: tuple[Desk, Desk]) -> None:
    mine, _ = desks
    with zipfile.ZipFile(io.BytesIO(save(mine, make_project(mine)))) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    odd = {"drafts": {"speak-text": "x"}, "speak": {"speed": 99, "voice": 7, "cast": "[" * 5000}, "paint": {"steps": 7, "model": ["x"]}}
    change_list(work=odd)(members)
    spoiled = io.BytesIO()
    with zipfile.ZipFile(spoiled, "w") as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    answer = bring(mine, spoiled.getvalue()).json()
    mine.settings.put({"speak": {}, "paint": {}})
    page_of(mine).post("/hearth/albums/open", json={"album": answer["album"]})
    assert mine.settings.get("paint")["steps"] == 7 and not {"speed", "voice"} & mine.settings.get("speak").keys()


def test_what_stays_out_is_named_with_its_reason(desks: tuple[Desk, Desk]) -> None:
    desk = desks[0]
    album = make_project(desk)

    def told() -> str:
        return str(page_of(desk).post("/hearth/albums/left", json={"album": album}).json()["note"])

    assert told() == ""
    made = [keep_creation(desk, PictureRequest(text), f"{text}.png") for text in ("a fox", "an owl", "a cat")]
    made.append(keep_creation(desk, SpeechRequest("[S1] Hello."), "hello.png"))
    desk.keeper.gallery.put(made, album)
    made[0].path.unlink()
    made[1].path.write_bytes(b"longer or shorter")
    desk.keeper.database.write("UPDATE creations SET request='{}' WHERE id=?", made[2].id)
    for words in ("4 of 6 creations are not in the file", "“a fox” (file missing)", "“an owl” (changed by another program)"):
        assert words in told()
    assert "“a cat” (settings cannot be read)" in told() and "(a file of another kind)" in told()
    with zipfile.ZipFile(io.BytesIO(save(desk, album))) as bundle:
        assert len([each for each in bundle.namelist() if each.startswith("creations/")]) == 2
