"""Download models in the background: progress and speed, pause, resume, also after a kill. Returns plain values."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from app.base import atomic_write
from app.base.paths import Home
from app.base.put_aside import put_aside
from app.base.sentence import Sentence, say
from app.base.stored_json import read_text
from app.base.trouble import Trouble
from app.compat.planning.types import Quantised
from app.engine.models import on_disk
from app.engine.models.hub_child import Ended, Found, HubChild, ProcessDiedError, Received, Waits, ask, word_fault
from app.engine.models.model import Model, list_sources

AT_ONCE: Final = 2
WAITS_S: Final = (1.0, 3.0, 9.0, 27.0)
"""The attempt after one without new bytes waits so long; any received block starts the list again."""
LINE_WAIT_S: Final = 15.0
"""Where there is no connection, it is looked for so often."""
RATE_OVER_S: Final = 8.0
LOOK_S: Final = 0.2
"""A download looks so often whether it is to pause."""
State = Literal["queued", "running", "paused", "failed", "done"]


@dataclass(frozen=True, slots=True)
class Status:
    model: str
    state: State
    done_bytes: int
    total_bytes: int
    rate: float
    """So many bytes per second arrived over the last moments; 0 while nothing arrives."""
    eta_s: float | None
    sentence: Sentence | None = None
    """It says why it failed, what it waits for, or without what it is done."""
    cure: str = ""


class _PausedError(Exception):
    pass


@dataclass(slots=True)
class _Download:
    model: Model
    quantised: Quantised
    total_bytes: int
    blobs: list[tuple[str, str, int]] = field(default_factory=list)
    """Each has its repository, blob name and size. Received bytes are counted on disk, so the figure is right after any kill."""
    state: State = "queued"
    sentence: Sentence | None = None
    cure: str = ""
    halt: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    recent: deque[tuple[float, int]] = field(default_factory=deque)

    def count_bytes(self, size_bytes: int) -> None:
        now = time.monotonic()
        self.recent.append((now, size_bytes))
        while self.recent and now - self.recent[0][0] > RATE_OVER_S:
            self.recent.popleft()

    def measure_rate(self) -> float:
        recent, now = list(self.recent), time.monotonic()
        if not recent or now - recent[-1][0] > RATE_OVER_S:
            return 0.0
        return sum(size for _, size in recent[1:]) / max(0.1, now - recent[0][0])


class Downloads:
    """Run downloads, each in a process of its own that a thread follows; one object per program. Unfinished downloads are recorded in files."""

    def __init__(
        self, home: Home, endpoint: str | None = None, waits_s: Iterable[float] = WAITS_S, line_wait_s: float | None = None
    ) -> None:
        """`line_wait_s`: without a connection, look for one so often until it is there; None: fail after `waits_s`."""
        self._home, self._endpoint, self._waits_s, self._line_wait_s = home, endpoint, tuple(waits_s), line_wait_s
        self._folder = home.root / "downloads"
        self._lock = threading.RLock()
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._jobs: dict[str, _Download] = {}
        self.line_rate: float | None = None
        """The last download had so many bytes per second, once one has run."""

    def recall(self, models: Iterable[Model]) -> None:
        """Unfinished downloads of an earlier run are listed as paused; the user resumes them."""
        for model in models:
            record = self.record_path(model.id)
            try:
                text = read_text(record)
                if text is None:
                    continue
                kept = json.loads(text)
                blobs = [(str(repo), str(etag), int(size)) for repo, etag, size in kept["blobs"]]
                job = _Download(model, kept["quantised"], int(kept["total"]), blobs, "paused")
            except (IsADirectoryError, ValueError, KeyError, TypeError, RecursionError):
                with suppress(OSError):
                    put_aside(record)  # Nothing is lost: received bytes are found again.
                continue
            except OSError:
                continue  # It cannot be read now, which is told; it stays.
            self._jobs.setdefault(model.id, job)

    def start(self, model: Model, quantised: Quantised = "none") -> None:
        """Start or resume a download; does nothing if it is already running."""
        if not list_sources(model, quantised):
            raise Trouble(say("download.here", "{model} is already installed.", model=model.words))
        on_disk.refuse_away(self._home, model)
        with self._lock:
            before = self._jobs.get(model.id)
            if before is not None and before.state in ("queued", "running"):
                if not before.halt.is_set() or before.thread is None:
                    return
                before.thread.join()
            job = _Download(model, quantised, sum(source.bytes for source in list_sources(model, quantised)))
            if before is not None and before.quantised == quantised and before.blobs:
                job.blobs, job.total_bytes = before.blobs, before.total_bytes
            self._jobs[model.id] = job
            self._save_record(job)
            job.thread = threading.Thread(target=self._work, args=(job,), name=f"download-{model.id}", daemon=True)
            job.thread.start()

    def pause(self, model: str) -> None:
        """Pause and return at once; the transfer ends within a moment."""
        job = self._jobs.get(model)
        if job is not None and job.state in ("queued", "running"):
            job.halt.set()

    def resume(self, model: str) -> None:
        job = self._jobs.get(model)
        if job is not None:
            self.start(job.model, job.quantised)

    def remove(self, model: Model, others: Iterable[Model]) -> int:
        """Cancel the download, delete the model's files and return the number of bytes freed."""
        with self._lock:
            job = self._jobs.get(model.id)
        if job is not None:
            job.halt.set()
            if job.thread is not None:
                job.thread.join()
            self._jobs.pop(model.id, None)
        busy = [each.model for each in self._jobs.values() if each.state != "done"]
        given = on_disk.remove(self._home, model, others, keep={repo for each in busy for repo in on_disk.list_repos(each)})
        self.record_path(model.id).unlink(missing_ok=True)
        return given

    def check_line(self) -> Sentence | None:
        """Say what keeps every download from coming now: no connection to the hub, or offline mode."""
        try:
            ask("line", self._home.models, self._endpoint)
        except Trouble as trouble:
            return trouble.sentence
        except ProcessDiedError:
            return None  # which says nothing of the connection
        return None

    def list_status(self) -> list[Status]:
        return [self._make_status(job) for job in list(self._jobs.values())]

    def close(self) -> None:
        """Pause everything and wait until all writes have ended."""
        for job in list(self._jobs.values()):
            job.halt.set()
        for job in list(self._jobs.values()):
            if job.thread is not None:
                job.thread.join()

    def _make_status(self, job: _Download) -> Status:
        done = sum(on_disk.count_bytes_here(self._home.models, repo, etag) for repo, etag, _ in job.blobs)
        rate = job.measure_rate() if job.state == "running" and not job.halt.is_set() else 0.0
        self.line_rate = rate or self.line_rate
        left = max(0, job.total_bytes - done)
        eta_s = left / rate if rate > 0 else None
        state: State = "paused" if job.halt.is_set() and job.state in ("queued", "running") else job.state
        return Status(job.model.id, state, done, job.total_bytes, rate, eta_s, job.sentence, job.cure)

    def _work(self, job: _Download) -> None:
        try:
            self._wait_for_turn(job)
            try:
                self._follow(job)
            finally:
                self._turns.release()
            self._refuse_incomplete(job)
            self.record_path(job.model.id).unlink(missing_ok=True)
            job.state = "done"
        except _PausedError:
            job.state, job.sentence = "paused", None
        except Trouble as trouble:
            job.sentence, job.cure, job.state = trouble.sentence, trouble.cure, "failed"
        except ProcessDiedError as died:
            job.sentence, job.state = word_fault(job.model.words, died.how), "failed"
        except Exception as fault:
            job.sentence, job.cure, job.state = word_fault(job.model.words, type(fault).__name__), "report", "failed"
            raise

    def _refuse_incomplete(self, job: _Download) -> None:
        """Raise a Trouble where all came that the hub has and something that is needed did not."""
        if on_disk.locate(self._home, job.model, job.quantised) is None:
            raise Trouble(
                say(
                    "download.incomplete",
                    "The downloaded files lack something that {model} needs. Update Hearth and try again; if that does not help, please send a report.",
                    model=job.model.words,
                ),
                cure="report",
            )

    def _wait_for_turn(self, job: _Download) -> None:
        while not self._turns.acquire(timeout=LOOK_S):
            if job.halt.is_set():
                raise _PausedError

    def _follow(self, job: _Download) -> None:
        """Have a process of its own fetch the model, and hear from it until it has ended."""
        if job.halt.is_set():
            raise _PausedError
        job.state = "running"
        sources = list_sources(job.model, job.quantised)
        optional = tuple(each.source for each in job.model.companions if each.optional)
        child = HubChild(
            "download", self._home.models, job.model.words, sources, optional, self._endpoint, self._waits_s, self._line_wait_s
        )
        try:
            while not job.halt.is_set():
                match child.receive(LOOK_S):
                    case Found(blobs):
                        job.blobs, job.total_bytes = list(blobs), sum(size for _, _, size in blobs)
                        with suppress(OSError):  # a full disk, which the download tells; the next time it is looked up again
                            self._save_record(job)
                    case Received(size_bytes):
                        job.count_bytes(size_bytes)
                        job.sentence = None
                    case Waits(sentence):
                        job.sentence = sentence
                    case Ended(None, without=without):
                        job.sentence = without
                        return
                    case Ended(sentence, cure) if sentence is not None:
                        raise Trouble(sentence, cure=cure)
            raise _PausedError
        finally:
            child.close()

    def record_path(self, model: str) -> Path:
        # A local model has a path as its name.
        plain = re.fullmatch(r"[\w-][\w.-]*", model)
        return self._folder / f"{model if plain else hashlib.sha256(model.encode()).hexdigest()}.json"

    def _save_record(self, job: _Download) -> None:
        facts = {"quantised": job.quantised, "total": job.total_bytes, "blobs": job.blobs}
        atomic_write.write_text(self.record_path(job.model.id), json.dumps(facts))
