"""Store every creation: its file with settings, and a row with request, plan, speed and memory. Deleted files go to a bin first."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import json
import re
import shutil
import sqlite3
import threading
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.base import atomic_write
from app.base.other_disk import is_away, refuse_away
from app.base.sentence import say_to_all
from app.base.trouble import Trouble
from app.engine.jobs.creation import BIN, Creation, RunSummary, is_own, make_file_name, make_row, name_after, read_creation
from app.engine.jobs.database import Database, read_text
from app.engine.jobs.gallery import Album, Gallery
from app.engine.jobs.journal import Job

NUMBERED = re.compile(r" \d{1,9}$")
ID_LIMIT = 2**63
"""SQLite has no larger numbers."""
TRIGRAM = 3
"""Full-text search needs this many letters; shorter words are searched row by row."""

AMONG = "(id, CAST(created_s * 1000 AS INTEGER)) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))"
"""The rows that are among those which the gallery names, and not others that got their numbers after a list of creations was lost."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for on the shelf; what is left empty is not asked about. All words must occur, in any order; parts of words match, and
    those of names and tags, which are the owner's."""

    words: str = ""
    kind: str = ""
    model: str = ""
    favourite: bool = False
    binned: bool = False
    """True: only the bin is searched."""
    owner: str = ""
    """A guest's creations are looked for by this name; empty: everybody's are, which the owner alone sees."""
    album: int = 0
    tag: str = ""
    since_s: float = 0.0
    until_s: float = 0.0
    """Only what was made from the one time on, and before the other, is found."""
    latest: bool = False
    """Leave out what a script that was edited since has made: of those found, the newest whole result stands for it, and what somebody marked."""
    most: int = 200
    skip: int = 0


def _look_for(term: str) -> tuple[str, list[str]]:
    if len(term) >= TRIGRAM:
        return "id IN (SELECT rowid FROM words WHERE words MATCH ?)", ['"' + term.replace('"', '""') + '"']
    spelt = (
        {term} if term.isascii() else {term, term.lower(), term.upper(), term.title(), term.title().swapcase()}
    )  # LIKE folds A to Z alone
    like = ["%" + re.sub("([%_!])", r"!\1", each) + "%" for each in sorted(spelt)]
    asked = " OR ".join(f"{column} LIKE ? ESCAPE '!'" for column in ("text", "model") for _ in like)
    return f"({asked})", like * 2


def _move(file: Path, path: Path) -> None:
    """Move a file, also between disks; on failure it stays and the name is freed."""
    try:
        atomic_write.put_in_place(file, path)
    except OSError as fault:
        try:
            if fault.errno != errno.EXDEV:
                raise
            with atomic_write.replacing(path) as unfinished:
                shutil.copyfile(file, unfinished)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        file.unlink()


