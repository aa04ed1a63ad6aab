"""Rows of the journal and the shelf that hold anything that SQLite stores: readers skip them or read them, and nobody's good row is lost."""

from __future__ import annotations

import json
import random
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.database import list_columns
from app.engine.jobs.request import PictureRequest, SpeechRequest, to_json
from app.engine.jobs.shelf import Search
from app.ui.live_view import owner_view
from app.ui.state.desk import Desk
from app.ui.state.person import OWNER
from app.ui.tabs.shelf import creation_view
from tests.support.guests import desk_at
from tests.support.nasty import NUMBERS, TEXTS, break_object

COLUMNS = "job, owner, kind, model, text, request, plan, path, bytes, seconds, rate, unit, elapsed_s, highest_bytes, whole, created_s"
REQUESTS = (SpeechRequest("[S1] Hello."), PictureRequest("a boat"))


def draw_cell(rng: random.Random, good: Any) -> Any:
    """Draw what stands in a cell instead: a number, a text, bytes, or JSON that is nearly right."""
    kind = rng.randrange(4)
    if kind == 0:
        number = rng.choice(NUMBERS)
        return number if not isinstance(number, int) or -(2**63) <= number < 2**63 else float(str(number)[:300])
    if kind == 1:
        return rng.choice(TEXTS).encode("utf-8", "replace").decode()
    if kind == 2:
        return rng.randbytes(rng.randrange(40))
    with suppress(TypeError, ValueError):
        given = json.loads(good)
        return break_object(rng, given, [*given]).decode("utf-8", "replace")
    return rng.choice(("queued", "running", "interrupted", "finished", "1:2", "guest", "../x", "[]"))


def spoil(database: Path, rng: random.Random, most: int) -> list[str]:
    """Put anything into cells of some rows; return what was done."""
    done = []
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
        for table, columns in list_columns().items():
            rows = connection.execute(f"SELECT rowid, * FROM {table}").fetchall()
            for row in rng.sample(rows, min(most, len(rows))):
                for _ in range(rng.randrange(1, 4)):
                    place = rng.randrange(len(columns))
                    if columns[place] == "id" and table == "creations":
                        continue  # the number of the row itself
                    cell = draw_cell(rng, row[place + 1])
                    with suppress(sqlite3.IntegrityError):  # two of one name, or none: SQLite itself refuses it
                        connection.execute(f"UPDATE {table} SET {columns[place]}=? WHERE rowid=?", (cell, row[0]))
                        done.append(f"{table}.{columns[place]}={cell!r:.80}")
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")  # a start finds an index that does not fit
    return done


def fuzz(folder: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    with desk_at(folder) as desk:
        database, journal = desk.keeper.home.database, desk.keeper.journal
        for number in range(rounds):
            with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
                connection.execute("DELETE FROM jobs")
                connection.execute("DELETE FROM creations")
            for _ in range(8):
                job = journal.queue(rng.choice(REQUESTS), Choice(), rng.choice(("owner", "visitor-a-b")))
                if rng.random() < 0.4:
                    journal.end(job.id, rng.choice(("finished", "interrupted", "failed")))
            add_creations(database, desk.keeper.home.creations, 6)
            done = spoil(database, rng, 4)
            good = journal.queue(SpeechRequest("[S1] Good."), Choice())
            (kept,) = add_creations(database, desk.keeper.home.creations, 1)
            try:
                use_all(desk, good.id, rng)
                assert good.id in [each.id for each in journal.list_waiting()]
                assert kept in [each.id for each in desk.keeper.shelf.find(Search())]
                while (taken := journal.take()) is not None and taken.id != good.id:
                    journal.end(taken.id, "finished")
                assert taken is not None, "a damaged row kept the queue from the good one"
            except Exception as fault:
                raise AssertionError(f"seed {seed}, round {number}: {fault!r} after {done}") from fault


def add_creations(database: Path, folder: Path, count: int) -> list[int]:
    with closing(sqlite3.connect(database, timeout=30, isolation_level=None)) as connection:
        ids = []
        for _ in range(count):
            (file := folder / f"{uuid.uuid4()}.png").write_bytes(b"x")
            made = ("m", "a boat", json.dumps(to_json(REQUESTS[1])), "{}")
            values = ("j", "owner", "picture", *made, str(file), 1, 0.0, 1.0, "it/s", 1.0, 9, 1, 1.0)
            row = connection.execute(f"INSERT INTO creations ({COLUMNS}) VALUES ({','.join('?' * len(values))})", values)
            ids.append(int(row.lastrowid or 0))
        return ids


def use_all(desk: Desk, good: str, rng: random.Random) -> None:
    """Do what the page, a start and a command do with all rows but the good one; a Trouble is an answer."""
    journal = desk.keeper.journal
    view = owner_view(desk, OWNER, "en", with_charts=True)
    creations = [creation_view(desk, each, "en") for each in desk.keeper.shelf.find(Search())]
    json.dumps([view, creations, desk.keeper.shelf.list_models()], allow_nan=False, ensure_ascii=False).encode()
    journal.list_live()
    for job in (*journal.mark_interrupted(), *journal.list_waiting()):
        for do in (desk.jobs.resume, desk.jobs.queue_position, desk.keeper.get_progress, desk.keeper.stop):
            if job.id != good and rng.random() < 0.2:
                with suppress(Trouble):
                    do(job.id)
    journal.list_unfinished(REQUESTS[0], Choice())
    journal.sum_guest_seconds(0.0)
    for id_ in [each["id"] for each in creations]:
        with suppress(Trouble):
            _ = desk.jobs.find_creation(id_, OWNER).request


def test_a_few_rounds(tmp_path: Path) -> None:
    fuzz(tmp_path, 15, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_rounds(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    fuzz(tmp_path, 1000, seed)
