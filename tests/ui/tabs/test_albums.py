"""Albums, tags and names as the Shelf asks for them, and what is exported with its settings."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.base import atomic_write
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.shelf import Search, Shelf
from app.ui.state.desk import Desk
from app.ui.tabs import albums
from tests.support.both_servers import keep_creation
from tests.support.guests import desk_at
from tests.ui.tabs.test_audiobook_export import page_of


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "home") as desk:
        yield desk


def do(page: TestClient, act: str, **with_: str | int) -> dict[str, Any]:
    answer: dict[str, Any] = page.post(f"/hearth/albums/{act}", json=with_).json()
    return answer


def test_what_is_put_on_a_creation_is_on_the_shelf(desk: Desk) -> None:
    page, boat = page_of(desk), keep_creation(desk, PictureRequest("a boat", seed=7), "b.png").id
    keep_creation(desk, SpeechRequest("[S1] Hello."), "a.wav")
    album = do(page, "make", ids=f"{boat}", value="Sea")["album"]
    do(page, "tag", ids=f"{boat}", value="blue，  calm water ,,")
    do(page, "name", ids=f"{boat}", value="The cover")
    found = page.get("/hearth/shelf", params={"album": str(album)}).json()
    (only,) = found["creations"]
    assert (only["named"], only["tags"], only["albums"], only["width"]) == ("The cover", ["blue", "calm water"], [album], 8)
    assert found["albums"] == [{"id": album, "name": "Sea", "count": 1, "kept": False, "ordered": False}] and set(found["tags"]) == {
        "blue",
        "calm water",
    }
    assert [each["id"] for each in page.get("/hearth/shelf", params={"words": "cover"}).json()["creations"]] == [boat]
    for asked in ({"until": 1}, {"since": 9e10}):
        nothing = page.get("/hearth/shelf", params=asked).json()
        assert not nothing["creations"] and nothing["count"] == 0
    assert page.get("/hearth/shelf", params={"since": 1, "until": 9e10}).json()["count"] == 2
    assert page.post("/hearth/albums/burn", json={}).status_code == 404
    refused = page.post("/hearth/albums/put", json={"ids": ",".join(["1"] * 2001), "album": album})
    assert refused.status_code == 409 and "at most 2000" in refused.json()["trouble"]


def test_an_album_has_an_order_of_its_own_and_is_exported_in_it(desk: Desk) -> None:
    page = page_of(desk)
    one, two, three = (keep_creation(desk, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abc")
    album = do(page, "make", ids=f"{one},{two},{three}", value="Comic")["album"]

    def shown() -> list[int]:
        found = page.get("/hearth/shelf", params={"album": album}).json()
        assert [each["id"] for each in page.get("/hearth/shelf/all", params={"album": album}).json()["creations"]] == [
            each["id"] for each in found["creations"]
        ]
        return [each["id"] for each in found["creations"]]

    def is_ordered() -> bool:
        (only,) = page.get("/hearth/shelf").json()["albums"]
        return bool(only["ordered"])

    assert shown() == [three, two, one] and not is_ordered()
    do(page, "order", album=album, value="own")
    assert shown() == [one, two, three] and is_ordered(), "as a story is made"
    do(page, "shift", album=album, ids=f"{three}", value="-1")
    assert shown() == [one, three, two]
    do(page, "shift", album=album, ids=f"{one}", value="-1")
    do(page, "shift", album=album, ids=f"{one}", value="many")
    assert shown() == [one, three, two], "the first stays the first"
    do(page, "place", album=album, ids=f"{two}", value=f"{one}")
    assert shown() == [two, one, three]
    do(page, "name", ids=f"{three}", value="The end")
    late = keep_creation(desk, PictureRequest("page d"), "d.png").id
    do(page, "put", ids=f"{late}", album=album)
    assert shown() == [two, one, three, late], "what comes later is last"
    answer = page.get("/hearth/export", params={"ids": f"{late},{three},{one},{two}", "album": album})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = packed.namelist()
    assert [each.partition(" ")[0] for each in names] == ["01", "02", "03", "04"] and names[2] == "03 The end.png", names
    do(page, "take", ids=f"{one}", album=album)
    do(page, "put", ids=f"{one}", album=album)
    assert shown()[:2] == [two, three] and len(shown()) == 4, "its place went with it"
    do(page, "order", album=album, value="")
    assert shown() == [late, three, two, one] and not is_ordered()
    do(page, "order", album=album, value="own")
    do(page, "remove", album=album)
    assert desk.keeper.gallery.read_order(album) == []


def test_what_is_exported_has_the_number_of_its_place_in_the_whole_album(desk: Desk) -> None:
    """What came late went in the order in which it was selected, and each of several zips began with 01."""
    page = page_of(desk)
    one, two, late, later, outside = (keep_creation(desk, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abcde")
    for each, name in ((one, "one"), (two, "two"), (late, "late"), (later, "later"), (outside, "outside")):
        do(page, "name", ids=f"{each}", value=name)
    album = do(page, "make", ids=f"{one},{two}", value="Comic")["album"]

    def export(*ids: int) -> list[str]:
        answer = page.get("/hearth/export", params={"ids": ",".join(map(str, ids)), "album": album})
        with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
            return packed.namelist()

    assert export(two, one) == ["two.png", "one.png"], "an album without an order of its own gives no numbers"
    do(page, "order", album=album, value="own")
    do(page, "put", ids=f"{late},{later}", album=album)
    assert export(outside, later, two, late) == ["02 two.png", "03 late.png", "04 later.png", "outside.png"]
    assert export(later) == ["04 later.png"], "also in a zip of its own"


def test_what_comes_back_out_of_the_bin_has_its_place_in_the_order_still(desk: Desk) -> None:
    """As soon as anything else was moved, it came back as the last."""
    page = page_of(desk)
    one, two, three, four = (keep_creation(desk, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abcd")
    album = do(page, "make", ids=f"{one},{two},{three},{four}", value="Comic")["album"]
    do(page, "order", album=album, value="own")

    def shown() -> list[int]:
        return [each["id"] for each in page.get("/hearth/shelf", params={"album": album}).json()["creations"]]

    do(page, "delete", ids=f"{two}")
    do(page, "shift", album=album, ids=f"{four}", value="-1")
    assert shown() == [one, four, three]
    do(page, "shift", album=album, ids=f"{two}", value="-1")
    do(page, "place", album=album, ids=f"{one}", value=f"{two}")
    assert shown() == [one, four, three], "what lies in the bin is neither moved nor moved to"
    do(page, "restore", ids=f"{two}")
    assert shown() == [one, two, four, three]
    do(page, "delete", ids=f"{two}")
    do(page, "place", album=album, ids=f"{one}", value=f"{three}")
    do(page, "restore", ids=f"{two}")
    assert shown() == [two, four, three, one]


def test_what_lies_in_the_bin_when_an_album_gets_its_order_has_a_place_in_it(desk: Desk) -> None:
    """It came back as the last."""
    page = page_of(desk)
    one, two, three = (keep_creation(desk, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abc")
    album = do(page, "make", ids=f"{one},{two},{three}", value="Comic")["album"]
    do(page, "delete", ids=f"{two}")
    do(page, "order", album=album, value="own")
    do(page, "restore", ids=f"{two}")
    assert [each["id"] for each in page.get("/hearth/shelf", params={"album": album}).json()["creations"]] == [one, two, three]


def test_two_moves_at_once_are_both_made(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page, found = page_of(desk), Shelf.find
    one, two, three, four = (keep_creation(desk, PictureRequest(f"page {each}"), f"{each}.png").id for each in "abcd")
    album = do(page, "make", ids=f"{one},{two},{three},{four}", value="Comic")["album"]
    do(page, "order", album=album, value="own")
    others = list[threading.Thread]()

    def find(shelf: Shelf, search: Search) -> list[Creation]:
        answer = found(shelf, search)
        if not others:  # the second one comes while the first one reads
            others.append(
                threading.Thread(target=do, args=(page_of(desk), "shift"), kwargs={"album": album, "ids": f"{four}", "value": "-1"})
            )
            others[0].start()
            others[0].join()
        return answer

    monkeypatch.setattr(Shelf, "find", find)
    do(page, "shift", album=album, ids=f"{one}", value="1")
    assert desk.keeper.gallery.read_order(album) == [two, one, four, three]


def test_an_album_keeps_the_work_and_gives_it_back(desk: Desk) -> None:
    page = page_of(desk)
    desk.settings.put({"drafts": {"speak-text": "[S1] One.", "paint-prompt": "a sea"}, "speak": {"voice": "Ann"}})
    album = do(page, "make", value="My novel")["album"]
    do(page, "keep", album=album)
    desk.settings.put({"drafts": {"speak-text": "other"}, "speak": {"voice": "Bob", "speed": 1.1}})
    assert do(page, "open", album=album)["drafts"] == {"speak-text": "[S1] One.", "paint-prompt": "a sea"}
    assert desk.settings.get("speak") == {"voice": "Ann", "speed": 1.1}
    assert page.get("/hearth/shelf").json()["albums"][0]["kept"]
    assert "not there any more" in str(do(page, "open", album=99)["trouble"])


def test_an_export_says_of_each_file_how_it_was_made(desk: Desk) -> None:
    page, boat = page_of(desk), keep_creation(desk, PictureRequest("a boat", seed=7, negative="fog"), "b.png")
    do(page, "name", ids=f"{boat.id}", value="The cover")
    plain, told = (
        zipfile.ZipFile(io.BytesIO(page.get(f"/hearth/export?ids={boat.id},{boat.id}{more}").content)) for more in ("", "&settings=1")
    )
    assert plain.namelist() == ["The cover.png"] and told.namelist() == ["The cover.png", "The cover.png.txt"]
    said = told.read("The cover.png.txt").decode()
    assert (
        "File: The cover.png" in said and "Name: The cover" in said and "a boat" in said and "seed: 7" in said and "negative: fog" in said
    )


def test_an_export_names_files_as_their_owner_does(desk: Desk) -> None:
    """The panels of a page were named in their order, and came out of the zip by the minute they were painted in."""
    page, made = page_of(desk), [keep_creation(desk, PictureRequest(f"a boat {n}"), f"{n}.png") for n in range(4)]
    for each, name in zip(made, ("Panel: 1", "panel 1", "Panel 2", ""), strict=True):
        do(page, "name", ids=f"{each.id}", value=name)
    bundle = zipfile.ZipFile(io.BytesIO(page.get("/hearth/export", params={"ids": ",".join(str(each.id) for each in made)}).content))
    assert bundle.namelist() == ["Panel 1.png", "panel 1 2.png", "Panel 2.png", made[3].path.name]
    assert [bundle.read(name) for name in bundle.namelist()] == [each.path.read_bytes() for each in made]


def test_all_that_is_found_is_named_moved_and_never_cut_without_a_word(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(desk)
    boat, word = keep_creation(desk, PictureRequest("a boat"), "b.png"), keep_creation(desk, SpeechRequest("[S1] A boat."), "a.wav")
    keep_creation(desk, PictureRequest("a cat"), "c.png")
    found = page.get("/hearth/shelf/all", params={"words": "boat", "skip": 60}).json()
    assert found == {"creations": [{"id": word.id, "kind": "speech"}, {"id": boat.id, "kind": "picture"}]}
    ids = f"{boat.id},{word.id}"
    for _ in range(2):  # what is in the bin stays as it is
        do(page, "delete", ids=ids)
        assert page.get("/hearth/shelf", params={"binned": "1"}).json()["count"] == 2
    assert desk.keeper.shelf.get(boat.id).path.name == boat.path.name
    do(page, "restore", ids=ids)
    assert page.get("/hearth/shelf").json()["count"] == 3
    monkeypatch.setattr(albums, "AT_ONCE_MOST", 1)
    refused = page.get(f"/hearth/export?ids={ids}")
    assert refused.status_code == 409 and "at most 1 can be used" in refused.json()["trouble"]


def test_a_creation_that_cannot_be_moved_says_why(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page, boat = page_of(desk), keep_creation(desk, PictureRequest("a boat"), "b.png")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(atomic_write, "put_in_place", refuse)
    assert "could not be moved" in do(page, "delete", ids=f"{boat.id}")["trouble"]


def test_what_cannot_be_moved_or_is_gone_leaves_the_others_to_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page, shelf = page_of(desk), desk.keeper.shelf
    boat, held, cat, gone = (keep_creation(desk, PictureRequest(f"a {each}"), f"{each}.png") for each in ("boat", "hat", "cat", "dog"))
    shelf.delete(gone.id)
    shelf.empty_bin()
    real = atomic_write.put_in_place

    def refuse(file: Path, path: Path) -> None:
        if file == held.path:
            raise PermissionError(13, "in use")
        real(file, path)

    monkeypatch.setattr(atomic_write, "put_in_place", refuse)
    ids = ",".join(str(each.id) for each in (boat, held, gone, cat, boat))
    told = do(page, "delete", ids=ids)
    assert told["moved"] == [boat.id, cat.id] and "could not be moved" in told["trouble"]
    assert told["gone"] == 1 and do(page, "delete", ids=f"{boat.id},{cat.id}") == {"gone": 0, "moved": []}
    shelf.delete(boat.id)  # as a request that comes at the same time
    assert shelf.get(boat.id).path.name == boat.path.name
    assert do(page, "restore", ids=ids) == {"gone": 1, "moved": [boat.id, cat.id]}
    assert do(page, "restore", ids=f"{gone.id},{gone.id}") == do(page, "delete", ids=f"{gone.id}") == {"gone": 1, "moved": []}
    assert "not on the shelf" in do(page, "tag", ids=f"{gone.id}", value="pets")["trouble"]
    assert "trouble" not in do(page, "tag", ids=ids, value="pets")