class Shelf:
    def __init__(self, database: Database, folder: Path, gallery: Gallery | None = None) -> None:
        self._db, self._gallery = database, gallery
        self.folder = folder
        self._sources, self._read_to = dict[str, str](), 0
        """By job, the one whose parts it took over; and the number of the last row that was read for it."""
        self._moving = threading.RLock()
        """Held from a row to its file, so that nobody deletes a creation in between."""
        if not is_away(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, job: Job, files: Iterable[str | Path], made: RunSummary) -> list[Creation]:
        """Write the rows of finished files and move the files in, all or none. What was kept before the job was resumed
        is not kept twice. Rows come first: if Hearth is killed before a file follows, `finish_moves` lets it follow."""
        with self._moving:
            return self._keep(job, list(map(Path, files)), made)

    def _keep(self, job: Job, files: list[Path], made: RunSummary) -> list[Creation]:
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.list_of_job(job.id)
        there = [each for each in before if not (each.binned or each.condition)]
        same = {file: _find_same(file, there, made, job.request.batch == 1) for file in files}
        paths: dict[Path, Path] = {}
        with self._db.transaction():
            for lost in (each for each in before if each.condition == "missing"):
                self._db.write("DELETE FROM creations WHERE id=?", lost.id)
            for file in (each for each in same if same[each] is None):
                paths[file] = self._find_free(self.folder, name_after(job, file))
                self._insert(make_row(job, file, paths[file], made))
        self._move_in(paths)
        for file, kept in same.items():
            if kept is not None and kept.path != file:
                file.unlink(missing_ok=True)
        rows = {each.path: each for each in self.list_of_job(job.id)}
        return [kept or rows[paths[file]] for file, kept in same.items()]

    def keep_enlarged(self, origin: Creation, file: Path) -> Creation:
        """Put a picture that was made of another beside it: of the same job, with the same settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._moving:
            with self._db.transaction():
                path = self._find_free(self.folder, make_file_name(origin.text, file.suffix, time.time()))
                plan = json.dumps(origin.plan)
                self._insert(
                    (
                        origin.job,
                        origin.owner,
                        origin.kind,
                        origin.model,
                        origin.text,
                        json.dumps(origin.settings),
                        plan,
                        str(path),
                        file.stat().st_size,
                        0.0,
                        0.0,
                        "",
                        0.0,
                        0,
                        int(origin.whole),
                        time.time(),
                    )
                )
            self._move_in({file: path})
            return next(each for each in self.list_of_job(origin.job) if each.path == path)

    def _move_in(self, paths: Mapping[Path, Path]) -> None:
        """Move files to the places that their rows name; if one cannot be moved, none is and the rows go."""
        moved: list[Path] = []
        try:
            for file, path in paths.items():
                _move(file, path)
                moved.append(file)
        except OSError:
            for file in moved:
                _move(paths[file], file)
            with contextlib.suppress(sqlite3.Error), self._db.transaction():
                for path in paths.values():
                    self._db.write("DELETE FROM creations WHERE path=?", str(path))
            raise

    def _find_free(self, folder: Path, name: str) -> Path:
        """Find a name that no file and no row has; within a transaction, which locks out other processes."""
        path, number = folder / name, 2
        while path.exists() or self._db.query("SELECT 1 FROM creations WHERE path=?", str(path)):
            path, number = folder / f"{Path(name).stem} {number}{Path(name).suffix}", number + 1
        return path

    def _insert(self, values: tuple[object, ...]) -> None:
        self._db.write(
            "INSERT INTO creations (job, owner, kind, model, text, request, plan, path, bytes, seconds, rate, unit, elapsed_s, highest_bytes,"
            " whole, created_s) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            *values,
        )

    def find(self, search: Search) -> list[Creation]:
        """Find creations, newest first; of an album that has an order of its own, in that."""
        return self._read_all(self._select("creations.*", search, " LIMIT ? OFFSET ?", search.most, search.skip))

    def list_all(self, search: Search) -> list[tuple[int, str]]:
        """List the number and kind of all that is found, of all pages, in the same order."""
        return [(row["id"], read_text(row["kind"])) for row in self._select("id, kind", search)]

    def _select(self, columns: str, search: Search, limit: str = "", *more: object) -> list[sqlite3.Row]:
        conditions, values = self._list_conditions(search)
        order = self._gallery.read_order(search.album) if self._gallery is not None and search.album and not search.owner else []
        if not order:
            return self._db.query(
                f"SELECT {columns} FROM creations WHERE {conditions} ORDER BY created_s DESC, id DESC{limit}", *values, *more
            )
        return self._db.query(
            "WITH places(creation, place) AS (SELECT value, key FROM json_each(?))"
            f" SELECT {columns} FROM creations LEFT JOIN places ON places.creation=creations.id WHERE {conditions}"
            f" ORDER BY place IS NULL, place, created_s, id{limit}",  # what came into the album since is last
            json.dumps(order),
            *values,
            *more,
        )

    def count(self, search: Search) -> int:
        """Count what is found, of all pages."""
        conditions, values = self._list_conditions(search)
        return int(self._db.query(f"SELECT COUNT(*) AS count FROM creations WHERE {conditions}", *values)[0]["count"])

    def _list_conditions(self, search: Search) -> tuple[str, list[object]]:
        conditions, values = ["binned_s IS NOT NULL" if search.binned else "binned_s IS NULL"], list[object]()
        gallery = None if search.owner else self._gallery
        for term in search.words.replace("\0", " ").split():  # to SQLite a NUL is the end of what is looked for
            ways, looked = _look_for(term)
            if gallery is not None and (called := gallery.find_called(term)):
                ways, looked = f"({ways} OR {AMONG})", [*looked, json.dumps(called)]
            conditions.append(ways)
            values += looked
        among = gallery.find(search.album, search.tag) if gallery is not None else None
        if among is not None:
            conditions.append(AMONG)
            values.append(json.dumps(among))
        for asked, limit in (("created_s>=?", search.since_s), ("created_s<?", search.until_s)):
            if limit:
                conditions.append(asked)
                values.append(limit)
        for column, value in (("kind", search.kind), ("model", search.model), ("owner", search.owner)):
            if value:
                conditions.append(f"{column}=?")
                values.append(value)
        if search.favourite:
            conditions.append("favourite=1")
        if search.latest:
            edited = json.dumps([*self._read_sources()])
            newer = f"SELECT DISTINCT job FROM creations WHERE {' AND '.join(conditions)} AND whole=1 AND job IN (SELECT value FROM json_each(?))"
            replaced = [self._sources[row["job"]] for row in self._db.query(newer, *values, edited)]
            marked = gallery.list_marked() if gallery is not None and replaced else []
            conditions.append(f"(favourite=1 OR {AMONG} OR job NOT IN (SELECT value FROM json_each(?)))")
            values += [json.dumps(marked), json.dumps(replaced)]
        return " AND ".join(conditions), values

    def list_albums(self) -> list[tuple[Album, int]]:
        """List the albums, each with how many of their creations are on the shelf, so without those in the bin."""
        if self._gallery is None:
            return []
        members = self._gallery.list_members()
        there = {
            row["id"]
            for row in self._db.query(
                f"SELECT id FROM creations WHERE binned_s IS NULL AND {AMONG}", json.dumps([made for _, made in members])
            )
        }
        counts = Counter(album for album, (id_, _) in members if id_ in there)
        return [(each, counts[each.id]) for each in self._gallery.list_albums()]

    def count_earlier(self, creations: Sequence[Creation]) -> dict[int, int]:
        """Count for each creation the results that its script had before it was edited; none for one that has none."""
        chains = {each.id: chain for each in creations if (chain := self._list_chain(each.job))}
        jobs = json.dumps([*{job for chain in chains.values() for job in chain}])
        rows = self._db.query(
            "SELECT job, COUNT(*) AS count FROM creations WHERE binned_s IS NULL AND job IN (SELECT value FROM json_each(?)) GROUP BY job",
            jobs,
        )
        counts = {row["job"]: row["count"] for row in rows}
        return {id_: count for id_, chain in chains.items() if (count := sum(counts.get(job, 0) for job in chain))}

    def list_earlier(self, creation: Creation) -> list[Creation]:
        """List the results that a creation's script had before it was edited, the newest first."""
        rows = self._db.query(
            "SELECT * FROM creations WHERE binned_s IS NULL AND job IN (SELECT value FROM json_each(?)) ORDER BY created_s DESC, id DESC",
            json.dumps(self._list_chain(creation.job)),
        )
        return self._read_all(rows)

    def find_newest(self, job: str) -> Creation | None:
        """Find the newest result of a script, also after it was edited; a whole one before one that was stopped."""
        jobs = {job}
        for each, source in self._read_sources().items():  # in the order in which they came
            if source in jobs:
                jobs.add(each)
        rows = self._db.query(
            "SELECT * FROM creations WHERE binned_s IS NULL AND job IN (SELECT value FROM json_each(?)) ORDER BY whole DESC, id DESC LIMIT 1",
            json.dumps([*jobs]),
        )
        return next(iter(self._read_all(rows)), None)

    def find_origin(self, job: str) -> str:
        """Return the job that spoke a script first, before it was edited; the job itself where nothing was."""
        return [job, *self._list_chain(job)][-1]

    def _list_chain(self, job: str) -> list[str]:
        """List the jobs from which one goes on, the last first."""
        sources, chain = self._read_sources(), list[str]()
        while (job := sources.get(job, "")) and job not in chain:
            chain.append(job)
        return chain

    def _read_sources(self) -> Mapping[str, str]:
        """Read which job each goes on from, of the rows that came since: an earlier part lies in the folder of its job."""
        rows = self._db.query(
            "SELECT id, job, request FROM creations WHERE id>? AND kind='speech' AND instr(request, '\"keep\": [\"')", self._read_to
        )
        for row in rows:
            with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
                path = next(filter(None, json.loads(row["request"])["keep"]))
                self._sources[read_text(row["job"])] = Path(path).parent.name
            self._read_to = max(self._read_to, row["id"])
        return self._sources

    def get(self, id_: int) -> Creation:
        found = self._find(id_)
        if not found:
            raise Trouble(say_to_all("shelf.unknown", "Creation {id} is not on the shelf. It may have been deleted for good.", id=id_))
        return found[0]

    def get_all(self, ids: Iterable[int]) -> list[Creation]:
        """Return those of several creations that are still there, each once."""
        return [creation for each in dict.fromkeys(ids) for creation in self._find(each)]

    def _find(self, id_: int) -> list[Creation]:
        with self._moving:  # a file on its way is at neither place
            return self._read_all(self._db.query("SELECT * FROM creations WHERE id=?", id_)) if 0 < id_ < ID_LIMIT else []

    def list_of_job(self, job: str) -> list[Creation]:
        return self._read_all(self._db.query("SELECT * FROM creations WHERE job=? ORDER BY id", job))

    def list_models(self) -> list[str]:
        return [
            row["model"]
            for row in self._db.query("SELECT DISTINCT model FROM creations WHERE binned_s IS NULL AND typeof(model)='text' ORDER BY model")
        ]

    def list_loras(self) -> dict[str, tuple[float, int]]:
        """Return each LoRA that a picture was made with, by its path: its weight in the newest, and which that is."""
        rows = self._db.query(
            "SELECT json_extract(lora.value, '$.path') AS file, json_extract(lora.value, '$.weight') AS weight, MAX(creations.id) AS newest"
            " FROM creations, json_each(CASE WHEN json_valid(request) THEN request ELSE '{}' END, '$.loras') AS lora"
            " WHERE kind='picture' AND binned_s IS NULL AND lora.type='object' GROUP BY file"
        )
        known = [row for row in rows if isinstance(row["file"], str) and isinstance(row["weight"], float | int)]
        return {row["file"]: (float(row["weight"]), row["newest"]) for row in known}

    def set_favourite(self, id_: int, favourite: bool) -> None:
        self._db.write("UPDATE creations SET favourite=? WHERE id=?", int(favourite), id_)

    def delete(self, id_: int) -> None:
        """Move to the bin, file and row together, so that the folder matches the shelf."""
        self._move(id_, self.folder / BIN, time.time())

    def restore(self, id_: int) -> None:
        self._move(id_, self.folder, None)

    def empty_bin(self) -> int:
        """Delete the bin for good; return how many stay, their files being open in another program."""
        refuse_away(self.folder)
        stay, gone = 0, list[int]()
        with self._moving:  # so that nobody restores one in between, whose row would then go
            for row in self._db.query("SELECT id, path FROM creations WHERE binned_s IS NOT NULL"):
                path = Path(row["path"])
                try:
                    if path.parent.name == BIN and is_own(path, self.folder):
                        path.unlink(missing_ok=True)
                except OSError:
                    stay += 1
                else:
                    self._db.write("DELETE FROM creations WHERE id=?", row["id"])
                    gone.append(row["id"])
        if self._gallery is not None and gone:
            self._gallery.forget(gone)
        return stay

    def export(
        self, ids: Iterable[int], target: Path, names: Mapping[int, str] | None = None, describe: Callable[[Creation], str] | None = None
    ) -> Path:
        """Export several creations as one zip, atomically. `names`: other names of their files; `describe`: what a text beside each says of it."""
        with atomic_write.replacing(target) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as bundle:
            for creation in map(self.get, dict.fromkeys(ids)):
                if creation.path.is_file() and not creation.path.is_symlink():
                    name = (names or {}).get(creation.id, creation.path.name)
                    bundle.write(creation.path, name)
                    if describe is not None:
                        bundle.writestr(f"{name}.txt", describe(creation))
        return target

    def _move(self, id_: int, folder: Path, binned_s: float | None) -> None:
        """Move file and row together. Where Hearth is killed in between, `find_moved` mends it at the next start. What is there already stays so."""
        refuse_away(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        with self._moving:
            creation = self.get(id_)
            if creation.binned != (binned_s is not None):
                self._move_row(creation, folder, binned_s)

    def _move_row(self, creation: Creation, folder: Path, binned_s: float | None) -> None:
        path = creation.path
        try:
            with self._db.transaction():
                path = self._find_free(folder, creation.path.name)
                self._db.write("UPDATE creations SET path=?, binned_s=? WHERE id=?", str(path), binned_s, creation.id)
                if creation.path.exists():
                    _move(creation.path, path)
        except sqlite3.Error:
            if path.exists() and not creation.path.exists():
                _move(path, creation.path)  # The row still names the old place.
            raise

    def finish_moves(self, job: str, folders: Iterable[Path]) -> None:
        """Let the files of a job that was killed in `keep` follow their rows: they are where it left them."""
        refuse_away(self.folder)
        left = [file for folder in folders for file in sorted(folder.glob("*.*"), key=lambda file: (len(file.name), file.name))]
        for creation in self.list_of_job(job):
            row = self._db.query("SELECT bytes FROM creations WHERE id=?", creation.id)[0]
            for file in left if creation.condition == "missing" and not creation.binned else ():
                place = is_own(creation.path, self.folder)
                if place and file.suffix == creation.path.suffix and file.stat().st_size == row["bytes"]:
                    _move(file, creation.path)
                    left.remove(file)
                    break

    def find_moved(self) -> None:
        """Write the rows of files that lie elsewhere than their rows say: in the bin or out of it, as Hearth was killed before
        it wrote that; or in this shelf's folder, as the whole home was copied or moved."""
        folders = (self.folder, self.folder / BIN)
        there = {file for folder in folders if folder.is_dir() for file in folder.iterdir()}
        rows = self._db.query("SELECT id, path, bytes FROM creations")
        unlisted = there - {Path(row["path"]) for row in rows}
        lost = {Path(row["path"]): row for row in rows if Path(row["path"]) not in there} if unlisted else {}
        for names_of in (_read_name, _read_names):
            by_name: defaultdict[str, set[Path]] = defaultdict(set)
            for file in unlisted:
                for name in names_of(file):
                    by_name[name].add(file)
            for old, row in lost.items():
                alike = set().union(*(by_name[name] for name in names_of(old))) & unlisted
                fitting = [file for file in alike if file.parent != old.parent and file.stat().st_size == row["bytes"]]
                if len(fitting) == 1 and self._write_place(row, fitting[0]):
                    unlisted.discard(fitting[0])

    def _write_place(self, row: sqlite3.Row, file: Path) -> int:
        binned_s = time.time() if file.parent == self.folder / BIN else None
        return self._db.write("UPDATE creations SET path=?, binned_s=? WHERE id=? AND path=?", str(file), binned_s, row["id"], row["path"])

    def _read_all(self, rows: list[sqlite3.Row]) -> list[Creation]:
        """Read rows; skip damaged ones, so that the others are still shown."""
        found = []
        for row in rows:
            with contextlib.suppress(TypeError, ValueError):
                found.append(read_creation(row, self.folder))
        return found


def _read_name(path: Path) -> set[str]:
    return {path.name}


def _read_names(path: Path) -> set[str]:
    """Return a file's name, with and without the number that keeps it apart from others."""
    return {path.name, NUMBERED.sub("", path.stem) + path.suffix}


def _find_same(file: Path, kept: Iterable[Creation], made: RunSummary, single: bool) -> Creation | None:
    """Find what this job kept before: a file of the same bytes, or the whole of what it makes once (`single`), as a container of the same sound
    may differ in its number."""
    for each in kept:
        whole = single and each.whole and made.whole and each.path.suffix == file.suffix
        if whole or filecmp.cmp(file, each.path, shallow=False):
            return each
    return None
