"""The keeper is what all other code calls to queue, follow, stop and resume jobs; its loop runs them on the engine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from app.base.path_checks import is_file
from app.base.paths import Home
from app.base.sentence import Sentence
from app.base.trouble import NotStored, Trouble
from app.compat.machine.verdicts import load
from app.compat.planning.types import Choice, Chunk
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Event, Finished, Note, PartDone, Preview, Stopped
from app.engine.jobs.gallery import Gallery
from app.engine.jobs.journal import LIVE, Job, Journal
from app.engine.jobs.messages import Free, Run
from app.engine.jobs.owners import OWNER
from app.engine.jobs.parts import DELIVERED, LENT_OUT, Parts, mark_elsewhere, move_in
from app.engine.jobs.progress import Progress
from app.engine.jobs.request import Request, to_json
from app.engine.jobs.shelf import Search, Shelf
from app.engine.jobs.tasks import Describe, Enlarge, Hear, MaintenanceTask, Pick, name_lent, new_task_id
from app.engine.keeper import kept_parts
from app.engine.keeper.disk_use import mark_used
from app.engine.keeper.engine_life import EngineLife
from app.engine.keeper.engine_loop import QUIET_S, EngineLoop
from app.engine.keeper.engine_status import EngineStatus
from app.engine.keeper.job_folder import drop_all_passing, remove_links, show_preview, take_over_all, tidy_uploads
from app.engine.keeper.kept_parts import KeptParts
from app.engine.keeper.open_database import open_database, open_gallery, relist
from app.engine.keeper.own_inputs import adopt, require_own
from app.engine.keeper.progress_board import ProgressBoard
from app.engine.keeper.recovery import explain_database_fault, recall_progress
from app.engine.keeper.state import EngineState
from app.engine.keeper.stores import Stores
from app.engine.keeper.work_queue import WorkQueue
from app.engine.kinds import admit, kind_of, measure_progress, parts_of
from app.engine.models.chosen import read_choice
from app.engine.models.on_disk import resolve
from app.engine.models.planned import Setup
from app.engine.models.swin2sr import find_row

_log = logging.getLogger("hearth")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let what fails at the start keep neither the rest nor the start itself: files and rows may be a stranger's."""
    try:
        yield
    except Exception:
        _log.exception("tidying")


