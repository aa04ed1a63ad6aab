"""What becomes of a job when its engine died, could not start, or is long gone: the next attempt, or the end that is told. Pure."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.engine.jobs.events import Failed, Finished, Stopped
from app.engine.jobs.journal import Job
from app.engine.jobs.progress import Progress
from app.engine.process.deaths import DEATHS, DeathRecord
from app.engine.process.diagnosis import Death
from app.sentence import Sentence, say


def give_up_on_job(death: Death, lives: DeathRecord) -> Failed:
    return Failed(
        say("job.given-up", "The engine died {deaths} times in a row at this job and finished nothing new in between, so the job was given up. What was finished is kept. Try smaller settings, or another model.", deaths=DEATHS),
        (death.sentence,), "go-on" if any(lives.reached.values()) else "report",
    )  # fmt: skip


def end_measuring(death: Death) -> Failed:
    """An errand finishes nothing on the way, so it is not tried again by itself."""
    return Failed(
        say("errand.died", "The engine died while measuring, so the measurement was ended. Start it again if you want it."),
        (death.sentence,), "report",
    )  # fmt: skip


def fail_start(log: Path, trouble: Death | None) -> Failed:
    """An engine that cannot even start fails what waits, instead of trying for ever."""
    return Failed(
        say(
            "engine.no-start",
            "The engine does not start on this machine. Its log is {log}; Repair sets it up anew.",
            log=str(log),
        ),
        (trouble.sentence,) if trouble else (),
        "repair",
    )


def explain_keeper_fault(fault: Exception, database: Path) -> Death:
    """What keeps jobs from running, though no engine died of it."""
    if isinstance(fault, sqlite3.Error):
        return explain_database_fault(database, fault)
    if isinstance(fault, OSError) and fault.filename:
        words: Sentence = say("keeper.files", "Jobs cannot run: {file} cannot be used ({fault}). Put that right; what waits goes on by itself.", file=str(fault.filename), fault=fault.strerror or type(fault).__name__)  # fmt: skip
    else:
        words = say("keeper.stumbled", "Jobs cannot run: {fault}. Hearth keeps trying, and what waits goes on by itself. Please send a report.", fault=f"{type(fault).__name__}: {fault}"[:300])  # fmt: skip
    return Death(words, "crash")


def explain_database_fault(file: Path, fault: Exception) -> Death:
    return Death(
        say(
            "keeper.database",
            "Jobs cannot be written down in {file}: {fault}. Make room on that disk; what waits goes on by itself.",
            file=str(file),
            fault=str(fault),
        ),
        "crash",
    )


def recall_progress(known: Job, files: tuple[str, ...]) -> Progress:
    """Of a job that only journal and shelf still know."""
    if known.state in ("queued", "running"):
        return Progress()
    if known.state == "finished":
        return Progress(end=Finished(files, 0.0, 0.0, "", 0))
    if known.state == "stopped":
        return Progress(end=Stopped(files, 0.0))
    return Progress(
        end=Failed(say("job.ended", "This job ended before: {words}", words=known.words or known.state), files=files)
    )
