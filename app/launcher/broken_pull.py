"""Bring a clone back whose update was killed while git wrote the newer files, so that the code was neither the older nor the newer one.

`start.py` asks for it before it imports anything else of Hearth's, which may be half of each. Standard library only. What is written over or
removed is a newer or an older file from its beginning, so nothing that the owner wrote is lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from app.launcher import slots
from app.launcher.console import WINDOWS

PULLING: Final = "pulling"
"""A note in the environment's folder of what git is about to write; it stays only where that was killed."""
LOCK: Final = "pull"
"""Held while there is such a note and its git lives. Windows removes no file that another start has open, so this one stays."""
# No process of git's may go on and hold the lock, and the owner's changes stay where they are.
KEEP: Final = ("gc.auto=0", "maintenance.auto=false", "core.fsmonitor=false", "merge.autoStash=false")
MERGE: Final = [*(word for each in KEEP for word in ("-c", each)), "merge", "--ff-only", "--quiet"]


class Change(NamedTuple):
    """One file of an update. What is not there has zeros."""

    mode: str
    newer_mode: str
    blob: str
    newer_blob: str
    name: str


class Note(NamedTuple):
    before: str
    after: str
    mine: list[str]
    """Files that were not as in `before` already, so they are the owner's."""


def pull(folder: Path) -> subprocess.CompletedProcess[str]:
    with slots.lock(folder, name=LOCK) as held:
        try:
            _mend(folder)  # where this start could not, or half files would count as the owner's
        except (OSError, subprocess.CalledProcessError) as fault:
            return subprocess.CompletedProcess((), 1, "", os.fsdecode(getattr(fault, "stderr", None) or str(fault)))
        done = git("fetch", "--quiet")
        if done.returncode or (done := git("rev-parse", "HEAD", "@{upstream}")).returncode:
            return done
        before, after = done.stdout.split()
        if (done := git("diff", "-z", "--name-only", "--no-renames", "HEAD")).returncode:
            return done
        mine = done.stdout.split("\0")[:-1]
        # What is in git's way, and what a sparse checkout leaves out.
        mine += [each.name for each in _list_changes(before, after) if _is_there(each.blob) != os.path.lexists(slots.TOP / each.name)]
        slots.replace_text(folder / PULLING, json.dumps(Note(before, after, mine)))
        done = git(*MERGE, after, held=() if WINDOWS else (held,))
        if not done.returncode:
            (folder / PULLING).unlink()
    if done.returncode:  # on a full disk after some files
        mend()
    return done


def mend() -> bool:
    """Write the older files again that git was writing over; return whether the code may be another than when this start began."""
    folder = slots.find_made()
    if folder is None or not (folder / PULLING).is_file():
        return False
    try:
        with slots.lock(folder, name=LOCK):
            return _mend(folder)
    except (OSError, subprocess.CalledProcessError):  # also where there is no git: no start fails by it
        return False


def _mend(folder: Path) -> bool:
    note = _read_note(folder)  # under the lock: another start may just have done it
    here = git("rev-parse", "HEAD").stdout.strip()
    if note and not here:  # a git that does not work; the note stays
        return False
    if note and here == note.before:  # else git was through, or the owner went on since
        _put_back(note)
    (folder / PULLING).unlink(missing_ok=True)
    return True


def _read_note(folder: Path) -> Note | None:
    try:
        before, after, mine = json.loads((folder / PULLING).read_text("utf-8"))
        fits = all(re.fullmatch("[0-9a-f]{40,}", each) for each in (before, after))
        return Note(before, after, list(mine)) if fits else None
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _put_back(note: Note) -> None:
    changes = [each for each in _list_changes(note.before, note.after) if each.name not in note.mine]
    compared = git(
        "diff", "-z", "--name-only", "--no-renames", note.before
    )  # all at once: Windows takes a while to start a git for each of a thousand
    compared.check_returncode()
    touched = {*compared.stdout.split("\0")}
    broken = [each for each in changes if (each.name in touched or not _is_there(each.blob)) and _is_gits(each)]
    _unlock([slots.TOP / each.name for each in broken])
    for each in broken:
        if not _is_there(each.blob):
            (slots.TOP / each.name).unlink()
            with contextlib.suppress(OSError):
                os.removedirs((slots.TOP / each.name).parent)  # a file of before may have had such a folder's name
    # Also what a file's newer name was in the way of, on a disk to which a and A are one.
    back = [each for each in changes if _is_there(each.blob) and (each in broken or not os.path.lexists(slots.TOP / each.name))]
    if broken:  # git's own list has the newer files only if it had written all of them
        listed = "".join(f"{each.mode} {each.blob}\t{each.name}\0" for each in (*broken, *back))
        git("update-index", "-z", "--index-info", given=listed)
    with tempfile.TemporaryDirectory() as room:  # a list of files of its own, because the owner's may be locked
        index = str(Path(room) / "index")
        git("read-tree", note.before, index=index).check_returncode()
        names = "".join(f"{each.name}\0" for each in back)
        git("checkout-index", "--force", "-z", "--stdin", given=names, index=index).check_returncode()
    git("update-index", "-q", "--refresh")


def _unlock(changed: list[Path]) -> None:
    """Remove the lock of the git that was killed. It is as old as the first file that it wrote or took away, and empty until after the last; any
    other may be that of a commit whose message the owner is writing."""
    lock = slots.TOP / git("rev-parse", "--git-path", "index.lock").stdout.strip()
    times = [next(each for each in (file, *file.parents) if each.exists()).stat().st_mtime_ns for file in changed]
    if times and lock.is_file() and not lock.stat().st_size and lock.stat().st_mtime_ns <= min(times):
        lock.unlink()


def _is_gits(change: Change) -> bool:
    """Return whether git, which takes a file away and writes the newer one, or here the older one again, has begun to: what the owner wrote since is
    another."""
    file = slots.TOP / change.name
    if not os.path.lexists(file):
        return _is_there(change.blob)
    if file.is_symlink() or not file.is_file():
        return False
    older, newer = (_read_blob(blob) if _is_there(blob) else None for blob in (change.blob, change.newer_blob))
    found = _unify(file.read_bytes())
    if found == older:
        return newer is not None and change.mode != change.newer_mode
    return any(each is not None and each.startswith(found) for each in (older, newer))


def _list_changes(before: str, after: str) -> list[Change]:
    done = git("diff-tree", "-r", "-z", "--no-renames", before, after)
    done.check_returncode()
    words = done.stdout.split("\0")
    return [Change._make([*said[1:].split()[:4], name]) for said, name in zip(words[::2], words[1::2], strict=False)]


def _is_there(blob: str) -> bool:
    return bool(blob.strip("0"))


def _read_blob(blob: str) -> bytes:
    return _unify(subprocess.run(["git", "-C", str(slots.TOP), "cat-file", "blob", blob], capture_output=True, check=True).stdout)


def _unify(content: bytes) -> bytes:
    """Windows' git writes other ends of lines than it keeps."""
    return content.replace(b"\r\n", b"\n").removesuffix(b"\r")


def git(*words: str, given: str | None = None, index: str = "", held: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run git, in English, which `find_reason` reads; it keeps what is `held` open while it lives."""
    return subprocess.run(
        ["git", "-C", str(slots.TOP), *words],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        input=given,
        env={**os.environ, "LC_ALL": "C", **({"GIT_INDEX_FILE": index} if index else {})},
        pass_fds=held,
    )