class Keeper:
    """Hold the stores, the engine and its queue. Any thread may call; the work is done in the loop's own."""

    def __init__(
        self,
        home: Home,
        pretended: str = "",
        quiet_s: float = QUIET_S,
        rest_s: float = 0.0,
        patient: bool = True,
        engine: EngineLife | None = None,
        paused: Sentence | None = None,
    ) -> None:
        """`rest_s`: delay of the engine's start, unless something is asked for. `patient`: jobs wait while the engine
        cannot start; a command cannot be repaired meanwhile, so its job fails. `engine`: in place of one that starts
        processes. `paused`: why no job is begun, until `pause` says otherwise."""
        self.home, self.pretended = home.create(), pretended
        self.database = open_database(self.home, alone=patient)
        self.journal = Journal(self.database)
        self.gallery = Gallery(partial(open_gallery, self.home))
        self.shelf = Shelf(self.database, home.creations, self.gallery)
        self.stores = Stores(home, self.journal, self.shelf)
        self.engine = engine or EngineLife(home, pretended)
        self._queue = WorkQueue(self.journal, self.folder, lambda job: self.leaves(job))
        self.leaves: Callable[[Job], bool] = lambda job: False
        """It says whether a waiting job is passed over, as another machine is to do it. The loop's thread calls it."""
        self.stops: Callable[[str], None] = lambda job: None
        """It takes back what other machines have of a job that is stopped."""
        self.board, self.status = ProgressBoard(), EngineStatus()
        self._lent_out: dict[str, Callable[[], None]] = {}
        """Other machines do these jobs; each comes with what stops it."""
        self._loop = EngineLoop(
            self.stores, self.engine, self._queue, self.board, self.status, quiet_s=quiet_s, rest_s=rest_s, patient=patient
        )
        self._loop.pause(paused)
        if not self.database.stands_in:
            self._tidy()
        self._loop.start()

    def _tidy(self) -> None:
        """Finish what a killed process left, and remove what no job needs."""
        jobs, uploads = self.stores.jobs_folder, self.stores.uploads
        for folder in (jobs, uploads):
            with _alone():
                remove_links(folder)
        with _alone():
            self.shelf.find_moved()
        for job in self.interrupted:
            with _alone():
                self.shelf.finish_moves(job.id, (self.folder(job.id) / DELIVERED, self.folder(job.id)))
        live = self.journal.list_live()
        if not any(job.state == "running" for job in live):  # here or in another process: its file comes before its row
            with _alone():
                relist(self.home, self.database)
        with _alone():
            kept_parts.tidy(self.stores, self._list_to_come())
        with _alone():
            drop_all_passing(jobs, {job.id for job in live})
        with _alone():
            tidy_uploads(uploads, self.describe_to_come() + " ".join(kept_parts.list_clips(self.stores)))

    def _list_to_come(self) -> set[str]:
        return {job.id for job in (*self.journal.list_live(), *self.interrupted)}

    def describe_to_come(self) -> str:
        """Return what jobs that may still run ask for, as text; it names the files they need."""
        return json.dumps([to_json(job.request) for job in (*self.journal.list_live(), *self.interrupted)])

    @property
    def state(self) -> EngineState:
        return self.status.state

    @property
    def interrupted(self) -> list[Job]:
        return self._loop.ends.interrupted

    @property
    def running(self) -> list[str]:
        """The engine's job, then those that other machines do, in the order in which they were given."""
        return [*([self.state.job] if self.state.job else []), *self._lent_out]

    @property
    def chunk(self) -> Chunk:
        """The chunk size asked for, for every job."""
        return self.engine.dial.chunk

    def read_setup(self, choice: Choice, yields: bool = False) -> Setup | None:
        """Return what plans are made by now; None while the machine is not known yet."""
        hardware = self.state.hardware
        return Setup(self.home, hardware, choice, self.chunk, load(self.home.verdicts, hardware), yields) if hardware is not None else None

    def submit(self, request: Request, choice: Choice = Choice(), owner: str = OWNER) -> Job:  # noqa: B008 (frozen)
        """Queue a job, with its model's id, which is what all later stations ask for, made from files in Hearth's own folders. All jobs use
        the chunk size asked for last."""
        asked = kind_of(request).complete(self.home, request) if owner == OWNER else request
        request = adopt(self.home, admit(asked, self.home))
        try:
            job = self.journal.queue(request, choice, owner)
        except sqlite3.Error as fault:
            told, known = explain_database_fault(self.home.database, fault).sentence, self.state.obstacle
            raise NotStored(told, *([known] if known not in (None, told) else [])) from fault
        self.board.open(job.id)
        self._loop.wake()
        return job

    def start_task(self, task: MaintenanceTask) -> str:
        """Queue a maintenance task ahead of the jobs; its events are followed like a job's."""
        id_ = new_task_id()
        if isinstance(task, Hear | Pick | Describe):
            mark_used(self.home, task.model)
        elif isinstance(task, Enlarge):
            row = find_row(task.enlarger)
            mark_used(self.home, row.id if row is not None else Path(task.enlarger).name)
        self.board.open(id_)
        self._queue.add_task(id_, task)
        self._loop.wake()
        return id_

    def run_lent(self, task: str, request: Request) -> str:
        """Run a request for another machine, while nothing of this one's own waits; nothing of it comes to the journal or the
        shelf. Its events are followed like a job's, and its results lie in its folder."""
        id_ = name_lent(task)
        self.board.reopen(id_)
        self._loop.ends.settle(id_)
        self._queue.add_lent(Run(id_, request, read_choice(self.home), str(self.folder(id_)), yields=True))
        self._loop.wake()
        return id_

    def follow(self, job: str) -> Iterator[Event]:
        """Yield what happened so far, in short, then every event as it happens, until the end."""
        return self.board.follow(job, lambda: self._recall(job))

    def get_progress(self, job: str) -> Progress:
        return self.board.find(job) or self._recall(job)

    def _recall(self, job: str) -> Progress:
        """Rebuild the progress of a job that only journal, shelf and its folder still know."""
        known = self.journal.find(job)
        kept = known is not None and known.state not in LIVE and kept_parts.has_parts(self.folder(job))
        parts = tuple(self._list_parts(known, Parts.left)) if known is not None and kept else ()
        progress = recall_progress(known, self.shelf.list_of_job(job), parts)
        if parts:
            self.board.open(job, progress)  # a page asks every second
        return progress

    def _list_parts(self, job: Job, which: Callable[[Parts], list[PartDone]]) -> list[PartDone]:
        """List parts of a job; none that cannot be read now, which a run finds out."""
        with contextlib.suppress(OSError, ValueError):
            return which(parts_of(self.home, job.request, self.folder(job.id)))
        return []

    def find_last_script(self) -> str:
        """Return the owner's newest script, on the shelf or interrupted, whose parts are still there; empty if there is none."""
        cut = (each for each in self.interrupted if each.owner == OWNER and each.request.kind == "speech" and self.has_parts(each.id))
        spoken = [(each.created_s, each.job) for each in self.shelf.find(Search(kind="speech", owner=OWNER, most=1))]
        _, newest = max([*spoken, *((each.started_s or 0.0, each.id) for each in cut)], default=(0.0, ""))
        return newest if newest and self.has_parts(newest) else ""

    def has_parts(self, job: str) -> bool:
        """Tell whether the parts of a script that runs no more can still be heard and redone."""
        return self.journal.find(job) is not None and kept_parts.has_parts(self.folder(job))

    def measure_parts(self) -> KeptParts:
        """Measure what the parts of all scripts that ended take."""
        return kept_parts.measure(self.stores)

    def drop_parts(self) -> None:
        """Delete the parts of all scripts that ended but those that a job to come needs."""
        kept_parts.drop_all(self.stores, self._list_to_come())

    def empty_bin(self) -> tuple[int, set[str]]:
        """Delete the bin for good, and with a job's last creation its parts. Return how many stay, being open in another program, and
        the jobs of which nothing is left."""
        binned = {each.job for each in self.shelf.find(Search(binned=True, most=-1))}
        stayed = self.shelf.empty_bin()
        gone = kept_parts.drop(self.stores, binned, self._list_to_come())
        for job in gone:
            self.board.forget(job)
        return stayed, gone

    def lend_out(self, job: str, model: str, stop: Callable[[], None]) -> Job | None:
        """Give a waiting job to another machine; None if it no longer waits. It runs from now on, until `end_lent_out`; `stop` is
        called where somebody stops it before."""
        taken = self.journal.take_waiting(job)
        if taken is not None:
            self._lent_out[job] = stop
            with contextlib.suppress(OSError):  # on a full disk the person resumes it
                self.folder(job).mkdir(parents=True, exist_ok=True)
                (self.folder(job) / LENT_OUT).touch()
            self.board.name_model(job, model)
            if self._stop_if_asked(job):
                return None
        return taken

    def tell_waiting(self, job: str, sentence: Sentence) -> None:
        """Say, once, why a job waits."""
        if not any(each.sentence == sentence for each in self.board.get(job).said):
            self.board.post(job, Note(sentence))

    def tell_lent_out(self, job: str, event: Event) -> None:
        """Show how far another machine is with a job. The file of a preview is moved to the job's folder, in place of the one before."""
        if job in self._lent_out:
            with contextlib.suppress(OSError):
                self.board.post(job, show_preview(self.folder(job), event) if isinstance(event, Preview) else event)

    def end_lent_out(self, job: str, end: Finished, files: Mapping[str, Path], machine: str) -> None:
        """Keep what another machine made of a job, and close it. Where that fails, it is queued again. Without `files` the end's own are
        in the job's folder already."""
        if self._lent_out.pop(job, None) is None:
            return
        try:
            end = dataclasses.replace(end, files=take_over_all(self.folder(job), files, machine)) if files else end
            self.board.post(job, self._loop.ends.end(job, end))
        except (OSError, sqlite3.Error):
            self._put_back(job)

    def give_up_lent_out(self, job: str) -> None:
        """Put a job that another machine could not do back to its place in the queue."""
        if self._lent_out.pop(job, None) is not None:
            self._put_back(job)

    def resume_lent_out(self) -> None:
        """Queue again what other machines were at when the last process ended; once, as what fails here must not come back by itself."""
        for job in self.interrupted:
            with contextlib.suppress(Trouble, OSError, sqlite3.Error):  # then the person is asked
                if (self.folder(job.id) / LENT_OUT).is_file():
                    (self.folder(job.id) / LENT_OUT).unlink()
                    self.resume(job.id)

    def _put_back(self, job: str) -> None:
        self.board.reopen(job)
        with contextlib.suppress(OSError, sqlite3.Error):  # the next start offers to resume it
            self.journal.put_back(job)
            (self.folder(job) / LENT_OUT).unlink(missing_ok=True)
        if not self._stop_if_asked(job):
            self._loop.wake()

    def _stop_if_asked(self, job: str) -> bool:
        """Stop a job that somebody stopped while it went to another machine, or came back: it neither waited nor ran then."""
        asked = job in self._loop.ends.stopping
        if asked:
            self.stop(job)
        return asked

    def take_over(self, job: str, part: PartDone, files: Mapping[str, Path], machine: str) -> None:
        """Put a part that another machine made into the job's folder, where the engine finds it done, and show it. `files`: under their
        names there, the one to show first. Raise OSError if they cannot be put there."""
        path, *_ = [move_in(self.folder(job), file, name, machine) for name, file in files.items()]
        mark_elsewhere(path)
        self.board.post(job, dataclasses.replace(part, path=str(path)))

    def stop(self, job: str) -> None:
        """Stop within one step and keep what is finished. A waiting job leaves the queue."""
        if (stop := self._lent_out.pop(job, None)) is not None:
            stop()
            self.board.post(job, self._loop.ends.end(job, Stopped((), 0.0)))
            return
        self._loop.stop(job)
        self.stops(job)

    def withdraw(self, job: str) -> bool:
        """Take a waiting job out of the queue; one that has begun runs on, and False is returned."""
        return self._loop.withdraw(job)

    def set_chunk(self, chunk: Chunk) -> None:
        """Apply to a running job and to all later ones."""
        self.engine.dial.chunk = chunk
        self.engine.send(self.engine.dial)

    def pause(self, reason: Sentence | None) -> None:
        """Begin no job and give the device back, with the reason that the page shows; None: go on."""
        self._loop.pause(reason)

    def free(self) -> None:
        self.engine.send(Free())

    def resume(self, job: str) -> None:
        """Resume an interrupted, failed or stopped job after the last finished part."""
        self.journal.mark_interrupted()  # a full disk may have prevented it at the start
        known = self.journal.find(job)
        if known is not None and known.state in ("interrupted", "failed", "stopped"):
            require_own(self.home, known.request)
            with contextlib.suppress(OSError):
                (self.folder(job) / LENT_OUT).unlink(missing_ok=True)
            self.board.reopen(job)
            for part in self._list_parts(known, Parts.done):  # seen before the model has loaded
                self.board.post(job, part)
            try:
                self.journal.resume(job, self._complete(known.request))
            except sqlite3.Error:
                self.board.forget(job)
                raise
        self._loop.ends.settle(job)
        self._loop.wake()

    def _complete(self, request: Request) -> Request:
        """Return the request of a job that is resumed: with the parts that it left out, and with a model, which earlier versions left open."""
        return resolve(self.home, request.with_left_out() or request)

    def find_unfinished(self, request: Request, choice: Choice) -> Job | None:
        """Find the owner's latest unfinished job with exactly this request that left something to resume from. Jobs of earlier versions
        may name no model."""
        unfinished = [job for each in self._list_stored(request) for job in self.journal.list_unfinished(each, choice)]
        return next((job for job in unfinished if any(measure_progress(self.folder(job.id)).values())), None)

    def find_made(self, request: Request, choice: Choice) -> Creation | None:
        """Find what the owner's latest finished job with exactly this request made, where it is still there."""
        jobs = (job for each in self._list_stored(request) for job in self.journal.list_finished(each, choice))
        return next((made for job in jobs for made in self.shelf.list_of_job(job.id) if is_file(made.path)), None)

    def _list_stored(self, request: Request) -> Iterable[Request]:
        """List what a request is in the journal: adopted, and with its model named."""
        request = adopt(self.home, kind_of(request).complete(self.home, request))
        return dict.fromkeys((resolve(self.home, request), request))

    def retry_start(self) -> None:
        """Start the engine again now, after failed starts."""
        self.engine.retry_now()
        self._loop.wake()

    def discard(self, job: str) -> None:
        """Give up an interrupted job; move its finished parts to the shelf. One that was resumed meanwhile runs on."""
        if any(each.id == job for each in self.interrupted):
            self._loop.ends.end(job, Stopped((), 0.0))
            self._loop.ends.settle(job)
            self.board.forget(job)  # a page that shows its parts is told anew

    def folder(self, job: str) -> Path:
        return self.stores.job_folder(job)

    def close(self) -> None:
        """End the engine as well; a running job is interrupted and can be resumed."""
        self._loop.close()
        self.gallery.close()
        self.database.close()
