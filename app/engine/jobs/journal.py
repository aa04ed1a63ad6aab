"""Store jobs and their states, queued, running, finished, stopped, failed or interrupted, across restarts."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal, Protocol, TypeVar, get_args

import psutil

from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Choice
from app.engine.jobs.database import Database, read_number, read_text
from app.engine.jobs.owners import OWNER, household_of
from app.engine.jobs.request import Request, from_json, to_json

HOUR_S: Final = 3600.0
State = Literal["queued", "running", "finished", "stopped", "failed", "interrupted"]
BEHIND_ALL: Final = "MAX(?, 1e-3 + COALESCE((SELECT MAX(ABS(position)) FROM jobs WHERE state='queued' AND typeof(position)='real' AND ABS(position)<1e12), 0))"
"""A new job gets this position, for the time of now; damaged positions do not count."""
_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,100}")
ENDED: Final = frozenset({"finished", "stopped", "failed"})
LIVE: Final = frozenset({"queued", "running"})


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
    position: float = 0.0


def require_id(id_: object) -> str:
    """Return a job's id, which is its folder's name, too; raise TypeError or ValueError for what Hearth never makes, such as a path."""
    if not _ID.fullmatch(text := read_text(id_)):
        raise ValueError(f"no job's id: {text[:100]!r}")
    return text


def _identify(process: psutil.Process) -> str:
    """Return an id that is unique, also when the system reuses the number, and stays the same when the clock is set: Linux
    counts from its start, and psutil adds that as the clock has it now."""
    boot_s = psutil.boot_time() if psutil.LINUX else 0.0
    return f"{process.pid}:{process.create_time() - boot_s:.2f}"


def _is_alive(runner: object) -> bool:
    pid = str(runner).partition(":")[0]
    try:
        return bool(pid) and _identify(psutil.Process(int(pid))) == runner
    except (psutil.Error, ValueError, OverflowError):
        return False


def restore_choice(values: dict[str, Any]) -> Choice:
    """Rebuild a Choice from its JSON, which has no tuples. Earlier versions stored a chunk size with it."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name != "chunk"}
    return Choice(**values)


@lru_cache(maxsize=512)
def _parse(request: str, choice: str) -> tuple[Request, Choice]:
    """Kept, as the live answer reads every waiting job."""
    return from_json(json.loads(request)), restore_choice(json.loads(choice))


def read_job(row: sqlite3.Row | Mapping[str, Any]) -> Job:
    """Read a row; raise Trouble, TypeError, ValueError or AttributeError if it is damaged."""
    if row["state"] not in get_args(State):
        raise ValueError(row["state"])
    created_s, started_s = (read_number(row[name]) if row[name] is not None else None for name in ("created_s", "started_s"))
    request, choice = _parse(row["request"], row["choice"])
    return Job(
        require_id(row["id"]),
        read_text(row["owner"]),
        request,
        choice,
        row["state"],
        int(read_number(row["attempts"])),
        str(row["words"]),
        created_s or 0.0,
        started_s,
        read_number(row["position"]),
    )


