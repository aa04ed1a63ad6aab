"""Folders on another disk: moved there whole, with a link in their place, so that every path stays what it was.

At each moment one whole copy has a name that `mend` knows: a kill, a full disk or a pulled plug leaves the folder where it was, or where it goes."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from app.base.disk_faults import is_disk_full, word_fault
from app.base.sentence import Sentence, say
from app.base.trouble import DiskFull, Trouble

COPYING, WHOLE, LEFT = "copying", "whole", "left"
"""A hidden name beside a folder ends so: that of a copy that a process makes, one that is whole and checked, and what was copied and is now
deleted."""
HERE: Final = "here"
"""A link that is to replace another has a hidden name that ends so."""
MOVED: Final = "Hearth"
"""On another disk, a folder of this name holds what was moved there."""
MARK: Final = ".moved-by-hearth"
"""A file of this name in a folder on another disk says by an id which folder it is; the note beside the link has the same id."""
NOTE: Final = "moved"
"""The hidden name of the note ends so."""
DATABASE: Final = "hearth.sqlite3"
"""A folder with a file of this name is a home of Hearth."""
BLOCK_BYTES: Final = 1 << 22
SPARE_BYTES: Final = 256 << 20
"""So much stays free on the disk that a folder goes to."""
Stamp = tuple[int, int]
"""Its size and its time change with a file."""


class CancelledError(Exception):
    pass


def is_away(folder: Path) -> bool:
    """Tell whether a folder lies on another disk that is not connected now."""
    return os.path.lexists(folder) and not folder.exists()


def find_target(folder: Path) -> Path | None:
    """Return where a folder lies whose place holds a link."""
    try:
        return folder.parent / str(folder.readlink()).removeprefix("\\\\?\\")
    except (OSError, ValueError):  # a folder of its own, or none
        return None


def delete(folder: Path) -> None:
    """Delete a folder; of a link to one what it leads to as well, where a move put it. Where a person made the link, the rest is theirs."""
    target = find_target(folder)
    if target is None or MOVED in (target.parent.name, target.parent.parent.name):
        shutil.rmtree(folder.resolve())
    if target is not None:
        _unlink(folder)
        _drop_note(folder)


def word_away(folder: Path) -> Sentence:
    return say(
        "disk.away",
        "{folder} lies on another disk, at {target}, which is not connected. Connect it: nothing is lost, and all is there again at once. If it is "
        "connected at another place, say where, on the Machine tab under “The disk”.",
        folder=str(folder),
        target=str(find_target(folder) or folder),
    )


def refuse_away(folder: Path) -> None:
    """Raise a Trouble where a folder cannot be reached now, before anything takes it for empty."""
    if is_away(folder):
        raise Trouble(word_away(folder))


def hidden(folder: Path, ending: str) -> Path:
    return folder.with_name(f".{folder.name}.{ending}")


def _copying(folder: Path) -> Path:
    return hidden(folder, f"{COPYING}-{os.getpid()}")


def _discard_dead(folder: Path) -> None:
    """Delete the copies of processes that were killed."""
    for each in folder.parent.glob(f".{glob.escape(folder.name)}.{COPYING}-*"):
        process = each.name.rpartition("-")[2]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            _discard(each)


def measure(folder: Path) -> int:
    """Return how many bytes a folder takes; what has several names counts once."""
    found: dict[tuple[int, int], int] = {}
    for file in _list_files(folder):
        with suppress(OSError):
            facts = file.lstat()
            found[facts.st_dev, facts.st_ino or hash(file)] = facts.st_size
    return sum(found.values())


def _list_files(folder: Path) -> Iterator[Path]:
    """Walk files and links, but into no link, and pass the mark; a folder that vanishes meanwhile is none."""
    for where, folders, names in os.walk(folder):
        links = [each for each in folders if Path(where, each).is_symlink()]
        yield from (Path(where, name) for name in (*names, *links) if name != MARK)


def _stamp_all(folder: Path) -> dict[str, Stamp]:
    stamps = {}
    for file in _list_files(folder):
        with suppress(FileNotFoundError):
            facts = file.lstat()
            stamps[file.relative_to(folder).as_posix()] = facts.st_size, facts.st_mtime_ns
    return stamps


def move(folder: Path, target: Path, tell: Callable[[int], None] = lambda _: None, halt: threading.Event | None = None) -> None:
    """Copy a folder to another disk, compare the copy, put a link in its place, and delete what was copied. `tell` hears of each stretch that was
    written. Raise a Trouble, with all as it was, where it cannot be done; CancelledError once `halt` is set before the link is there."""
    halt = halt or threading.Event()
    if find_target(folder) is not None:
        raise Trouble(say("disk.moved-already", "{folder} already lies on another disk. Bring it back first.", folder=str(folder)))
    if target.resolve().is_relative_to(folder.resolve()) or (os.path.lexists(target) and not _is_empty(target)):
        raise Trouble(say("disk.taken", "There is something at {target} already. Choose another folder.", target=str(target)))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        copied = _copy_whole(folder, target, tell, halt)
        id_ = uuid.uuid4().hex
        (hidden(target, WHOLE) / MARK).write_text(id_, "utf-8")
        _write_note(folder, {"id": id_})
        folder.rename(hidden(folder, LEFT))
        try:
            _link(target, folder)
            _remove_empty(target)
            hidden(target, WHOLE).rename(target)
        except OSError:
            if os.path.lexists(folder):
                _unlink(folder)
            hidden(folder, LEFT).rename(folder)
            raise
    except OSError as fault:
        _discard(hidden(target, WHOLE))
        _drop_note(folder)
        raise _explain(folder, target, fault) from fault
    _pour(hidden(folder, LEFT), folder, copied)


def bring_back(folder: Path, tell: Callable[[int], None] = lambda _: None, halt: threading.Event | None = None) -> None:
    """Copy a folder that lies on another disk back into its place, compare the copy, and delete the other."""
    target = find_target(folder)
    if target is None:
        raise Trouble(say("disk.not-away", "{folder} does not lie on another disk.", folder=str(folder)))
    refuse_away(folder)
    try:
        copied = _copy_whole(target, folder, tell, halt or threading.Event())
        folder.rename(hidden(folder, LEFT))
        hidden(folder, WHOLE).rename(folder)
    except OSError as fault:
        mend(folder)
        raise _explain(target, folder, fault) from fault
    _drop_note(folder)
    _pour(hidden(folder, LEFT), folder, copied)


def point_to(folder: Path, place: Path, is_known: Callable[[Path], bool] = lambda _: False) -> None:
    """Let the link of a folder lead to where its disk is now: `place` is that disk, the folder itself, or one between them. `is_known` tells of a folder
    without a mark whether it is this one. Raise a Trouble where the disk is connected, unless this chose it, or the folder is not there."""
    gone, note = find_target(folder), _read_note(folder)
    if gone is None or not (is_away(folder) or "was" in note):
        raise Trouble(say("disk.not-gone", "{folder} can be reached where it is.", folder=str(folder)))
    first = Path(note.get("was", gone))
    parts = [part for part in first.parts if part != first.anchor]
    ends = (place.joinpath(*parts[-length:]) for length in range(len(parts), 0, -1))
    chosen = (*ends, *((place,) if place.name == first.name else ())) if place.is_absolute() else ()
    found = next((each for each in chosen if _is_it(each, folder, note.get("id", ""), is_known)), None)
    if found is None:
        raise Trouble(
            say(
                "disk.not-there",
                "In {place} there is nothing that was in {target}. Choose the disk that it lies on now, or the folder {name} there.",
                place=str(place),
                target=str(first),
                name=first.name,
            )
        )
    link = hidden(folder, HERE)
    if os.path.lexists(link):
        _unlink(link)
    try:
        _write_note(folder, {**note, "was": str(first)})
        _link(found, link)
        if sys.platform == "win32":  # it puts nothing in the place of a junction
            _unlink(folder)
        link.replace(folder)
    except OSError as fault:
        if not os.path.lexists(folder):
            _link(gone, folder)
        raise _explain(folder, found, fault) from fault


def _is_it(found: Path, folder: Path, id_: str, is_known: Callable[[Path], bool]) -> bool:
    """Tell whether a folder on a disk is the one that was moved there: no other home's, none of the same name, none around the home itself."""
    with suppress(OSError, ValueError):  # a name too long, or a folder that one may not enter
        real = found.resolve()
        if not found.is_dir() or folder.parent.resolve().is_relative_to(real):
            return False
        mark = (found / MARK).read_text("utf-8") if (found / MARK).is_file() else ""
        if id_:
            return mark == id_
        return not any((above / DATABASE).exists() for above in (*found.parents[:2], *real.parents[:2])) and is_known(found)
    return False


