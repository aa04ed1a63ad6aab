"""Albums, tags and names: found, kept over damage, and no hindrance to a Hearth that knows nothing of them."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.base import notices
from app.base.paths import Home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.backups import list_backups, make_backup
from app.engine.jobs.creation import Creation, RunSummary
from app.engine.jobs.database import JOBS, Database, describe_schema, make_empty
from app.engine.jobs.gallery import Gallery
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper.open_database import open_database, open_gallery

MADE = RunSummary("starter-painter")


@dataclasses.dataclass
class Place:
    home: Home
    database: Database
    gallery: Gallery
    shelf: Shelf

    def keep(self, text: str) -> Creation:
        file = self.home.scratch / f"{text}.png"
        file.write_bytes(text.encode())
        (kept,) = self.shelf.keep(Journal(self.database).queue(PictureRequest(text), Choice()), [file], MADE)
        return kept

    def found(self, **asked: object) -> list[str]:
        return [each.text for each in self.shelf.find(dataclasses.replace(Search(), **asked))]  # type: ignore[arg-type]


def enter(home: Home) -> Place:
    database, gallery = open_database(home, alone=True), Gallery(lambda: open_gallery(home))
    return Place(home, database, gallery, Shelf(database, home.creations, gallery))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = enter(Home(tmp_path, tmp_path / "models").create())
    yield place
    place.gallery.close()
    place.database.close()


def test_an_album_a_tag_and_a_name_find_a_creation(place: Place) -> None:
    fox, owl, cat = (place.keep(text) for text in ("a fox", "an owl", "a cat"))
    album = place.gallery.make_album("  My   novel ")
    place.gallery.put([fox, owl], album)
    place.gallery.tag([owl, cat], ["Night"])
    place.gallery.name(fox, "Reynard, Kapitel 1")
    assert place.found(album=album) == ["an owl", "a fox"]
    assert place.found(tag="night") == ["a cat", "an owl"]
    assert place.found(album=album, tag="Night") == ["an owl"]
    assert place.found(words="kapitel reynard") == place.found(words="fox reyn") == ["a fox"]
    assert place.found(words="nigh") == ["a cat", "an owl"]
    assert place.found(words="ni") == ["a cat", "an owl"]
    assert place.found(until_s=cat.created_s) == ["an owl", "a fox"]
    assert place.found(since_s=owl.created_s) == ["a cat", "an owl"]
    assert place.found(since_s=owl.created_s, until_s=cat.created_s) == ["an owl"]
    assert place.shelf.count(Search(album=album, most=1)) == 2
    assert [(each.name, count) for each, count in place.shelf.list_albums()] == [("My novel", 2)]
    assert place.gallery.list_tags() == ["Night"]
    assert place.gallery.make_album("my NOVEL") == album
    place.gallery.take([owl], album)
    place.gallery.untag([owl], "NIGHT")
    place.gallery.name(fox, "")
    marks = place.gallery.read_marks([fox, owl, cat])
    assert marks[fox.id].albums == (album,) and not marks[fox.id].title and owl.id not in marks and marks[cat.id].tags == ("Night",)


def test_a_name_is_found_however_it_is_written(place: Place) -> None:
    """SQLite's own functions know no letters but A to Z."""
    boat = place.keep("Ёж на МОРЕ")
    place.gallery.tag([boat], ["Škoda", "Ελλάδα", "cafe\u0301"])
    place.gallery.name(boat, "Большая ВОДА")
    for words in ("большая вода", "škod", "ŠKODA", "ΕΛΛΆΔΑ", "café", "море", "ёж", "Ёж", "ЁЖ", "мо"):
        assert place.found(words=words) == [boat.text], words
    assert place.found(words="ежик") == []


def test_what_a_guest_searches_is_not_found_by_the_owners_words(place: Place) -> None:
    fox = place.keep("a fox")
    place.gallery.name(fox, "secret")
    assert place.found(words="secret", owner="owner") == [] and place.found(words="secret") == ["a fox"]


def test_removing_an_album_keeps_what_is_in_it(place: Place) -> None:
    fox = place.keep("a fox")
    album = place.gallery.make_album("foxes")
    place.gallery.put([fox], album)
    place.gallery.remove_album(album)
    assert place.found() == ["a fox"] and not place.gallery.read_marks([fox]) and not place.gallery.list_albums()
    with pytest.raises(Trouble, match="not there any more"):
        place.gallery.put([fox], album)


@pytest.mark.parametrize("name", ["", " \n ", "a" * 81])
def test_a_name_that_cannot_be_shown_is_refused(place: Place, name: str) -> None:
    with pytest.raises(Trouble, match="A name has 1 to 80 characters"):
        place.gallery.make_album(name)


def test_a_name_keeps_joined_letters_and_loses_what_turns_it_round(place: Place) -> None:
    for name, kept in (("👩‍🎨 می‌خواهم", "👩‍🎨 می‌خواهم"), ("a‮gnp.exe", "a?gnp.exe")):
        assert place.gallery.get_album(place.gallery.make_album(name)).name == kept


