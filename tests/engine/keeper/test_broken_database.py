"""A database broken in many ways: Hearth opens, keeps the old file, and has again what rows, backups and files still tell."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from app.base import notices
from app.base.paths import Home, home
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs import backups, database, salvage
from app.engine.jobs.creation import Creation, RunSummary
from app.engine.jobs.database import Database, list_columns
from app.engine.jobs.journal import Journal
from app.engine.jobs.request import PictureRequest, SpeechRequest
from app.engine.jobs.shelf import Search, Shelf
from app.engine.keeper import open_database as opening
from app.engine.keeper.open_database import open_database
from app.engine.keeper.shelf_refill import correct
from app.engine.pictures.files import picture_settings
from tests.support.database_damage import DAMAGES, execute
from tests.support.other_functions import set_in
from tests.support.places import TOP

pytestmark = pytest.mark.long

SEED = 20261122


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    notices.take_all()
    yield
    notices.take_all()


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return make_home(tmp_path / "home")


def make_home(folder: Path, pictures: int = 8, jobs: int = 60) -> Home:
    """A home with pictures on the shelf, one of them in the bin, and waiting jobs."""
    place = home(folder).create()
    kept = Database(place.database)
    journal, shelf = Journal(kept), Shelf(kept, place.creations)
    for number in range(pictures):
        request = PictureRequest(f"a red boat, number {number}", seed=number)
        file = place.scratch / f"{number}.png"
        picture_settings.write(Image.new("RGB", (16, 16), (number, 0, 0)), file, request, "starter-painter")
        job = journal.queue(request, Choice())
        shelf.keep(job, [file], RunSummary("starter-painter"))
        journal.end(job.id, "finished")
    for newest in shelf.find(Search(most=1)):
        shelf.delete(newest.id)
    for number in range(jobs):
        journal.queue(SpeechRequest(f"[S1] Waiting, number {number}. " + "Good day. " * 40, seed=number), Choice())
    kept.close()
    return place


def shelf_of(place: Home, opened: Database) -> list[Creation]:
    shelf = Shelf(opened, place.creations)
    return [*shelf.find(Search(most=-1)), *shelf.find(Search(binned=True, most=-1))]


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_the_shelf_is_whole_again_after(place: Home, name: str) -> None:
    DAMAGES[name](place.database, random.Random(SEED))
    there = place.database.exists()
    content = place.database.read_bytes() if place.database.is_file() else b""
    opened = open_database(place, alone=True)
    try:
        found = shelf_of(place, opened)
        assert sorted(each.text for each in found) == [f"a red boat, number {number}" for number in range(8)]
        assert sum(each.binned for each in found) == 1 and not any(each.condition for each in found)
        assert sorted(each.request.seed or 0 for each in found) == list(range(8))
        assert Shelf(opened, place.creations).find(Search("boat"))
        queued = Journal(opened).queue(SpeechRequest("[S1] And on."), Choice())
        assert queued.id in {job.id for job in Journal(opened).list_live()}
    finally:
        opened.close()
    aside = list(place.root.glob("hearth.sqlite3.*.damaged"))
    told = notices.list_notices()
    if name == "the last byte is missing":
        assert not told, "SQLite does without it"
        return
    assert len(told) == 1 and len(aside) == int(there)
    if aside:
        assert str(aside[0]) in str(told[0])
        assert not aside[0].is_file() or aside[0].read_bytes() == content, "the old file is kept as it was"
    again = open_database(place, alone=True)
    assert len(shelf_of(place, again)) == 8 and notices.list_notices() == told, "it is mended and told once"
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_database_that_breaks_on_a_full_disk_is_made_anew_once_there_is_room(
    place: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    execute("UPDATE jobs SET runner='of a process that is gone'")(place.database, random.Random())
    DAMAGES[name](place.database, random.Random(SEED))
    real = opening._fill

    def find_no_room(made: Path, home: Home) -> tuple[int, int]:
        fault = sqlite3.OperationalError("database or disk is full")
        fault.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise fault

    monkeypatch.setattr(opening, "_fill", find_no_room)
    opened = open_database(place, alone=True)
    Journal(opened).mark_interrupted()
    if opened.stands_in:
        with pytest.raises(sqlite3.OperationalError):
            Journal(opened).queue(SpeechRequest("[S1] And on."), Choice())
    monkeypatch.setattr(opening, "_fill", real)
    job = Journal(opened).queue(SpeechRequest("[S1] And on."), Choice())
    opened.close()
    opened = open_database(place, alone=True)
    found = shelf_of(place, opened)
    assert sorted(each.text for each in found) == [f"a red boat, number {number}" for number in range(8)]
    assert Journal(opened).find(job.id) is not None and not any(each.condition for each in found)
    opened.close()


def test_what_a_file_says_of_itself_counts_over_a_damaged_row(place: Home) -> None:
    """A flipped bit within a text leaves a row that can be read."""
    data = place.database.read_bytes()
    assert b"a red boat, number 3" in data
    place.database.write_bytes(data.replace(b"a red boat, number 3", b"a red goat, number 3")[:-1000] + b"x" * 1000)
    DAMAGES["a broken header"](place.database, random.Random(SEED))
    opened = open_database(place, alone=True)
    assert sorted(each.text for each in shelf_of(place, opened)) == [f"a red boat, number {number}" for number in range(8)]
    opened.close()


def test_a_letter_that_is_none_takes_no_page(place: Home) -> None:
    with closing(sqlite3.connect(place.database)) as connection, connection:
        connection.execute("UPDATE creations SET text=CAST(X'6120FF20' AS TEXT) WHERE text LIKE '%number 3'")
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8 and not notices.list_notices()
    opened.close()


LEAST = {
    "20 flipped bits": 45, "200 flipped bits": 10, "a broken header": 55, "a broken first page": 50, "three pages of zeros": 30,
    "a newer version": 60, "a broken search index": 60,
}  # fmt: skip
"""At least so many of 60 waiting jobs are found again. Names of jobs are random: a flipped bit makes of six digits in sixteen one that no
name has."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_waiting_jobs_are_read_as_far_as_they_can_be(place: Home, name: str, least: int) -> None:
    DAMAGES[name](place.database, random.Random(SEED))
    opened = open_database(place, alone=True)
    live = Journal(opened).list_live()
    opened.close()

    assert len(live) >= least
    assert len({job.id for job in live}) == len(live)