class Journal:
    """The jobs of all processes; each process takes only those it queued, and those of a dead process become
    interrupted."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._me = _identify(psutil.Process())
        self._waiting: tuple[int, list[Job]] = -1, []
        """The jobs that wait here, and the count of writes when they were read."""

    def queue(self, request: Request, choice: Choice, owner: str = OWNER) -> Job:
        """Queue a job behind those that wait, also where the clock was set back meanwhile."""
        id_ = uuid.uuid4().hex
        now = time.time()
        self._db.write(
            "INSERT INTO jobs (id, owner, request, choice, state, position, runner, created_s) VALUES (?,?,?,?,'queued',"
            f" {BEHIND_ALL},?,?)",
            id_,
            owner,
            json.dumps(to_json(request)),
            json.dumps(dataclasses.asdict(choice)),
            now,
            self._me,
            now,
        )
        return self.get(id_)

    def get(self, id_: str) -> Job:
        """Return a job; raise Trouble if its row is gone or unreadable."""
        job = self.find(id_)
        if job is None:
            raise Trouble(say("job.unknown", "This job is no longer in the queue or the history. Start it again."))
        return job

    def find(self, id_: str) -> Job | None:
        return next(iter(self._read_all(self._db.query("SELECT * FROM jobs WHERE id=?", id_))), None)

    def list_waiting(self) -> list[Job]:
        """List waiting jobs in the order they will run: the owner's, then one of each guest in turn."""
        jobs = self._read_waiting()
        guests = {household_of(job.owner) for job in jobs} - {OWNER}
        return order_fairly(jobs, self.sum_guest_seconds(time.time() - HOUR_S) if len(guests) > 1 else {})

    def _read_waiting(self) -> list[Job]:
        """Read them once after each write: the live answer asks several times a second, and another process never changes
        the jobs of this one."""
        writes, jobs = self._waiting
        if writes != self._db.writes:
            writes = self._db.writes  # before the query, so that a write meanwhile is not missed
            rows = self._db.query("SELECT * FROM jobs WHERE state='queued' AND runner=? ORDER BY rowid", self._me)
            jobs = self._read_all(rows)
            self._waiting = writes, jobs
        return jobs

    def count_waiting(self) -> int:
        (row,) = self._db.query("SELECT COUNT(*) AS n FROM jobs WHERE state='queued' AND runner=?", self._me)
        return int(row["n"])

    def has_live(self) -> bool:
        """Tell whether a job waits or runs, here or in another process that is alive."""
        rows = self._db.query("SELECT DISTINCT runner FROM jobs WHERE state IN ('queued', 'running')")
        return any(row["runner"] == self._me or _is_alive(row["runner"]) for row in rows)

    def sum_guest_seconds(self, since_s: float) -> Counter[str]:
        """Sum the engine time that each household of guests used since then."""
        rows = self._db.query(
            "SELECT owner, TOTAL(MAX(0, COALESCE(ended_s, ?) - MAX(started_s, ?))) AS used FROM jobs"
            " WHERE owner<>? AND typeof(owner)='text' AND started_s IS NOT NULL AND COALESCE(ended_s, ?)>? GROUP BY owner",
            time.time(),
            since_s,
            OWNER,
            time.time(),
            since_s,
        )
        used: Counter[str] = Counter()
        for row in rows:
            used[household_of(row["owner"])] += row["used"]
        return used

    def take(self, leaves: Callable[[Job], bool] = lambda job: False) -> Job | None:
        """Take the next job and mark it as running. `leaves`: whether one is passed over, as another machine is to do it."""
        wanted = (job.id for job in self.list_waiting() if not leaves(job))
        return next(filter(None, map(self.take_waiting, wanted)), None)

    def take_waiting(self, id_: str) -> Job | None:
        """Take one that waits, out of its turn, and mark it as running; None if it does not wait."""
        with self._db.transaction():
            if id_ not in {job.id for job in self.list_waiting()}:
                return None
            self.begin(id_)
            return self.get(id_)

    def begin(self, id_: str) -> None:
        """Count one more attempt, before the work begins, so that the next start notices a crash. From `started_s` to
        `ended_s` is what a job ran within the last hour: what it waited in between is left out."""
        now_s = time.time()
        self._db.write(
            "UPDATE jobs SET state='running', attempts=attempts+1, ended_s=NULL,"
            " started_s=? - COALESCE(MAX(0, ended_s - MAX(started_s, ?)), 0) WHERE id=?",
            now_s,
            now_s - HOUR_S,
            id_,
        )

    def put_back(self, id_: str) -> None:
        """Put a job whose engine died back to its place in the queue."""
        self._db.write("UPDATE jobs SET state='queued', ended_s=? WHERE id=? AND state='running'", time.time(), id_)

    def end(self, id_: str, state: State, words: str = "") -> None:
        self._db.write("UPDATE jobs SET state=?, words=?, ended_s=COALESCE(ended_s, ?) WHERE id=?", state, words, time.time(), id_)

    def move_up(self, id_: str) -> None:
        """Let a waiting job pass the one ahead of it; those of others keep their fair turns, also those that come later.
        A guest's job does not pass the owner's."""
        with self._db.transaction():
            order = self.list_waiting()
            place = next((place for place, job in enumerate(order) if job.id == id_), 0)
            if not place:
                return
            moved, passed = order[place], order[place - 1]
            if moved.owner != OWNER == passed.owner:
                return
            signs = [math.copysign(1, job.position) for job in order]
            order[place - 1 : place + 1], signs[place - 1 : place + 1] = [moved, passed], [-1.0, signs[place - 1]]
            for position, (job, sign) in enumerate(zip(order, signs, strict=True), 1):
                self._db.write("UPDATE jobs SET position=? WHERE id=? AND state='queued'", sign * position, job.id)

    def withdraw(self, id_: str) -> bool:
        """Take a queued job out; return False if it already runs or has ended."""
        return (
            self._db.write("UPDATE jobs SET state='stopped', ended_s=COALESCE(ended_s, ?) WHERE id=? AND state='queued'", time.time(), id_)
            > 0
        )

    def mark_interrupted(self) -> list[Job]:
        """Mark the jobs of dead processes as interrupted; done at each start. On a full disk it is done when one of them
        is resumed."""
        rows = self._db.query("SELECT * FROM jobs WHERE state IN ('queued', 'running')")
        dead = [row for row in rows if row["runner"] != self._me and not _is_alive(row["runner"])]
        count = 0
        with contextlib.suppress(sqlite3.Error):  # the rest would fail as well
            for row in dead:
                # Nobody knows when its process died, so that nothing of its time counts.
                self._db.write("UPDATE jobs SET state='interrupted', ended_s=COALESCE(ended_s, started_s) WHERE id=?", row["id"])
                count += 1
        marked = self._db.query("SELECT * FROM jobs WHERE state='interrupted'")
        jobs = [dataclasses.replace(job, state="interrupted") for job in self._read_all([*marked, *dead[count:]])]
        return sorted(jobs, key=lambda job: job.created_s)

    def list_live(self) -> list[Job]:
        """List jobs that wait or run, in any process; after `mark_interrupted` none of a dead one."""
        return self._read_all(self._db.query("SELECT * FROM jobs WHERE state IN ('queued', 'running')"))

    def _read_all(self, rows: list[sqlite3.Row]) -> list[Job]:
        """Read rows; skip those that are damaged or that another version of Hearth wrote. An unreadable open job is
        marked as failed."""
        jobs = []
        for row in rows:
            try:
                jobs.append(read_job(row))
            except (Trouble, TypeError, ValueError, AttributeError, RecursionError) as fault:
                if row["state"] not in ENDED:
                    with contextlib.suppress(sqlite3.Error):  # the next time
                        self.end(row["id"], "failed", str(fault).encode(errors="replace").decode())
        return jobs

    def resume(self, id_: str, request: Request | None = None) -> None:
        """Queue an unfinished job again, with its request or a wider one; its folder still has the finished parts."""
        self._db.write(
            f"UPDATE jobs SET state='queued', runner=?, request=COALESCE(?, request), words='', position={BEHIND_ALL}"
            " WHERE id=? AND state IN ('interrupted', 'failed', 'stopped')",
            self._me,
            request and json.dumps(to_json(request)),
            time.time(),
            id_,
        )

    def list_unfinished(self, request: Request, choice: Choice, owner: str = OWNER) -> list[Job]:
        """List unfinished jobs with exactly this request, the latest first; stopped ones too."""
        return self._list_of_request(request, choice, owner, "'interrupted', 'failed', 'stopped'")

    def list_finished(self, request: Request, choice: Choice, owner: str = OWNER) -> list[Job]:
        """List finished jobs with exactly this request, the latest first."""
        return self._list_of_request(request, choice, owner, "'finished'")

    def _list_of_request(self, request: Request, choice: Choice, owner: str, states: str) -> list[Job]:
        rows = self._db.query(
            f"SELECT * FROM jobs WHERE state IN ({states}) AND owner=? AND request=? ORDER BY created_s DESC",
            owner,
            json.dumps(to_json(request)),
        )
        return [job for job in self._read_all(rows) if job.choice == choice]


