"""Look at local models beside whoever asks: each path in a thread of its own, with a deadline, as a dead disk never answers.

What was found is kept until a file changes, so that looking again reads no file."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Final, NamedTuple

from app.base.path_checks import find_path
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.models.beside import list_neighbours
from app.engine.models.detect import detect_model
from app.engine.models.model import Companion, Model
from app.engine.models.voice_limits import VoiceLimits, read_limits

WAIT_S: Final = 4.0
"""Somebody waits this long for a path that is looked at. After that nobody does, until its disk has answered."""
THREADS_MOST: Final = 64
"""So many looks may hang at once. None can be ended: not even a signal reaches a thread that waits for a dead disk."""
AT_ONCE: Final = 32
"""So many looks are begun together; the next begin when these have answered, or nobody waits any longer."""
KEPT_MOST: Final = 2048
FILES_MOST: Final = 20_000
"""At most so many files of a model are counted; what lies beyond is not."""

_log = logging.getLogger("hearth")
_Catalog = tuple[Mapping[str, Model], Mapping[str, Companion]]


class _File(NamedTuple):
    """What changes with a file."""

    name: str
    plain: bool
    """True: it takes room itself, as a link does not."""
    device: int
    number: int
    bytes: int
    modified_ns: int
    changed_ns: int


_State = tuple[_File, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a path found."""

    answers: bool = True
    """False: its disk has not answered. The rest is then what was found last."""
    there: bool = False
    model: Model | None = None
    trouble: Trouble | None = None
    """It says why what is there cannot be used."""
    bytes: int = 0
    limits: VoiceLimits | None = None
    """It says what a voice can take, where the model is one."""

    def require_model(self) -> Model:
        """Return the model; raise a Trouble if it cannot be used."""
        if self.trouble is not None:
            raise copy(self.trouble)
        assert self.model is not None, "nothing is there"
        return self.model


@dataclass(slots=True)
class _Look:
    ended: threading.Event = field(default_factory=threading.Event)
    seen: Seen = Seen()
    late: bool = False
    """True: somebody waited in vain."""


_lock = threading.Lock()
_looks: Final[dict[str, _Look]] = {}
"""These still run."""
_kept: Final[dict[str, tuple[_State, Seen]]] = {}


def look(wanted: str, catalog: _Catalog, wait_s: float = WAIT_S) -> Seen:
    """Return what lies at a path, as its files are now; or what was last known, if its disk does not answer in time."""
    return look_at_all([wanted], catalog, wait_s)[wanted]


def look_at_all(wanted: Iterable[str], catalog: _Catalog, wait_s: float = WAIT_S) -> dict[str, Seen]:
    """Look at several paths at once; all together take no longer than one."""
    until_s, found, left = time.monotonic() + wait_s, dict[str, Seen](), iter(dict.fromkeys(wanted))
    while some := tuple(islice(left, AT_ONCE)):
        looks = {each: _begin(each, catalog) for each in some}
        found |= {each: _wait(each, running, until_s) for each, running in looks.items()}
    return found


def _begin(wanted: str, catalog: _Catalog) -> _Look | None:
    """Return the look at a path that runs already, or begin one; None where too many hang."""
    with _lock:
        running = _looks.get(wanted)
        if running is None and len(_looks) < THREADS_MOST:
            running = _looks[wanted] = _Look()
            threading.Thread(target=_run, args=(wanted, running, catalog), name="local-model", daemon=True).start()
        return running


def _wait(wanted: str, running: _Look | None, until_s: float) -> Seen:
    if running is not None:
        if running.ended.wait(0 if running.late else max(0.0, until_s - time.monotonic())):
            return running.seen
        running.late = True
    _, known = _kept.get(wanted, ((), Seen(trouble=_refuse_silent(wanted))))
    return replace(known, answers=False, trouble=_refuse_silent(wanted))


def _refuse_silent(wanted: str) -> Trouble:
    return Trouble(
        say(
            "local.silent",
            "The disk of {path} does not answer, so the model there cannot be used now. Check the disk or the network; Hearth uses it again when it answers.",
            path=wanted,
        )
    )


def _run(wanted: str, running: _Look, catalog: _Catalog) -> None:
    try:
        running.seen = _look(wanted, catalog)
    except Exception as fault:  # whatever others wrote: it makes one model unusable, and nothing else
        _log.exception("the local model %r", wanted)
        running.seen = Seen(there=True, trouble=_refuse_strange(wanted, fault))
    finally:
        with _lock:
            _looks.pop(wanted, None)
        running.ended.set()


def _refuse_strange(wanted: str, fault: Exception) -> Trouble:
    return Trouble(
        say(
            "local.strange",
            "The model in {path} cannot be used: reading it failed ({fault}). Download it again, or remove it from the list.",
            path=wanted,
            fault=type(fault).__name__,
        )
    )


def _look(wanted: str, catalog: _Catalog) -> Seen:
    path = find_path(wanted)
    if path is None:
        return Seen()
    state = _list_files(path)
    kept = _kept.get(wanted)
    if kept is None or kept[0] != state:
        size = sum({(each.device, each.number): each.bytes for each in state if each.plain}.values())
        kept = state, replace(_examine(path, catalog), bytes=size)
        with _lock:
            _kept.pop(wanted, None)
            _kept[wanted] = kept
            if len(_kept) > KEPT_MOST:
                del _kept[next(iter(_kept))]
    return kept[1]


def _list_files(path: Path) -> _State:
    """List a model's files; of a link, also where it leads; of a single file, also those beside it that may hold what it lacks."""
    inside = (Path(where, name) for where, _, names in os.walk(path) for name in names)
    found = []
    for file in islice(inside if path.is_dir() else [path], FILES_MOST):
        with suppress(OSError):  # it went just now, or a link leads nowhere
            own = file.lstat()
            found.append(_describe(file, own, S_ISREG(own.st_mode)))
            if S_ISLNK(own.st_mode):
                found.append(_describe(file, file.stat(), False))
    if not path.is_dir():
        found += [_describe(file, state, False) for file, state in list_neighbours(path)]
    return tuple(sorted(found))


def _describe(file: Path, at: os.stat_result, plain: bool) -> _File:
    return _File(str(file), plain, at.st_dev, at.st_ino or hash(file), at.st_size, at.st_mtime_ns, at.st_ctime_ns)


def _examine(path: Path, catalog: _Catalog) -> Seen:
    try:
        model = detect_model(path, *catalog)
        limits = read_limits(path, family=model.family) if model.kind == "speech" else None
    except Trouble as trouble:
        return Seen(there=True, trouble=copy(trouble))
    return Seen(there=True, model=model, limits=limits)
