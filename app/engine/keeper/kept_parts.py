"""The parts of scripts that ended stay, so that they can be heard, redone and gone on with: the newest, up to a limit."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from app.base.path_checks import is_file, size_bytes
from app.engine.jobs.journal import ENDED
from app.engine.jobs.parts import SPOKEN
from app.engine.keeper.disk_room import read_free_bytes
from app.engine.keeper.job_folder import list_folders, remove_old_folders
from app.engine.keeper.stores import Stores

MOST_BYTES: Final = 4_000_000_000
"""They hold hours of speech: about 12 of Dia's, 35 of the starter voice's."""
SHARE: Final = 0.1
"""They may take this share of what would be free without them, if that is less."""


@dataclass(frozen=True, slots=True)
class KeptParts:
    scripts: int
    bytes: int
    most_bytes: int


def has_parts(folder: Path) -> bool:
    return SPOKEN.has_made(folder)


def measure(stores: Stores) -> KeptParts:
    sizes = [size for _, size in _list_scripts(stores)]
    return KeptParts(len(sizes), sum(sizes), _limit_bytes(stores, sum(sizes)))


def tidy(stores: Stores, needed: Collection[str]) -> None:
    """Remove the oldest parts beyond the limit, never the newest script's, and old folders of all other jobs. `needed`: of jobs that
    may still run."""
    needed = {*needed, *_find_sources(stores, needed)}
    scripts = _list_scripts(stores)
    room = _limit_bytes(stores, sum(size for _, size in scripts))
    kept = set[str]()
    for folder, size in scripts:
        room -= size
        if room >= 0 or not kept or folder.name in needed:
            kept.add(folder.name)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    remove_old_folders(stores.jobs_folder, {*needed, *kept})


def drop(stores: Stores, jobs: Iterable[str], needed: Collection[str]) -> set[str]:
    """Remove the folders of jobs of which nothing is left on the shelf; return these jobs."""
    gone = {job for job in jobs if not stores.shelf.list_of_job(job)}.difference(needed, _find_sources(stores, needed))
    folders = [folder for folder in list_folders(stores.jobs_folder) if folder.name in gone]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return {folder.name for folder in folders}


def drop_all(stores: Stores, needed: Collection[str]) -> None:
    """Remove the parts of all scripts that ended."""
    needed = {*needed, *_find_sources(stores, needed)}
    for folder, _ in _list_scripts(stores):
        if folder.name not in needed:
            shutil.rmtree(folder, ignore_errors=True)


def _find_sources(stores: Stores, jobs: Iterable[str]) -> Iterator[str]:
    """Yield the jobs from whose folders these jobs take parts over."""
    for job in filter(None, map(stores.journal.find, jobs)):
        yield from (Path(path).parent.name for path in job.request.keep if path)


def list_clips(stores: Stores) -> list[str]:
    """List the recordings of voices that redoing or going on with these scripts needs."""
    jobs = (stores.journal.find(folder.name) for folder, _ in _list_scripts(stores))
    return [path for job in jobs if job for path in job.request.files]


def _list_scripts(stores: Stores) -> list[tuple[Path, int]]:
    """List the folders of scripts that ended and have parts, newest first, with what they take."""
    found = list[tuple[int, Path, int]]()
    for folder in list_folders(stores.jobs_folder):
        with contextlib.suppress(OSError, ValueError):  # another process removes it, or its name is no text
            if has_parts(folder) and _has_ended(stores, folder.name):
                changed_ns = folder.stat().st_mtime_ns
                found.append((changed_ns, folder, _sum_bytes(folder, changed_ns)))
    return [(folder, size) for _, folder, size in sorted(found, reverse=True)]


def _has_ended(stores: Stores, id_: str) -> bool:
    job = stores.journal.find(id_)
    return job is not None and job.state in ENDED


def _limit_bytes(stores: Stores, kept_bytes: int) -> int:
    return min(MOST_BYTES, int(SHARE * (read_free_bytes(stores.home.root) + kept_bytes)))


@lru_cache(maxsize=1024)
def _sum_bytes(folder: Path, _changed_ns: int) -> int:
    return sum(size_bytes(each) for each in folder.glob("*") if is_file(each))