PLACED_BELOW: Final = 1e6
"""Positions below this were written when the owner moved a job up; those of moved jobs are negative. All others are times in seconds."""


class Waiting(Protocol):
    @property
    def owner(self) -> str: ...
    @property
    def position(self) -> float: ...
    @property
    def started_s(self) -> float | None: ...


T = TypeVar("T", bound=Waiting)


def order_fairly(waiting: Sequence[T], used_s: Mapping[str, float]) -> list[T]:
    """`waiting` is in the order of arrival. `used_s`: the engine time that each household had lately."""
    turns: Counter[str] = Counter()

    def rank(job: T) -> tuple[int, int, float]:
        if job.owner == OWNER:
            return 0, 0, 0.0
        if job.started_s is not None:
            return 1, 0, 0.0
        household = household_of(job.owner)
        turns[household] += 1
        return 2, turns[household], used_s.get(household, 0.0)

    placed = sorted(((job, rank(job)) for job in waiting), key=lambda each: abs(each[0].position))
    ranks = [(*own, place) for place, (_, own) in enumerate(placed)]
    for place, ((job, own), (behind, _)) in reversed([*enumerate(pairwise(placed))]):
        if job.position < 0 and abs(behind.position) < PLACED_BELOW:
            ranks[place] = min((*own, place), (*ranks[place + 1][:3], place))  # ahead of the one that it passed
    return [placed[place][0] for *_, place in sorted(ranks)]