def test_a_backup_has_what_no_page_has_any_more(place: Home) -> None:
    assert backups.make_backup(place)
    kept = Database(place.database)
    shelf = Shelf(kept, place.creations)
    (first, *_) = shelf.find(Search())
    shelf.set_favourite(first.id, True)
    late = place.scratch / "late.png"
    picture_settings.write(Image.new("RGB", (16, 16), (99, 0, 0)), late, PictureRequest("made after the backup"), "starter-painter")
    shelf.keep(Journal(kept).queue(PictureRequest("made after the backup"), Choice()), [late], RunSummary("starter-painter"))
    kept.close()
    DAMAGES["garbage"](place.database, random.Random(SEED))
    opened = open_database(place, alone=True)
    assert len(Journal(opened).list_live()) == 60
    found = shelf_of(place, opened)
    assert len(found) == 9 and [each.model for each in found].count("starter-painter") == 8, "eight from the backup, one from its file"
    opened.close()


def test_backups_are_made_daily_whole_and_a_few(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for day in range(12):
        date = f"2026-11-{day + 1:02d}-081500"
        set_in(monkeypatch, backups, "time", strftime=lambda *_, date=date: date, time=lambda day=day: now + day * backups.DAY_S)
        for _ in range(2):
            backups.make_daily_backup(place)
        if day == 0:
            (only,) = backups.list_backups(place)
            with closing(sqlite3.connect(only)) as copy:
                assert copy.execute("SELECT COUNT(*) FROM jobs").fetchone() == (68,)
        for each in backups.list_backups(place)[:1]:
            os.utime(each, (now + day * backups.DAY_S,) * 2)
    kept = backups.list_backups(place)
    assert [each.name for each in kept] == [f"hearth-2026-11-{day:02d}-081500.sqlite3" for day in range(12, 12 - backups.KEPT, -1)]
    DAMAGES["garbage"](place.database, random.Random(SEED))
    set_in(monkeypatch, backups, "time", time=lambda: now + 99 * backups.DAY_S)
    backups.make_daily_backup(place)
    assert backups.list_backups(place) == kept, "a broken database is no backup, and takes no one's place"


def test_files_of_odd_names_do_not_keep_the_others_away(place: Home) -> None:
    """A name that is no text at all cannot stand in a table; its file stays."""
    odd = [place.creations / os.fsdecode(name) for name in (b" .png", b" .wav", b"caf\xe9.png")]
    for file in odd:
        file.write_bytes(b"no settings in here")
    place.database.unlink()
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8 + 2 and all(file.is_file() for file in odd)
    opened.close()


def test_a_file_that_another_program_holds_stays_where_it_is(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is whole, and that program goes on writing into it."""
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    with closing(sqlite3.connect(place.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        before = sorted(place.root.iterdir())
        with pytest.raises(Trouble, match="held by another program"):
            open_database(place, alone=True)
        other.execute("ROLLBACK")
    assert {each for each in before if each.suffix == ".sqlite3"} == set(place.root.glob("*.sqlite3"))
    assert not notices.list_notices()
    opened = open_database(place, alone=True)
    assert len(Journal(opened).list_live()) == 60
    opened.close()


def test_a_command_repairs_nothing_while_a_window_is_open(place: Home) -> None:
    from app.ui.single_instance import Instance

    window = Instance(place.root)
    assert window.acquire()
    DAMAGES["garbage"](place.database, random.Random(SEED))
    before = place.database.read_bytes()
    try:
        with pytest.raises(Trouble, match="Quit the Hearth window"):
            open_database(place, alone=False)
        assert place.database.read_bytes() == before
    finally:
        window.release()
    open_database(place, alone=False).close()
    assert notices.list_notices()


def test_a_copied_home_is_made_anew_from_its_own_files(place: Home, tmp_path: Path) -> None:
    """The rows name files of the other home, which are there too."""
    backups.make_backup(place)
    for name in ("a broken search index", "garbage"):
        copied = home(tmp_path / name)
        shutil.copytree(place.root, copied.root)
        DAMAGES[name](copied.database, random.Random(SEED))
        opened = open_database(copied, alone=True)
        found = shelf_of(copied, opened)
        assert len(found) == 8 and all(each.path.is_relative_to(copied.root) and not each.condition for each in found)
        assert {each.model for each in found} == {"starter-painter"}, "by their rows, which know more than the files"
        opened.close()


def test_an_older_database_in_its_place_gets_back_what_came_since(place: Home) -> None:
    """As a person does who puts a backup there by hand."""
    older = Database(place.root / "older.sqlite3")
    older.close()
    (place.root / "older.sqlite3").replace(place.database)
    stranger = place.creations / "holiday.png"
    Image.new("RGB", (16, 16)).save(stranger)
    (place.creations / "linked.png").symlink_to(stranger)
    opened = open_database(place, alone=True)
    opening.relist(place, opened)
    found = shelf_of(place, opened)
    assert (
        sorted(each.text for each in found) == [f"a red boat, number {number}" for number in range(8)]
        and sum(each.binned for each in found) == 1
    )
    assert ["8 of those" in str(each) for each in notices.list_notices()] == [True]
    opening.relist(place, opened)
    assert len(shelf_of(place, opened)) == 8 and len(notices.list_notices()) == 1, "once"
    opened.close()
    alias = place.root.with_name("alias")
    alias.symlink_to(place.root)
    opened = open_database(home(alias), alone=True)
    opening.relist(home(alias), opened)
    assert len(shelf_of(place, opened)) == 8, "the same files by another name"
    opened.close()


def test_a_salvaged_row_takes_its_size_from_the_file(place: Home) -> None:
    kept = Database(place.database)
    (row, *_) = map(dict, kept.query("SELECT * FROM creations"))
    kept.close()
    assert correct({**row, "bytes": row["bytes"] ^ 1 << 20, "text": "another"}) == row, "a flipped bit made it somebody else's file"


def test_latest_changes_that_sqlite_ignores_are_told(place: Home) -> None:
    wal = place.database.with_name(place.database.name + "-wal")
    wal.write_bytes(random.Random(SEED).randbytes(50_000))
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8
    (aside,) = place.root.glob("*-wal.*.damaged")
    assert aside.stat().st_size == 50_000 and str(aside) in str(notices.list_notices())
    Journal(opened).queue(SpeechRequest("[S1] And on."), Choice())
    assert wal.read_bytes()[:4] in opening.WAL_STARTS, "what SQLite itself writes passes"
    open_database(place, alone=True).close()
    assert len(notices.list_notices()) == 1
    opened.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
def test_a_pipe_among_the_creations_holds_nobody_up(place: Home) -> None:
    os.mkfifo(place.creations / "x.mp3")
    DAMAGES["zero length"](place.database, random.Random(SEED))
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8
    opened.close()


def test_what_was_kept_outlives_a_power_cut(tmp_path: Path) -> None:
    """Asked in a process of its own: databases of the tests' do not wait for the disk."""
    code = "import sys; from pathlib import Path; from app.engine.jobs.database import Database; "
    code += "print(*(row[0] for name in ('synchronous', 'journal_mode') for row in Database(Path(sys.argv[1])).query(f'PRAGMA {name}')))"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "hearth.sqlite3")], cwd=TOP, capture_output=True, text=True)
    assert done.stdout == "2 wal\n", done.stderr