def test_a_bin_that_is_emptied_takes_the_marks_along(place: Place) -> None:
    fox = place.keep("a fox")
    place.gallery.tag([fox], ["red"])
    place.shelf.delete(fox.id)
    assert place.found(tag="red", binned=True) == ["a fox"]
    place.shelf.empty_bin()
    assert not place.gallery.list_tags()


def test_marks_of_another_creation_with_the_same_number_are_not_taken_for_its_own(place: Place) -> None:
    fox = place.keep("a fox")
    place.gallery.name(fox, "Reynard")
    assert not place.gallery.read_marks([dataclasses.replace(fox, created_s=fox.created_s + 1)])
    place.gallery.put([fox], album := place.gallery.make_album("foxes"))
    assert place.found(album=album) == place.found(words="reyn") == ["a fox"]
    place.database.write("UPDATE creations SET created_s=created_s+1")  # as of another one, after the list was lost
    assert place.found(album=album) == place.found(words="reyn") == []
    assert [count for _, count in place.shelf.list_albums()] == [0]


def test_an_album_counts_what_is_on_the_shelf(place: Place) -> None:
    fox, owl = place.keep("a fox"), place.keep("an owl")
    place.gallery.put([fox, owl], place.gallery.make_album("animals"))
    assert [count for _, count in place.shelf.list_albums()] == [2]
    place.shelf.delete(fox.id)
    assert [count for _, count in place.shelf.list_albums()] == [1]


def test_the_version_before_opens_the_same_home(place: Place, tmp_path: Path) -> None:
    """It takes a list of creations with any table besides its own for damaged, so albums lie in another file."""
    fox = place.keep("a fox")
    place.gallery.put([fox], place.gallery.make_album("foxes"))
    with closing(sqlite3.connect(place.home.database)) as seen, closing(make_empty(JOBS)) as known:
        assert describe_schema(seen) == describe_schema(known) and seen.execute("PRAGMA user_version").fetchone() == (1,)
    before = Shelf(database := Database(place.home.database), place.home.creations)
    assert [each.text for each in before.find(Search())] == ["a fox"]
    before.set_favourite(fox.id, True)
    database.close()
    assert place.gallery.read_marks(place.shelf.find(Search()))[fox.id].albums


def test_a_damaged_gallery_is_made_anew_from_its_rows_and_backups(place: Place) -> None:
    fox = place.keep("a fox")
    place.gallery.put([fox], place.gallery.make_album("foxes"))
    place.gallery.close()
    make_backup(place.home)
    assert len(list_backups(place.home)) == len(list_backups(place.home, place.home.gallery)) == 1
    for side in ("-wal", "-shm"):
        place.home.gallery.with_name(f"{place.home.gallery.name}{side}").unlink(missing_ok=True)
    place.home.gallery.write_bytes(b"no database at all" * 500)
    again = Gallery(lambda: open_gallery(place.home))
    assert [each.name for each in again.list_albums()] == ["foxes"]
    assert again.read_marks([fox])[fox.id].albums
    assert any("albums" in str(each) for each in notices.list_notices()) and [*place.home.root.glob("gallery.sqlite3.*.damaged")]
    again.close()


def test_a_strangers_gallery_brings_its_rows_and_no_trigger(place: Place) -> None:
    with closing(sqlite3.connect(place.home.gallery)) as made:
        made.executescript(
            "CREATE TABLE albums (id INTEGER PRIMARY KEY, name, drafts, created_s);"
            "INSERT INTO albums VALUES (7, 'foxes', '[', 1), (8, x'ff', 5, 1); CREATE TRIGGER t AFTER INSERT ON albums BEGIN SELECT 1; END"
        )
    assert [(each.id, each.name, each.drafts) for each in place.gallery.list_albums()][-1] == (7, "foxes", {})
    with closing(sqlite3.connect(place.home.gallery)) as seen:
        assert not seen.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall()


@pytest.mark.slow
def test_ten_thousand_creations_are_as_quick_with_albums(place: Place) -> None:
    """A page of an album costs at most a few times a page of everything, whatever the machine."""
    request = json.dumps({"kind": "picture", "prompt": "a"})
    with place.database.transaction():
        for number in range(10_000):
            place.shelf._insert(
                (
                    "j",
                    "owner",
                    "picture",
                    "m",
                    f"picture {number}",
                    request,
                    "{}",
                    str(place.home.creations / f"{number}.png"),
                    1,
                    0.0,
                    0.0,
                    "",
                    0.0,
                    0,
                    1,
                    float(number),
                )
            )
    made = [
        Creation(number + 1, "j", "owner", "picture", "m", "", Path(), 0, 0, "", 0, 0, True, False, float(number), False, "", {}, {})
        for number in range(0, 10_000, 2)
    ]
    album = place.gallery.make_album("half")
    place.gallery.put(made, album)

    def measure(search: Search) -> float:
        took = []
        for _ in range(5):
            begun = time.thread_time()  # the processor may have others at work
            found = place.shelf.find(search)
            place.gallery.read_marks(found)
            place.gallery.list_albums()
            took.append(time.thread_time() - begun)
        assert len(found) == 61
        return min(took)

    plain, of_album = measure(Search(most=61)), measure(Search(most=61, album=album))
    assert of_album < 12 * plain, (plain, of_album)
