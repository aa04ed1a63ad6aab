"""Bound what guests' files hold on disk: of one household and of all together, whichever link or login sent them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from app.base.path_checks import is_file
from app.base.regular_file import is_inside
from app.base.sentence import say_to_all
from app.base.trouble import TooMany, Trouble
from app.engine.keeper.job_folder import UPLOADS_S

HOUSEHOLD_BYTES: Final = 256 << 20
HOUSEHOLD_FILES: Final = 200
GUESTS_BYTES: Final = 1 << 30
GUESTS_FILES: Final = 1000
UNDER_WAY_OF_ONE: Final = 3
UNDER_WAY: Final = 16
"""So many uploads may arrive at once; each may hold request_guard.GUEST_BYTES more until it is counted."""


@dataclass(frozen=True, slots=True)
class Sent:
    household: str
    size: int
    sent_s: float


@dataclass(slots=True)
class GuestFiles:
    """All files under `folder` that guests sent, or that were written for a job of theirs, until they are a day old."""

    folder: Path
    list_needed: Callable[[], str] = str
    """It tells what jobs that may still run ask for, and names the folders of their files, which stay however old."""
    sent: dict[Path, Sent] = field(default_factory=dict)
    under_way: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def receiving(self, household: str) -> Iterator[None]:
        """Hold one of the places for uploads under way; raise Trouble if there is none, or no room to keep the file."""
        with self.lock:
            self._drop_old(time.time())
            self._require_room(household, 1)
            if self.under_way[household] >= UNDER_WAY_OF_ONE or self.under_way.total() >= UNDER_WAY:
                raise TooMany(say_to_all("upload.busy", "Too many uploads at once. Wait for one to finish, then send this again."))
            self.under_way[household] += 1
        try:
            yield
        finally:
            with self.lock:
                self.under_way -= Counter({household: 1})  # drops those at zero

    def add(self, household: str, paths: Iterable[Path]) -> None:
        """Count new files of a household, or raise Trouble and count none. One that was sent before stays a day longer."""
        now_s = time.time()
        with self.lock:
            files = {each: Sent(household, each.stat().st_size, now_s) for each in paths if each.is_file()}
            self._drop_old(now_s, files)
            new = {path: file for path, file in files.items() if path not in self.sent}
            self._require_room(household, sum(each.size for each in new.values()), len(new))
            self.sent |= new | {path: replace(self.sent[path], sent_s=now_s) for path in files if path in self.sent}

    def discard_unknown(self, paths: Iterable[Path]) -> None:
        """Delete files that were written for a request which was then refused, and that no other job needs: they are named by their content.
        A guest may have named any path."""
        sent, needed = {each.resolve() for each in [*self.sent]}, self.list_needed()
        for file in (path.resolve() for path in paths if is_file(path)):
            if file not in sent and is_inside(file, self.folder) and file.parent.name not in needed:
                file.unlink(missing_ok=True)

    def _drop_old(self, now_s: float, sent_again: Collection[Path] = ()) -> None:
        """Forget files that are a day old or gone, and delete them, except what a job still needs, and what was just sent
        again: its path is the same."""
        old = [each for each, file in self.sent.items() if now_s - file.sent_s > UPLOADS_S or not each.exists()]
        needed = self.list_needed() if old else ""
        for path in old:
            if path.exists() and path.parent.name in needed:
                continue
            del self.sent[path]
            if path not in sent_again:
                path.unlink(missing_ok=True)

    def _require_room(self, household: str, more: int, files: int = 1) -> None:
        own = [each.size for each in self.sent.values() if each.household == household]
        everyones = [each.size for each in self.sent.values()]
        if sum(own) + more > HOUSEHOLD_BYTES or len(own) + files > HOUSEHOLD_FILES:
            raise Trouble(
                say_to_all(
                    "upload.full",
                    "You have used your upload space ({most} MB, {files} {files:file|files}). Use the files you sent, or come back tomorrow.",
                    most=HOUSEHOLD_BYTES >> 20,
                    files=HOUSEHOLD_FILES,
                )
            )
        if sum(everyones) + more > GUESTS_BYTES or len(everyones) + files > GUESTS_FILES:
            raise Trouble(
                say_to_all("upload.all-full", "Guests have used all of their upload space. Use the files you sent, or come back tomorrow.")
            )
