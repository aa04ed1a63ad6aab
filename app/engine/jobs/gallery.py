"""What a person puts on creations: albums, tags, names. It lies in a file of its own, which versions before it leave alone."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.base.clean_words import clean_words
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.database import Database, Tables

GALLERY: Final = Tables(
    """
CREATE TABLE IF NOT EXISTS albums (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, drafts TEXT NOT NULL DEFAULT '{}', created_s REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS marks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, creation INTEGER NOT NULL, made_s REAL NOT NULL, kind TEXT NOT NULL,
    value TEXT NOT NULL COLLATE NOCASE, UNIQUE (creation, kind, value)
);
CREATE INDEX IF NOT EXISTS marks_by_value ON marks (kind, value);
""",
    1,
    ("albums", "marks"),
)
"""A mark is of one creation; `made_s` tells that from another one which got its number after the list of creations was lost."""
NAME_MOST: Final = 80
TAG_MOST: Final = 40
Kind = Literal["album", "tag", "title", "place"]
"""A place, as "7 12", is that of a creation in an album whose owner gave it an order."""


@dataclass(frozen=True, slots=True)
class Album:
    """An album, with what its owner was working on if that is kept in it: then it is a project."""

    id: int
    name: str
    drafts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """What is put on one creation."""

    title: str = ""
    tags: tuple[str, ...] = ()
    albums: tuple[int, ...] = ()


NONE: Final = Marks()
Made = tuple[int, int]
"""A creation by its number and by the millisecond in which it was made."""
MADE: Final = "creation, CAST(made_s * 1000 AS INTEGER) AS made_ms"


class Gallery:
    def __init__(self, open_: Callable[[], Database]) -> None:
        """`open_` is called when the gallery is first asked for: commands never do."""
        self._open, self._opening = open_, threading.Lock()
        self._opened: Database | None = None

    @property
    def _db(self) -> Database:
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def list_albums(self) -> list[Album]:
        """List all by name."""
        rows = self._db.query("SELECT id, name, drafts FROM albums WHERE typeof(name)='text' ORDER BY name COLLATE NOCASE, id")
        return [Album(row["id"], str(row["name"]), _read_drafts(row["drafts"])) for row in rows]

    def get_album(self, id_: int) -> Album:
        found = next((each for each in self.list_albums() if each.id == id_), None)
        if found is None:
            raise Trouble(say("album.unknown", "This album is not there any more. Choose another one."))
        return found

    def list_tags(self) -> list[str]:
        """List all by how often they are used, then by name."""
        rows = self._db.query(
            "SELECT value FROM marks WHERE kind='tag' GROUP BY value COLLATE NOCASE ORDER BY COUNT(*) DESC, value COLLATE NOCASE"
        )
        return [str(row["value"]) for row in rows]

    def make_album(self, name: str) -> int:
        """Make an album, or return the one of this name."""
        name = _require_name(name)
        known = next((each.id for each in self.list_albums() if each.name.casefold() == name.casefold()), None)
        if known is not None:
            return known
        with self._db.transaction():
            self._db.write("INSERT INTO albums (name, created_s) VALUES (?,?)", name, time.time())
            return int(self._db.query("SELECT last_insert_rowid() AS id")[0]["id"])

    def rename_album(self, id_: int, name: str) -> None:
        self.get_album(id_)
        self._db.write("UPDATE albums SET name=? WHERE id=?", _require_name(name), id_)

    def keep_drafts(self, id_: int, drafts: dict[str, Any]) -> None:
        """Keep what its owner works on in an album, which makes it a project."""
        self.get_album(id_)
        self._db.write("UPDATE albums SET drafts=? WHERE id=?", json.dumps(drafts, ensure_ascii=False), id_)

    def remove_album(self, id_: int) -> None:
        """Remove an album, and nothing of what is in it."""
        with self._db.transaction():
            self._db.write("DELETE FROM albums WHERE id=?", id_)
            self._db.write("DELETE FROM marks WHERE kind='album' AND value=?", str(id_))
            self._drop_places(id_)

    def put(self, creations: Iterable[Creation], album: int) -> None:
        self.get_album(album)
        self._mark(creations, "album", str(album))

    def take(self, creations: Iterable[Creation], album: int) -> None:
        creations = [*creations]
        self._unmark(creations, "album", str(album))
        with self._db.transaction():
            for each in creations:
                self._db.write("DELETE FROM marks WHERE creation=? AND kind='place' AND value LIKE ?", each.id, f"{int(album)} %")

    def arrange(self, album: int, creations: Iterable[Creation]) -> None:
        """Give an album this order, which holds until it is given another; without creations it has none of its own."""
        self.rearrange(album, lambda _: creations)

    def rearrange(self, album: int, change: Callable[[list[int]], Iterable[Creation]]) -> None:
        """Change an album's order from what it is now, what lies in the bin included; nobody else changes it meanwhile."""
        self.get_album(album)
        with self._db.transaction():
            arranged = [*change(self.read_order(album))]
            self._drop_places(album)
            for place, each in enumerate(arranged):
                self._insert(each, "place", f"{album} {place}")

    def _drop_places(self, album: int) -> None:
        self._db.write("DELETE FROM marks WHERE kind='place' AND value LIKE ?", f"{int(album)} %")

    def read_order(self, album: int) -> list[int]:
        """Return the creations of an album in the order that its owner gave it; none where it has no order of its own."""
        rows = self._db.query("SELECT creation, value FROM marks WHERE kind='place' AND value LIKE ?", f"{int(album)} %")
        places = [(int(place), row["creation"]) for row in rows if (place := str(row["value"]).partition(" ")[2]).isdigit()]
        return [creation for _, creation in sorted(places)]

    def tag(self, creations: Iterable[Creation], tags: Sequence[str]) -> None:
        creations = [*creations]
        for tag in tags:
            self._mark(creations, "tag", _require_name(tag, TAG_MOST))

    def untag(self, creations: Iterable[Creation], tag: str) -> None:
        self._unmark(creations, "tag", tag)

    def name(self, creation: Creation, title: str) -> None:
        """Give a creation a name; an empty one takes it away."""
        title = _require_name(title) if title.strip() else ""
        with self._db.transaction():
            self._db.write("DELETE FROM marks WHERE creation=? AND kind='title'", creation.id)
            if title:
                self._insert(creation, "title", title)

    def forget(self, creations: Iterable[int]) -> None:
        """Forget creations that are gone for good."""
        with self._db.transaction():
            for id_ in creations:
                self._db.write("DELETE FROM marks WHERE creation=?", id_)

    def read_marks(self, creations: Sequence[Creation]) -> dict[int, Marks]:
        """Return what is on each of these, by its number; nothing for one that has nothing."""
        made = {each.id: each.created_s for each in creations}
        rows = self._db.query(
            "SELECT creation, made_s, kind, value FROM marks WHERE creation IN (SELECT value FROM json_each(?)) ORDER BY value COLLATE NOCASE",
            json.dumps([*made]),
        )
        found: dict[int, dict[str, list[str]]] = {}
        for row in rows:
            if row["made_s"] == made[row["creation"]]:
                found.setdefault(row["creation"], {}).setdefault(str(row["kind"]), []).append(str(row["value"]))
        return {
            id_: Marks(
                next(iter(marks.get("title", ())), ""),
                (*marks.get("tag", ()),),
                (*(int(each) for each in marks.get("album", ()) if each.isdigit()),),
            )
            for id_, marks in found.items()
        }

    def find(self, album: int = 0, tag: str = "") -> list[Made] | None:
        """Find the creations of an album, with a tag, or both; None if neither is asked for."""
        asked: list[tuple[Kind, str]] = [("album", str(album))] if album else []
        asked += [("tag", tag)] if tag else []
        found = [{*map(_read_made, self._db.query(f"SELECT {MADE} FROM marks WHERE kind=? AND value=?", *each))} for each in asked]
        return sorted(set.intersection(*found)) if found else None

    def find_called(self, term: str) -> list[Made]:
        """Find the creations whose name or one of whose tags contains this."""
        wanted = _fold(term)  # SQLite's own lower() knows no letters but A to Z
        rows = self._db.query(f"SELECT {MADE}, value FROM marks WHERE kind IN ('tag', 'title')")
        return sorted({_read_made(row) for row in rows if wanted in _fold(str(row["value"]))})

    def list_marked(self) -> list[Made]:
        """List the creations that have a name or a tag, or are in an album."""
        return [*map(_read_made, self._db.query(f"SELECT DISTINCT {MADE} FROM marks"))]

    def list_members(self) -> list[tuple[int, Made]]:
        """List what is in albums, with the album of each."""
        rows = self._db.query(f"SELECT {MADE}, value FROM marks WHERE kind='album'")
        return [(int(row["value"]), _read_made(row)) for row in rows if str(row["value"]).isdigit()]

    def _mark(self, creations: Iterable[Creation], kind: Kind, value: str) -> None:
        with self._db.transaction():
            for each in creations:
                self._insert(each, kind, value)

    def _insert(self, creation: Creation, kind: Kind, value: str) -> None:
        self._db.write(
            "INSERT INTO marks (creation, made_s, kind, value) VALUES (?,?,?,?)"
            " ON CONFLICT (creation, kind, value) DO UPDATE SET made_s=excluded.made_s",
            creation.id,
            creation.created_s,
            kind,
            value,
        )

    def _unmark(self, creations: Iterable[Creation], kind: Kind, value: str) -> None:
        with self._db.transaction():
            for each in creations:
                self._db.write("DELETE FROM marks WHERE creation=? AND kind=? AND value=?", each.id, kind, value)


def _read_made(row: sqlite3.Row) -> Made:
    return row["creation"], row["made_ms"]


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _require_name(name: str, most: int = NAME_MOST) -> str:
    """Return a name in one line; raise Trouble for none, or one that is too long to be shown."""
    name = clean_words(" ".join(name.split()))
    if not name or len(name) > most:
        raise Trouble(
            say(
                "album.name",
                "A name has 1 to {most} {most:character|characters}, and this one has {count}. Change it.",
                most=most,
                count=len(name),
            )
        )
    return name


def _read_drafts(text: object) -> dict[str, Any]:
    try:
        drafts = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return drafts if isinstance(drafts, dict) else {}
