"""On a helper: have the engine carry out the other machine's tasks, tell how they go and what came of them, and delete what they left."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.jobs.events import END, Event, Failed
from app.engine.jobs.parts import SPOKEN
from app.engine.jobs.request import Request
from app.engine.jobs.tasks import is_lent, name_lent
from app.engine.keeper.keeper import Keeper
from app.engine.speech.text import voices
from app.machines.outlook import Foresight
from app.machines.tasks import event_json, fetched_files, portable
from app.machines.tasks.begun import list_begun, put_into
from app.machines.wanted_models import SentModels

BEGUN_S: Final = 30.0
"""What is made of a task so far is sent so often; so long may be lost with this machine."""


_log = logging.getLogger("hearth.machines")


@dataclass(slots=True)
class Attempt:
    """One time that a task is to be done here. What an earlier one has to say is no longer asked for."""

    task: str
    tell: Callable[..., None]
    """It is called with `event`, `begun` or at last `end`, as the machines process takes them."""
    job: str = ""
    """The engine does it as this job."""
    withdrawn: bool = False
    unwanted: bool = False
    """True: nobody goes on with it."""


class LentTasks:
    """One at a time in the engine. Any thread may call."""

    def __init__(
        self, keeper: Keeper, find_model: Callable[[str], str], note: Callable[[Request, Event | None], None] = lambda request, event: None
    ) -> None:
        """`find_model`: what a model that the main machine names is called here. `note` is called when a task begins, and with its end."""
        self._keeper, self._find_model, self._note = keeper, find_model, note
        self.foresight = Foresight(keeper, find_model)
        """It learns from each task."""
        self._latest: dict[str, Attempt] = {}
        """These have not ended; each goes by its task."""
        self._turn = threading.Lock()
        """The task that runs holds it: one that comes again waits until its stopped attempt has ended."""

    def begin(self, task: str, body: str, tell: Callable[..., None]) -> None:
        threading.Thread(target=self.run, args=(self.take(task, tell), body), daemon=True).start()

    def take(self, task: str, tell: Callable[..., None]) -> Attempt:
        """Take a task that is to be run; from now on it can be stopped."""
        self.stop(task)
        attempt = self._latest[task] = Attempt(task, tell)
        return attempt

    def stop(self, task: str, unwanted: bool = False) -> None:
        """`unwanted`: by the main machine, so that nothing stays of it here; else this machine may get it again, and goes on."""
        attempt = self._latest.get(task)
        if attempt is None:
            if unwanted:
                self.clear(task)
            return
        attempt.withdrawn = True
        attempt.unwanted |= unwanted
        if attempt.job:
            self._keeper.stop(attempt.job)

    def stop_all(self) -> None:
        for task in [*self._latest]:
            self.stop(task)

    def clear(self, task: str) -> None:
        """Delete what was made for a task that the other machine has by now or wants no more: it is nothing for the owner of this one."""
        shutil.rmtree(self._keeper.folder(name_lent(task)), ignore_errors=True)

    def forget_all(self) -> None:
        """Delete all that tasks brought and what was made for them, once the one that runs has stopped."""
        self.stop_all()
        with self._turn:
            clear(self._keeper.home)

    def run(self, attempt: Attempt, body: str) -> None:
        """Whatever happens, the main machine is told an end: it waits for one."""
        task = attempt.task
        try:
            self._carry_out(task, body, attempt)
        except Exception as fault:
            _log.exception("%s", task)
            said = say("machines.broke", "The other computer could not carry out the task: {fault}.", fault=str(fault))
            _fail(attempt, said)
        finally:
            if self._latest.get(task) is attempt:
                del self._latest[task]
                if attempt.unwanted:
                    self.clear(task)

    def _carry_out(self, task: str, body: str, attempt: Attempt) -> None:
        """Have the engine carry out a task, when it is its turn."""
        try:
            request = portable.unpack(body, self._place, self._find_model)
            portable.note_speaker(body, request, _fetched(self._keeper.home))
        except Trouble as trouble:
            _fail(attempt, trouble.sentence)
            return
        except (ValueError, KeyError, TypeError, OSError) as fault:
            _fail(attempt, say("machines.odd-task", "The task cannot be read: {fault}.", fault=str(fault)))
            return
        with self._turn:
            if self._is_over(task, attempt):
                return
            with suppress(OSError):  # then it begins anew
                put_into(self._keeper.folder(name_lent(task)), body, _fetched(self._keeper.home))
            end = self._follow(task, request, attempt)
            self.foresight.note(request, end)
            self._note(request, end)

    def _follow(self, task: str, request: Request, attempt: Attempt) -> Event | None:
        """Tell the events of a task, and now and then what is made of it so far; return its end."""
        job = attempt.job = self._keeper.run_lent(task, request)
        if self._is_over(task, attempt):  # meanwhile
            self._keeper.stop(job)
        self._note(request, None)
        folder, event = self._keeper.folder(job), None
        sent_s, sent = time.monotonic(), dict[Path, int]()
        for event in self._keeper.follow(job):
            if self._latest.get(task) is attempt:
                _pass_on(attempt, event, list_results(request, event, folder))
                if time.monotonic() - sent_s > BEGUN_S and not isinstance(event, END):
                    sent_s = time.monotonic()
                    _send_begun(attempt, list_begun(request, folder), sent)
        return event

    def _is_over(self, task: str, attempt: Attempt) -> bool:
        return attempt.withdrawn or self._latest.get(task) is not attempt

    def _place(self, sha256: str, suffix: str) -> Path:
        """Return a file that was fetched, under a name with its suffix, by which some libraries tell what it is; of a ready voice this
        machine's own."""
        if (ready := voices.find_ready_clip(sha256)) is not None:
            return ready
        fetched = _fetched(self._keeper.home) / sha256
        if not suffix:
            return fetched
        named = fetched.with_name(f"{sha256}{suffix}")
        if not named.is_file():
            with suppress(OSError):
                named.hardlink_to(fetched)
        return named if named.is_file() else Path(shutil.copy2(fetched, named))