def _read_note(folder: Path) -> dict[str, str]:
    """Return the id of what was moved, and as `was` where to, once it was pointed elsewhere."""
    with suppress(OSError, ValueError):
        note = json.loads(hidden(folder, NOTE).read_text("utf-8"))
        return {str(key): str(each) for key, each in note.items()} if isinstance(note, dict) else {}
    return {}


def _write_note(folder: Path, note: dict[str, str]) -> None:
    hidden(folder, NOTE).write_text(json.dumps(note), "utf-8")


def _drop_note(folder: Path) -> None:
    with suppress(OSError):
        hidden(folder, NOTE).unlink(missing_ok=True)


def mend(folder: Path) -> None:
    """Finish, or take back, what a killed process left of a move."""
    left, whole = hidden(folder, LEFT), hidden(folder, WHOLE)
    with suppress(OSError):  # another process mends it, or the disk refuses: the next start tries again
        if not os.path.lexists(folder):
            for there in (left, whole):
                if there.is_dir():
                    there.rename(folder)
                    break
        link = hidden(folder, HERE)
        if os.path.lexists(link):
            if os.path.lexists(folder):
                _unlink(link)
            else:
                link.rename(folder)
        target = find_target(folder)
        if target is not None and left.is_dir() and hidden(target, WHOLE).is_dir() and not os.path.lexists(target):
            hidden(target, WHOLE).rename(target)
        if target is None:
            _drop_note(folder)
        if left.is_dir() and folder.exists():
            _pour(left, folder, {})
        if os.path.lexists(folder):
            _discard(whole)
        _discard_dead(folder)


