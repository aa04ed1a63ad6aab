"""Explain why an engine died, from its exit code and last log lines, and how its job ends: a clear failure, or an earlier end recalled. Pure."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.base.sentence import Sentence, say
from app.compat.machine.meter import Reading
from app.compat.machine.verdicts import Fault
from app.compat.planning.quirk_table import match_symptom
from app.engine.jobs.creation import Creation
from app.engine.jobs.events import Failed, Finished, PartDone, Stopped
from app.engine.jobs.journal import LIVE, Job
from app.engine.jobs.messages import Died
from app.engine.jobs.progress import Progress
from app.engine.keeper.deaths import DEATHS, DeathRecord

ASKED_TO_END = frozenset(-getattr(signal, name, 0) for name in ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT")) - {0}
"""People or the system send these signals to end a program; no calculation dies of them."""


@dataclass(frozen=True, slots=True)
class Death:
    sentence: Sentence
    fault: Fault | None
    """None: it was ended from outside, so there is nothing to learn."""
    quirk: str = ""
    """This quirk predicted it, if its last log lines match one."""


DEAF = Death(
    say("engine.deaf", "The job did not react to Stop, so its engine was shut down and started again. Finished parts are kept."), None
)
"""A load, a template or a pattern in a model's files never ended, which teaches nothing about this machine."""


def diagnose(exit_code: int | None, last_words: str, wedged: bool = False, last: Reading | None = None) -> Death:
    """Explain a death. `last`: the memory a moment before."""
    if wedged:
        return Death(say("engine.wedged", "The engine stopped responding during a step and was shut down."), "crash")
    if quirk := match_symptom(last_words):
        return Death(quirk.sentence, "crash", quirk.id)
    killed = exit_code == -getattr(signal, "SIGKILL", 9)
    roomy = last is not None and last.system_free_bytes > last.system_bytes // 4 > 0
    if exit_code in ASKED_TO_END or (killed and roomy):
        return Death(say("engine.outside", "Another program stopped the engine; there was enough memory."), None)
    if killed:
        return Death(say("engine.killed", "The system stopped the engine, probably because memory ran out."), "memory")
    if exit_code == -getattr(signal, "SIGABRT", 6):
        return Death(say("engine.aborted", "The graphics driver stopped the engine during a calculation."), "crash")
    if exit_code is not None and exit_code < 0:
        return Death(say("engine.signal", "The engine was stopped by signal {number}.", number=-exit_code), "crash")
    return Death(say("engine.exit", "The engine stopped with exit code {code}; see its log for details.", code=exit_code or 0), "crash")


def describe_death(death: Death, progress: Progress) -> Died | None:
    """Return what the next attempt has to avoid; None if there is nothing to learn."""
    if death.fault is None:
        return None
    at = progress.step.done + 1 if progress.step is not None else None
    return Died(death.fault, at, str(death.sentence), progress.loading is not None)


def give_up_on_job(death: Death, lives: DeathRecord) -> Failed:
    return Failed(
        say(
            "job.given-up",
            "The engine crashed {deaths} {deaths:time|times} on this job without any progress, so the job was given up. "
            "Finished parts are kept. Try smaller settings or another model.",
            deaths=DEATHS,
        ),
        (death.sentence,),
        "go-on" if any(lives.reached.values()) else "report",
    )


def end_measuring(death: Death) -> Failed:
    """End a task; it has no partial results, so it is not retried automatically."""
    return Failed(
        say("measuring.died", "The engine crashed, so this was cancelled. Start it again if you still need it."),
        (death.sentence,),
        "report",
    )


def fail_start(log: Path, trouble: Death | None) -> Failed:
    """Fail a waiting job when the engine cannot start, instead of retrying forever."""
    return Failed(
        say("engine.no-start", "The engine cannot start on this machine. Press Repair to reinstall it; its log is {log}.", log=str(log)),
        (trouble.sentence,) if trouble else (),
        "repair",
    )


def explain_keeper_fault(fault: Exception, database: Path) -> Death:
    """Explain what prevents jobs from running when no engine died."""
    if isinstance(fault, sqlite3.Error):
        return explain_database_fault(database, fault)
    if isinstance(fault, OSError) and fault.filename:
        words: Sentence = say(
            "keeper.files",
            "Jobs cannot run: {file} cannot be used ({fault}). Fix that file's problem; waiting jobs then start by themselves.",
            file=str(fault.filename),
            fault=fault.strerror or type(fault).__name__,
        )
    else:
        words = say(
            "keeper.stumbled",
            "Jobs cannot run: {fault}. Hearth keeps trying and starts waiting jobs by itself. Please send a report.",
            fault=f"{type(fault).__name__}: {fault}"[:300],
        )
    return Death(words, "crash")


def explain_database_fault(file: Path, fault: Exception) -> Death:
    if not isinstance(fault, sqlite3.OperationalError):
        return Death(
            say(
                "keeper.database-broken",
                "Jobs cannot be saved in {file}: {fault}. Quit Hearth and start it again: it repairs the file.",
                file=str(file),
                fault=str(fault),
            ),
            "crash",
        )
    return Death(
        say(
            "keeper.database",
            "Jobs cannot be saved in {file}: {fault}. See that its disk works and has room, also within your quota, and that you may write "
            "there; the queue then resumes by itself.",
            file=str(file),
            fault=str(fault),
        ),
        "crash",
    )


def recall_progress(job: Job | None, made: Sequence[Creation], parts: tuple[PartDone, ...]) -> Progress:
    """Rebuild the progress of a job that only journal, shelf and its folder still know; one that nobody knows has failed."""
    files, elapsed_s = tuple(str(each.path) for each in made), max((each.elapsed_s for each in made), default=0.0)
    model = made[-1].model if made else ""
    if job is None:
        forgotten = say(
            "job.forgotten", "This has ended, and Hearth has no record of it any more. Look for its result on the shelf, or start it again."
        )
        return Progress(end=Failed(forgotten, files=files))
    if job.state in LIVE:
        return Progress()
    if job.state == "finished":
        return Progress(parts=parts, end=Finished(files, elapsed_s, 0.0, "", 0), model=model)
    if job.state == "stopped":
        return Progress(parts=parts, end=Stopped(files, elapsed_s), model=model)
    if job.state == "interrupted" and not job.words:
        ended = say("job.cut", "Hearth ended before this did. Resume goes on with it.")
    else:
        ended = say("job.ended", "This job has already ended: {words}", words=job.words or job.state)
    return Progress(parts=parts, end=Failed(ended, cure="go-on" if parts else "", files=files), model=model)