def _pass_on(attempt: Attempt, event: Event, files: Sequence[Path]) -> None:
    told = event_json.to_json(event)
    if isinstance(event, END):
        attempt.tell("end", id=attempt.task, event=told, files={file.name: str(file) for file in files})
    elif told is not None:
        attempt.tell("event", id=attempt.task, event=told)


def _fail(attempt: Attempt, said: Sentence) -> None:
    _pass_on(attempt, Failed(said), ())


def _send_begun(attempt: Attempt, files: Sequence[Path], sent: dict[Path, int]) -> None:
    """Send what has changed of the files from which another machine would go on. `sent`: when each was written that is there."""
    for file in files:
        with suppress(OSError):
            written = file.stat().st_mtime_ns
            if sent.get(file) != written:
                attempt.tell("begun", id=attempt.task, name=file.name, path=str(file))
                sent[file] = written


def list_results(request: Request, event: Event, folder: Path) -> list[Path]:
    """Return what the main machine asked for: of a script's parts each by itself, with what it says of itself, else the end's files."""
    if not isinstance(event, END):
        return []
    if request.only_parts:
        return [file for place in request.only_parts for name in SPOKEN.name_made(place) if (file := folder / name).is_file()]
    return [Path(file) for file in event.files]


def tidy(home: Home) -> None:
    """Delete what no task needed for a day of what they brought and made, and models that none needed for two weeks."""
    fetched_files.tidy(_fetched(home))
    SentModels(home).tidy()
    for folder in _list_made(home):
        if time.time() - folder.stat().st_mtime > fetched_files.UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def clear(home: Home) -> None:
    """Delete all of it: no task comes any more."""
    for folder in (_fetched(home), home.scratch / "machines" / "models", *_list_made(home)):
        shutil.rmtree(folder, ignore_errors=True)


def _fetched(home: Home) -> Path:
    return home.scratch / "machines" / "files"


def _list_made(home: Home) -> list[Path]:
    jobs = home.scratch / "jobs"
    return [each for each in jobs.iterdir() if is_lent(each.name)] if jobs.is_dir() else []
