"""Store jobs and their states, queued, running, finished, stopped, failed or interrupted, across restarts."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
import uuid
from dataclasses import dataclass
from typing import Any, Literal

import psutil

from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.database import Database
from app.engine.jobs.owners import OWNER
from app.engine.jobs.request import Request, from_json, to_json
from app.sentence import Trouble

State = Literal["queued", "running", "finished", "stopped", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Job:
    """`id` is random and secret: knowing it proves that the caller made the job."""

    id: str
    owner: str
    request: Request
    choice: Choice
    state: State
    attempts: int
    words: str
    created_s: float
    started_s: float | None


def _identify_process() -> str:
    """Return an id of this process that stays unique when the system reuses its number."""
    return f"{psutil.Process().pid}:{psutil.Process().create_time():.2f}"


def _is_alive(runner: str) -> bool:
    pid, _, born = runner.partition(":")
    try:
        return bool(pid) and f"{psutil.Process(int(pid)).create_time():.2f}" == born
    except (psutil.Error, ValueError):
        return False


def restore_choice(values: dict[str, Any]) -> Choice:
    """Rebuild a Choice from its JSON, which has no tuples. The chunk is not stored with a job: the keeper holds it."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return dataclasses.replace(Choice(**values), chunk=AUTO)


def _read_job(row: sqlite3.Row) -> Job:
    return Job(
        row["id"], row["owner"], from_json(json.loads(row["request"])), restore_choice(json.loads(row["choice"])), row["state"], row["attempts"],
        row["words"], row["created_s"], row["started_s"],
    )  # fmt: skip


class Journal:
    """The jobs of all processes; each process takes only those it queued, and those of a dead process become
    interrupted."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._me = _identify_process()

    def queue(self, request: Request, choice: Choice, owner: str = OWNER) -> Job:
        id_ = uuid.uuid4().hex
        now = time.time()
        self._db.write(
            "INSERT INTO jobs (id, owner, request, choice, state, position, runner, created_s) VALUES (?,?,?,?,'queued',?,?,?)",
            id_, owner, json.dumps(to_json(request)), json.dumps(dataclasses.asdict(choice)), now, self._me, now,
        )  # fmt: skip
        return self.get(id_)

    def get(self, id_: str) -> Job:
        (row,) = self._db.query("SELECT * FROM jobs WHERE id=?", id_)
        return _read_job(row)

    def find(self, id_: str) -> Job | None:
        rows = self._db.query("SELECT * FROM jobs WHERE id=?", id_)
        return _read_job(rows[0]) if rows else None

    def list_waiting(self) -> list[Job]:
        """List waiting jobs in the order they will run: the owner's before guests'."""
        rows = self._db.query(
            "SELECT * FROM jobs WHERE state='queued' AND runner=? ORDER BY owner<>?, position, created_s", self._me, OWNER
        )
        return [_read_job(row) for row in rows]

    def sum_guest_seconds(self, since_s: float) -> float:
        """Sum the engine time that guests used since then."""
        rows = self._db.query(
            "SELECT SUM(MAX(0, COALESCE(ended_s, ?) - MAX(started_s, ?))) AS used FROM jobs WHERE owner<>? AND started_s IS NOT NULL",
            time.time(),
            since_s,
            OWNER,
        )
        return float(rows[0]["used"] or 0.0)

    def take(self) -> Job | None:
        """Take the next job and mark it as running."""
        with self._db.transaction():
            waiting = self.list_waiting()
            if not waiting:
                return None
            self.begin(waiting[0].id)
            return self.get(waiting[0].id)

    def begin(self, id_: str) -> None:
        """Count one more attempt, before the work begins, so that the next start notices a crash."""
        self._db.write(
            "UPDATE jobs SET state='running', attempts=attempts+1, started_s=COALESCE(started_s, ?) WHERE id=?", time.time(), id_
        )

    def put_back(self, id_: str) -> None:
        """Put a job whose engine died back to its place in the queue."""
        self._db.write("UPDATE jobs SET state='queued' WHERE id=? AND state='running'", id_)

    def end(self, id_: str, state: State, words: str = "") -> None:
        self._db.write("UPDATE jobs SET state=?, words=?, ended_s=? WHERE id=?", state, words, time.time(), id_)

    def move(self, id_: str, before: str | None) -> None:
        """Move a queued job before another one, or to the end."""
        with self._db.transaction():
            order = [job.id for job in self.list_waiting() if job.id != id_]
            order.insert(order.index(before) if before in order else len(order), id_)
            for position, each in enumerate(order):
                self._db.write("UPDATE jobs SET position=? WHERE id=? AND state='queued'", float(position), each)

    def withdraw(self, id_: str) -> bool:
        """Take a queued job out; return False if it already runs or has ended."""
        return self._db.write("UPDATE jobs SET state='stopped', ended_s=? WHERE id=? AND state='queued'", time.time(), id_) > 0

    def mark_interrupted(self) -> list[Job]:
        """Mark the jobs of dead processes as interrupted; done once at each start."""
        for row in self._db.query("SELECT id, runner FROM jobs WHERE state IN ('queued', 'running')"):
            if not _is_alive(row["runner"]):
                self._db.write("UPDATE jobs SET state='interrupted', ended_s=? WHERE id=?", time.time(), row["id"])
        rows = self._db.query("SELECT * FROM jobs WHERE state='interrupted' ORDER BY created_s")
        return [job for row in rows if (job := self._read_or_fail(row)) is not None]

    def list_live(self) -> list[Job]:
        """List jobs that wait or run, in any process; jobs of dead processes are marked first."""
        rows = self._db.query("SELECT * FROM jobs WHERE state IN ('queued', 'running')")
        return [job for row in rows if (job := self._read_or_fail(row)) is not None]

    def _read_or_fail(self, row: sqlite3.Row) -> Job | None:
        """Read a row; one that another version of Hearth wrote may be unreadable, and is then marked as failed."""
        try:
            return _read_job(row)
        except (Trouble, TypeError, ValueError) as fault:
            self.end(row["id"], "failed", str(fault))
            return None

    def resume(self, id_: str) -> None:
        """Queue an unfinished job again; its folder still has the finished parts."""
        self._db.write(
            "UPDATE jobs SET state='queued', runner=?, words='', ended_s=NULL, position=? WHERE id=? AND state IN ('interrupted', 'failed')",
            self._me,
            time.time(),
            id_,
        )

    def list_unfinished(self, request: Request, choice: Choice, owner: str = OWNER) -> list[Job]:
        """List unfinished jobs with exactly this request, the latest first."""
        rows = self._db.query(
            "SELECT * FROM jobs WHERE state IN ('interrupted', 'failed') AND owner=? AND request=? ORDER BY created_s DESC",
            owner,
            json.dumps(to_json(request)),
        )
        wanted = dataclasses.replace(choice, chunk=AUTO)
        return [job for job in map(_read_job, rows) if job.choice == wanted]