def test_a_new_home_says_nothing(tmp_path: Path) -> None:
    open_database(home(tmp_path).create(), alone=True).close()
    assert not notices.list_notices() and opening.SIDE_FILES


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_a_name_of_a_table_that_is_no_text_keeps_nobody_away(place: Home, seed: int) -> None:
    DAMAGES["200 flipped bits"](place.database, random.Random(seed))
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8
    opened.close()


def test_rows_around_a_damaged_page_are_read(place: Home) -> None:
    """Read from its start and from its end alone, a table with two damaged pages lost what lies between them."""
    data = bytearray(place.database.read_bytes())
    leaves = [at for at in range(0, len(data), 4096) if data[at] == 0x0D and b"Waiting, number" in data[at : at + 4096]]
    lost = 0
    for leaf in (leaves[2], leaves[-3]):
        lost += struct.unpack_from(">H", data, leaf + 3)[0]
        data[leaf : leaf + 4096] = bytes(4096)
    place.database.write_bytes(data)
    assert len(leaves) > 8 and lost and len(salvage.read_rows(place.database, list_columns())["jobs"]) == 68 - lost


def test_rows_that_cannot_be_read_take_no_longer_than_others(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may go on in as many pages as the file has, so that a thousand of them took minutes, between rows that can be read for as long as one likes."""
    data, columns, first = place.database.read_bytes(), {"jobs": ["request"]}, b"a red boat, number 0"
    for leaf in (at for at in range(0, len(data), 4096) if data[at] == 0x0D and first in data[at : at + 4096]):
        place.database.write_bytes(data[:leaf] + bytes(4096) + data[leaf + 4096 :])
        rows = salvage.read_rows(place.database, columns)["jobs"]
        if first.decode() not in rows[0]["request"]:
            break  # it was a page of the jobs, not of what they made
    last = rows[-1]
    monkeypatch.setattr(salvage, "time", SimpleNamespace(monotonic=count(0, salvage.MOST_S / 2).__next__))
    assert salvage.read_rows(place.database, columns)["jobs"] == [last], "the time is up before one that can be read is reached"


def test_what_a_stranger_has_calculated_is_not_read(tmp_path: Path) -> None:
    """12 KB asked for 200 MB."""
    with closing(sqlite3.connect(tmp_path / "hearth.sqlite3")) as connection, connection:
        connection.execute("CREATE TABLE jobs (id TEXT, request GENERATED ALWAYS AS (zeroblob(5000000)) VIRTUAL)")
        connection.executemany("INSERT INTO jobs (id) VALUES (?)", [(str(number),) for number in range(40)])
    assert salvage.read_rows(tmp_path / "hearth.sqlite3", list_columns())["jobs"] == [{"id": str(number)} for number in range(40)]


def test_rows_that_share_their_pages_take_no_more_than_the_file(tmp_path: Path) -> None:
    """Eight rows of 489 bytes each, which all go on in the 98 pages of the first."""
    file = tmp_path / "hearth.sqlite3"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE jobs (id TEXT)")
        connection.executemany("INSERT INTO jobs VALUES (?)", [("x" * (489 + 98 * 4092 - 4),)] * 8)
    data = bytearray(file.read_bytes()[: 100 * 4096])
    data[28:32] = bytes(4)
    for place in range(8):
        (cell,) = struct.unpack_from(">H", data, 4096 + 8 + 2 * place)
        struct.pack_into(">I", data, 4096 + cell + 4 + 489, 3)
    file.write_bytes(data)
    assert len(salvage.read_rows(file, list_columns())["jobs"]) == 3, "twice what the file has, and no more"


def _make_page(kind: int, cells: list[bytes], right: int = 0, at: int = 0) -> bytes:
    """Make a page of a table: a leaf (13), or one that leads to others (5)."""
    page, content, begins = bytearray(4096), 4096, b""
    for cell in cells:
        content -= len(cell)
        page[content : content + len(cell)] = cell
        begins += struct.pack(">H", content)
    header = struct.pack(">BHHHB", kind, 0, len(cells), content, 0) + (struct.pack(">I", right) if kind == 5 else b"") + begins
    page[at : at + len(header)] = header
    return bytes(page)


@pytest.mark.timeout(120)
def test_a_list_of_tables_without_end_is_not_read(place: Home) -> None:
    """114 KB, whose first page leads to 300 ** 14 pages, all the same one, held the start for ever."""
    with closing(sqlite3.connect(place.database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        (index,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name='sqlite_autoindex_jobs_1'").fetchone()
    data = place.database.read_bytes()
    first, tables_most = len(data) // 4096 + 1, struct.unpack_from(">H", data, 103)[0]
    assert data[100] == 13
    tables = data[100 : 108 + 2 * tables_most].ljust(4096, b"\0")[: 108 + 2 * tables_most] + data[108 + 2 * tables_most : 4096]
    words = b"index" + b"sqlite_autoindex_jobs_1" + b"jobs" + bytes([index])
    record = bytes([6, 23, 59, 21, 1, 0]) + words
    pages = [tables, _make_page(13, [bytes([len(record), 9]) + record])]
    leads_to = [*range(first + 3, first + 16), first + 1]
    pages += [_make_page(5, [struct.pack(">IB", page, 9)] * 300, page) for page in leads_to]
    start = bytearray(_make_page(5, [struct.pack(">IB", first, 8)], first + 2, 100))
    start[:100] = data[:28] + struct.pack(">I", first + len(pages) - 1) + data[32:100]
    place.database.write_bytes(bytes(start) + data[4096:] + b"".join(pages))
    opened = open_database(place, alone=True)
    assert len(shelf_of(place, opened)) == 8 and len(Journal(opened).list_live()) == 60
    opened.close()


def test_the_command_makes_a_backup_and_says_where(place: Home, capsys: pytest.CaptureFixture[str]) -> None:
    from app.__main__ import main

    assert main(["backup", "--home", str(place.root)]) == 0
    (made,) = backups.list_backups(place)
    assert capsys.readouterr().out.strip() == str(made)
    DAMAGES["garbage"](place.database, random.Random(SEED))
    assert main(["backup", "--home", str(place.root)]) == 2 and backups.list_backups(place) == [made]


ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r"


@pytest.mark.parametrize(
    "changes",
    [
        f"CREATE TRIGGER words_evil BEFORE UPDATE ON creations BEGIN SELECT ({ENDLESS}); END",
        f"CREATE VIEW words_data2 AS {ENDLESS}",
        "DROP TRIGGER creations_gone; CREATE TRIGGER creations_gone AFTER DELETE ON creations BEGIN SELECT 1; END",
        "CREATE INDEX words_by_job ON creations (job)",
    ],
    ids=lambda changes: changes[:30],
)
def test_what_a_stranger_adds_to_a_database_is_left_behind(place: Home, changes: str) -> None:
    with closing(sqlite3.connect(place.database)) as connection:
        listed = connection.execute("SELECT id, path FROM creations ORDER BY id").fetchall()
        plain = set(connection.execute("SELECT type, name FROM sqlite_master"))
        connection.executescript(changes)
    database = open_database(place, alone=True)
    assert [tuple(row) for row in database.query("SELECT id, path FROM creations ORDER BY id")] == listed and listed
    assert {tuple(row) for row in database.query("SELECT type, name FROM sqlite_master")} == plain
    assert not [
        row for row in database.query("SELECT sql FROM sqlite_master") if "RECURSIVE" in str(row["sql"]) or "SELECT 1" in str(row["sql"])
    ]
    database.close()


def test_a_query_without_end_in_place_of_a_table_is_not_asked(place: Home) -> None:
    with closing(sqlite3.connect(place.database)) as connection:
        connection.executescript(
            "DROP TABLE jobs; CREATE VIEW jobs AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x AS id FROM r"
        )
    assert salvage.read_rows(place.database, {"jobs": ["id"]}) == {"jobs": []}


def test_a_database_of_today_opens_as_it_is(place: Home) -> None:
    before = place.database.stat().st_ino
    Database(place.database).close()
    open_database(place, alone=True).close()
    assert place.database.stat().st_ino == before and not notices.take_all()