def mend_all(*folders: Path) -> None:
    """Mend what lies in these folders."""
    for inside in folders:
        with suppress(OSError):
            names = {
                each.name[1:].rpartition(".")[0]
                for ending in (LEFT, WHOLE, HERE, NOTE, f"{COPYING}-*")
                for each in inside.glob(f".*.{ending}")
            }
            for name in names:
                mend(inside / name)


def _copy_whole(folder: Path, target: Path, tell: Callable[[int], None], halt: threading.Event) -> dict[str, Stamp]:
    """Make a whole and checked copy under a hidden name beside `target`; return what was copied, as it was then."""
    copying = _copying(target)
    _discard_dead(target)
    _discard(copying, hidden(target, WHOLE))
    needed, free = measure(folder), shutil.disk_usage(target.parent).free
    if needed + SPARE_BYTES > free:
        raise DiskFull(
            say(
                "disk.no-room-there",
                "{folder} takes {needed} GB, but only {free} GB are free where it is to go. Free some space there, or choose another disk.",
                folder=str(folder),
                needed=round(needed / 1e9, 1),
                free=round(free / 1e9, 1),
            )
        )
    try:
        copying.mkdir()
        copied, digests = _copy_all(folder, copying, tell, halt)
        _sync_folders(copying)
        for name, digest in digests.items():
            if halt.is_set():
                raise CancelledError
            if _hash(copying / name) != digest:
                raise OSError(None, "what was written reads differently", str(copying / name))
        copying.rename(hidden(target, WHOLE))
    except BaseException:
        _discard(copying)
        raise
    return copied


def _copy_all(folder: Path, to: Path, tell: Callable[[int], None], halt: threading.Event) -> tuple[dict[str, Stamp], dict[str, str]]:
    """Copy files with their times, and links as links; return what was copied, and the hash of each file. A disk without links gets the files
    that links lead to, under the names of the links alone."""
    takes_links = _takes_links(to)
    led_to = set() if takes_links else {os.path.realpath(each) for each in _list_files(folder) if each.is_symlink()}
    copied: dict[str, Stamp] = {}
    digests: dict[str, str] = {}
    made: dict[tuple[int, int], str] = {}
    for file in _list_files(folder):
        name, place = file.relative_to(folder).as_posix(), to / file.relative_to(folder)
        try:
            own, facts = file.lstat(), file.stat()
        except OSError:  # removed meanwhile, or a link to what was
            continue
        copied[name] = own.st_size, own.st_mtime_ns
        if not file.is_symlink() and os.path.realpath(file) in led_to:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        first = made.get((facts.st_dev, facts.st_ino)) if facts.st_nlink > 1 and facts.st_ino and takes_links else None
        if file.is_symlink() and takes_links:
            place.symlink_to(file.readlink())
        elif first is not None:
            place.hardlink_to(to / first)
        else:
            digests[name] = _copy(file, place, tell, halt)
            made[facts.st_dev, facts.st_ino] = name
    return copied, digests


