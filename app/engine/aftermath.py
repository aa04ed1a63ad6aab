"""What becomes of a job when its engine died, could not start, or is long gone: the next attempt, or the end that is told. Pure."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from app.engine.diagnosis import Death
from app.engine.event import Failed, Finished, Stopped
from app.engine.journal import Job
from app.engine.message import Died, Run
from app.engine.progress import Progress
from app.sentence import say


def safer(run: Run, death: Death, progress: Progress) -> Run:
    """The same once more; the engine plans it knowing what it died of."""
    step = progress.step.done + 1 if progress.step is not None else None
    return dataclasses.replace(run, died=Died(death.fault, step, str(death.sentence)))


def died_twice(death: Death, progress: Progress) -> Failed:
    return Failed(
        say("job.died-twice", "The engine died twice at this job, so it is not tried a third time. Parts that were finished are kept. Try smaller settings, or another model."),
        (death.sentence,), "report", tuple(part.path for part in progress.parts),
    )  # fmt: skip


def no_start(log: Path, trouble: Death | None) -> Failed:
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


def no_database(file: Path, fault: Exception) -> Death:
    return Death(
        say(
            "keeper.database",
            "Jobs cannot be written down in {file}: {fault}. Make room on that disk; what waits goes on by itself.",
            file=str(file),
            fault=str(fault),
        ),
        "crash",
    )


def recalled(known: Job, files: tuple[str, ...]) -> Progress:
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
