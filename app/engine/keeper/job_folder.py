"""Manage a job's own folder: move its results to the shelf, delete what was only for watching the run, remove old folders."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from app.base import atomic_write
from app.base.disk_faults import is_disk_full, word_fault
from app.base.sentence import say
from app.compat.planning.types import Plan
from app.engine.jobs.creation import RunSummary
from app.engine.jobs.events import Failed, Finished, Preview, Stopped
from app.engine.jobs.journal import Job, State
from app.engine.jobs.parts import DELIVERED, PAINTED, SPOKEN, drop_passing, move_in, read_machines
from app.engine.jobs.progress import Progress
from app.engine.jobs.shelf import Shelf
from app.engine.keeper.delivery import Delivery
from app.engine.kinds import kind_of

FOLDERS_KEPT = 30
"""So many folders of ended jobs are kept, beside those of scripts that have parts (kept_parts.py)."""
UPLOADS_S = 86_400
STATES: dict[type, State] = {Finished: "finished", Stopped: "stopped", Failed: "failed"}

End = Finished | Stopped | Failed


def move_to_shelf(shelf: Shelf, job: Job, event: End, progress: Progress, folder: Path) -> End:
    """Move the end's files to the shelf."""
    step, machines = progress.step, read_machines(folder) | read_machines(folder / DELIVERED)
    whole = isinstance(event, Finished) or kind_of(job.request).whole_parts
    made = RunSummary(
        model=progress.model,
        seconds=getattr(event, "seconds", 0.0),
        rate=step.rate if step else 0.0,
        unit=step.unit if step else "",
        elapsed_s=getattr(event, "elapsed_s", 0.0),
        highest_bytes=step.memory.highest_bytes if step else 0,
        whole=whole,
        plan=json.dumps(flatten_plan(progress.plan) | _name_speakers(folder, machines)),
        machines=machines,
    )
    try:
        kept = shelf.keep(job, [file for file in event.files if Path(file).is_file()], made)
    except (OSError, sqlite3.Error) as fault:
        if is_disk_full(fault):
            raise
        return Failed(
            say(
                "shelf.full",
                "The result is finished but could not be moved to {folder}: {fault}. You can find it in {where}.",
                folder=str(shelf.folder),
                fault=word_fault(fault),
                where=str(folder),
            ),
            cure="open-folder",
        )
    shutil.rmtree(folder / DELIVERED, ignore_errors=True)
    return dataclasses.replace(event, files=tuple(str(creation.path) for creation in kept))


def show_preview(folder: Path, preview: Preview) -> Preview:
    """Put another machine's preview into a job's folder."""
    path = folder / PAINTED.name_passing("elsewhere")
    atomic_write.put_in_place(Path(preview.path), path)
    return dataclasses.replace(preview, path=str(path))


def take_over_all(folder: Path, files: Mapping[str, Path], machine: str) -> tuple[str, ...]:
    """Put the results of a whole job into its folder; return them in order."""
    named = sorted(files.items(), key=lambda each: (len(each[0]), each[0]))
    return tuple(str(move_in(folder / DELIVERED, file, name, machine)) for name, file in named)


def _name_speakers(folder: Path, machines: Mapping[str, str]) -> dict[str, object]:
    """Name the other machines that spoke parts of a script, and say if this one spoke the rest."""
    parts = [each.name for each in SPOKEN.list_made(folder).values()]
    others = sorted({machines[name] for name in parts if name in machines})
    return {"machine": ", ".join(others), "partly": not machines.keys() >= {*parts}} if others else {}


def attach_delivery(event: Stopped | Failed, delivery: Delivery, folder: Path, died: bool) -> End:
    """Add the finished files to the end of a job. `died`: only an engine's death prevented it, so if nothing is missing
    the job is finished."""
    if died and delivery.whole:
        return Finished(delivery.files, 0.0, 0.0, "", 0, delivery.seconds)
    event = dataclasses.replace(event, files=delivery.files, seconds=delivery.seconds)
    if isinstance(event, Failed):
        event = dataclasses.replace(event, objections=(*event.objections, *delivery.describe_missing(folder)))
    return event


def remove_links(folder: Path) -> None:
    """Remove links in place of folders: Hearth makes none, and would move and delete what they lead to."""
    for pattern in ("*", f"*/{DELIVERED}"):
        for each in folder.glob(pattern):
            if each.is_symlink():
                each.unlink()


def list_folders(folder: Path) -> list[Path]:
    """List the folders in a folder; no links, as `remove_links`."""
    return [each for each in folder.iterdir() if each.is_dir() and not each.is_symlink()] if folder.is_dir() else []


def drop_all_passing(jobs: Path, live: Collection[str]) -> None:
    """Remove previews and sound pieces that nobody looks at any more. `live`: jobs waiting or running, here or in another process."""
    for folder in list_folders(jobs):
        if folder.name not in live:
            drop_passing(folder)


def remove_old_folders(jobs: Path, needed: Collection[str]) -> None:
    """Remove the folders of jobs that ended, but for the newest."""
    folders = sorted(list_folders(jobs), key=_changed_s)
    for folder in [each for each in folders if each.name not in needed][:-FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


def _changed_s(folder: Path) -> float:
    """Return when a folder was changed; now, if another process has just removed it."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return time.time()


def tidy_uploads(uploads: Path, needed: str) -> None:
    """Delete uploads after a day, unless a job that may still run needs their folder (`needed`)."""
    for folder in list_folders(uploads):
        if folder.name not in needed and time.time() - _changed_s(folder) > UPLOADS_S:
            shutil.rmtree(folder, ignore_errors=True)


def flatten_plan(plan: Plan | None) -> dict[str, object]:
    """Reduce a plan to what a row of the shelf stores; the reasons can be computed again."""
    if plan is None:
        return {}
    left_out = {"because", "rejected", "warnings"}
    return {
        field.name: value
        for field in dataclasses.fields(plan)
        if field.name not in left_out and isinstance(value := getattr(plan, field.name), str | int | bool | None)
    }