def _sync_folders(top: Path) -> None:
    """Have names on the disk, too, where a system lets a program wait for that."""
    if os.name != "nt":
        for where, _, _ in os.walk(top):
            held = os.open(where, os.O_RDONLY)
            with suppress(OSError):  # some disks take none
                os.fsync(held)
            os.close(held)


def _copy(file: Path, place: Path, tell: Callable[[int], None], halt: threading.Event) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as source, place.open("wb", buffering=0) as out:
        while block := source.read(BLOCK_BYTES):
            if halt.is_set():
                raise CancelledError
            out.write(block)
            digest.update(block)
            tell(len(block))
        os.fsync(out.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # so that the check reads the disk, not memory
    shutil.copystat(file, place)
    return digest.hexdigest()


def _hash(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _takes_links(folder: Path) -> bool:
    """Tell whether a disk has links; many that are carried about have none."""
    probe = folder / ".link"
    try:
        probe.symlink_to("nothing")
        probe.unlink()
    except OSError:
        return False
    return True


def _pour(left: Path, into: Path, copied: dict[str, Stamp]) -> None:
    """Delete what was copied, file by file; what came or changed since goes along first, beside what has its name. What cannot be done now is
    left for `mend`."""
    with suppress(OSError):
        for file in sorted(_list_files(left)):
            name = file.relative_to(left)
            with suppress(FileNotFoundError):
                facts = file.lstat()
                if copied.get(name.as_posix()) != (facts.st_size, facts.st_mtime_ns):
                    _follow(file, into / name)
                file.unlink()
        target = find_target(left)
        if target is not None:
            _unlink(left)
        _remove_empty(target or left)


def _follow(file: Path, place: Path) -> None:
    """Bring a file to where the others went, unless it is there."""
    if file.is_symlink():
        if not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(file.readlink())
    elif not _is_same(file, place):
        place = _find_free(place) if os.path.lexists(place) else place
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = _copying(place)
        _copy(file, unfinished, lambda _: None, threading.Event())
        unfinished.replace(place)


def _is_same(file: Path, place: Path) -> bool:
    if not place.is_file():
        return False
    return file.stat().st_size == place.stat().st_size and _hash(file) == _hash(place)


def _find_free(place: Path) -> Path:
    number = 2
    while os.path.lexists(free := place.with_name(f"{place.stem} {number}{place.suffix}")):
        number += 1
    return free


def _is_empty(folder: Path) -> bool:
    """Tell whether there is nothing but folders."""
    return folder.is_dir() and next(_list_files(folder), None) is None


def _remove_empty(top: Path) -> None:
    (top / MARK).unlink(missing_ok=True)
    for where, _, _ in os.walk(top, topdown=False):
        Path(where).rmdir()


def _discard(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _link(target: Path, place: Path) -> None:
    """Put a link to a folder in its place: on Windows a junction, which needs no rights of an administrator."""
    if sys.platform == "win32":
        import _winapi

        _winapi.CreateJunction(str(target), str(place))
    else:
        place.symlink_to(target, target_is_directory=True)


def _unlink(place: Path) -> None:
    if sys.platform == "win32":
        place.rmdir()
    else:
        place.unlink()


def _explain(folder: Path, target: Path, fault: OSError) -> Trouble:
    figures = {"folder": str(folder), "target": str(target.parent), "fault": word_fault(fault)}
    if is_disk_full(fault):
        return DiskFull(
            say("disk.filled", "{folder} was not moved: the disk with {target} is full ({fault}). All is as it was.", **figures)
        )
    return Trouble(
        say(
            "disk.not-moved",
            "{folder} was not moved to {target} ({fault}). All is as it was. See that the disk is connected and that you may write there, and that "
            "no other program uses these files.",
            **figures,
        )
    )
