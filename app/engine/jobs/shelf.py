"""Store every creation: its file with settings, and a row with request, plan, speed and memory. Deleted files go to a
bin first."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import json
import re
import shutil
import sqlite3
import time
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import atomic_write
from app.engine.jobs.database import Database, read_number, read_text
from app.engine.jobs.journal import Job
from app.engine.jobs.request import Request, SpeechRequest, from_json, to_json
from app.sentence import Trouble, say

BIN = ".bin"
NAME_LETTERS = 48
NAMED_FROM_LETTERS = 1000
"""A script may have a million letters; its name comes from the first of them."""
TRIGRAM = 3
"""Full-text search needs this many letters; shorter words are searched row by row."""


@dataclass(frozen=True, slots=True)
class Creation:
    id: int
    job: str
    owner: str
    kind: str
    model: str
    text: str
    path: Path
    seconds: float
    rate: float
    unit: str
    elapsed_s: float
    highest_bytes: int
    whole: bool
    """False: stopped before its end."""
    favourite: bool
    created_s: float
    binned: bool
    condition: str
    """"" for intact; "missing" or "foreign" if the file is gone or was replaced by another."""
    settings: dict[str, Any]
    plan: dict[str, Any]

    @property
    def request(self) -> Request:
        return from_json(self.settings)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How a run went, for its row."""

    model: str
    seconds: float = 0.0
    rate: float = 0.0
    unit: str = ""
    elapsed_s: float = 0.0
    highest_bytes: int = 0
    whole: bool = True
    plan: str = "{}"


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for on the shelf; what is left empty is not asked about. All words must occur, in any order; parts of words match."""

    words: str = ""
    kind: str = ""
    model: str = ""
    favourite: bool = False
    binned: bool = False
    """True: in the bin, and nowhere else."""
    most: int = 200
    skip: int = 0


def make_file_name(text: str, suffix: str, when_s: float) -> str:
    """Name a file by date and words, so that people can find it and every file system accepts it."""
    words = " ".join(re.sub(r"[^\w\s-]", " ", re.sub(r"\[S\d]|\([^()]*+\)", " ", text[:NAMED_FROM_LETTERS])).split())
    if len(words) > NAME_LETTERS:
        words = words[:NAME_LETTERS].rsplit(" ", 1)[0]
    return f"{time.strftime('%Y-%m-%d %H%M', time.localtime(when_s))} {words or 'untitled'}{suffix}"


def reserve(folder: Path, name: str) -> Path:
    """Reserve a free name by creating an empty file, so that two processes never take the same one."""
    path = folder / name
    number = 2
    while True:
        try:
            path.touch(exist_ok=False)
            return path
        except FileExistsError:
            path = folder / f"{Path(name).stem} {number}{Path(name).suffix}"
            number += 1


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
    def __init__(self, database: Database, folder: Path) -> None:
        self._db = database
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, job: Job, files: Iterable[str | Path], made: RunSummary) -> list[Creation]:
        """Move finished files in and write their rows. Each file is moved before its row is written: nothing is lost,
        at worst unlisted. Results kept before the job was resumed are not kept twice."""
        kept = []
        before = [each for each in self.list_of_job(job.id) if not (each.binned or each.condition)]
        text = job.request.text if isinstance(job.request, SpeechRequest) else job.request.prompt
        settings = to_json(job.request)
        for file in map(Path, files):
            same = next((each for each in before if filecmp.cmp(file, each.path, shallow=False)), None)
            if same is not None:
                file.unlink()
                kept.append(same)
                continue
            now = time.time()
            path = reserve(self.folder, make_file_name(text, file.suffix, now))
            _move(file, path)
            try:
                row = self._insert((
                    job.id, job.owner, settings["kind"], made.model, text, json.dumps(settings), made.plan, str(path), path.stat().st_size,
                    made.seconds, made.rate, made.unit, made.elapsed_s, made.highest_bytes, int(made.whole), now,
                ))  # fmt: skip
            except sqlite3.Error:
                _move(path, file)  # The caller tries again: a file without a row would not be found.
                raise
            kept.append(read_creation(row))
        return kept

    def _insert(self, values: tuple[object, ...]) -> sqlite3.Row:
        with self._db.transaction():
            self._db.write(
                "INSERT INTO creations (job, owner, kind, model, text, request, plan, path, bytes, seconds, rate, unit, elapsed_s, highest_bytes,"
                " whole, created_s) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                *values,
            )
            return self._db.query("SELECT * FROM creations WHERE path=?", str(values[7]))[0]

    def find(self, search: Search) -> list[Creation]:
        """Find creations, newest first."""
        conditions, values = ["binned_s IS NOT NULL" if search.binned else "binned_s IS NULL"], list[object]()
        terms = search.words.split()
        long = [term for term in terms if len(term) >= TRIGRAM]
        if long:
            conditions.append("id IN (SELECT rowid FROM words WHERE words MATCH ?)")
            values.append(" AND ".join('"' + term.replace('"', '""') + '"' for term in long))
        for term in (term for term in terms if len(term) < TRIGRAM):
            conditions.append("(text LIKE ? ESCAPE '!' OR model LIKE ? ESCAPE '!')")
            values += ["%" + re.sub("([%_!])", r"!\1", term) + "%"] * 2
        for column, value in (("kind", search.kind), ("model", search.model)):
            if value:
                conditions.append(f"{column}=?")
                values.append(value)
        if search.favourite:
            conditions.append("favourite=1")
        query = f"SELECT * FROM creations WHERE {' AND '.join(conditions)} ORDER BY created_s DESC, id DESC LIMIT ? OFFSET ?"
        return self._read_all(self._db.query(query, *values, search.most, search.skip))

    def get(self, id_: int) -> Creation:
        found = self._read_all(self._db.query("SELECT * FROM creations WHERE id=?", id_))
        if not found:
            raise Trouble(say("shelf.unknown", "Creation {id} is not on the shelf. It may have been deleted for good.", id=id_))
        return found[0]

    def list_of_job(self, job: str) -> list[Creation]:
        return self._read_all(self._db.query("SELECT * FROM creations WHERE job=? ORDER BY id", job))

    def list_models(self) -> list[str]:
        return [
            row["model"]
            for row in self._db.query("SELECT DISTINCT model FROM creations WHERE binned_s IS NULL AND typeof(model)='text' ORDER BY model")
        ]

    def set_favourite(self, id_: int, favourite: bool) -> None:
        self._db.write("UPDATE creations SET favourite=? WHERE id=?", int(favourite), id_)

    def delete(self, id_: int) -> None:
        """Move to the bin, file and row together, so that the folder matches the shelf."""
        self._move(id_, self.folder / BIN, time.time())

    def restore(self, id_: int) -> None:
        self._move(id_, self.folder, None)

    def empty_bin(self) -> int:
        """Delete the bin for good; return how many stay, their files being open in another program."""
        stay = 0
        for row in self._db.query("SELECT id, path FROM creations WHERE binned_s IS NOT NULL"):
            try:
                Path(row["path"]).unlink(missing_ok=True)
            except OSError:
                stay += 1
            else:
                self._db.write("DELETE FROM creations WHERE id=?", row["id"])
        return stay

    def export(self, ids: Iterable[int], target: Path) -> Path:
        """Export several creations as one zip, atomically."""
        with atomic_write.replacing(target) as unfinished, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as bundle:
            for creation in map(self.get, ids):
                if creation.condition != "missing":
                    bundle.write(creation.path, creation.path.name)
        return target

    def _move(self, id_: int, folder: Path, binned_s: float | None) -> None:
        creation = self.get(id_)
        folder.mkdir(parents=True, exist_ok=True)
        path = reserve(folder, creation.path.name)
        if creation.path.exists():
            _move(creation.path, path)
        else:
            path.unlink()
        try:
            self._db.write("UPDATE creations SET path=?, binned_s=? WHERE id=?", str(path), binned_s, id_)
        except sqlite3.Error:
            if path.exists():
                _move(path, creation.path)  # The row still names the old place.
            raise

    def _read_all(self, rows: list[sqlite3.Row]) -> list[Creation]:
        """Read rows; skip damaged ones, so that the others are still shown."""
        found = []
        for row in rows:
            with contextlib.suppress(TypeError, ValueError):
                found.append(read_creation(row))
        return found


def read_creation(row: sqlite3.Row | Mapping[str, Any]) -> Creation:
    """Read a row; raise TypeError or ValueError if it is damaged. Unreadable settings leave the creation without any."""
    path = Path(row["path"])
    try:
        condition = "" if path.stat().st_size == row["bytes"] else "foreign"
    except OSError:
        condition = "missing"
    return Creation(
        row["id"], read_text(row["job"]), read_text(row["owner"]), read_text(row["kind"]), str(row["model"]), str(row["text"]), path,
        read_number(row["seconds"]), read_number(row["rate"]), str(row["unit"]), read_number(row["elapsed_s"]),
        int(read_number(row["highest_bytes"])), bool(row["whole"]),
        bool(row["favourite"]), read_number(row["created_s"]), row["binned_s"] is not None, condition, _read_values(row["request"]),
        _read_values(row["plan"]),
    )  # fmt: skip


def _read_values(text: object) -> dict[str, Any]:
    try:
        values = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
