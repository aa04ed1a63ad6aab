"""The disk, for the window: looked at in a thread once the owner asks, one thing moved at a time, and what may be deleted."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from app.base import other_disk
from app.base.extras import can_add
from app.base.other_disk import CancelledError
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.keeper.disk_use import (
    Double,
    Use,
    choose_target,
    find_doubles,
    find_use,
    is_known,
    keep_one,
    list_places,
    list_uses,
    read_place,
)
from app.engine.keeper.keeper import Keeper
from app.engine.models.downloads import Downloads
from app.ui.state.models_desk import ModelsDesk

BUSY: Final = say("disk.busy", "Something is being moved already. Wait for that, or cancel it.")
_log = logging.getLogger("hearth")


class DiskDesk:
    """Any thread may call. Only the owner's routes do."""

    def __init__(self, keeper: Keeper, models: ModelsDesk, downloads: Downloads, empty_bin: Callable[[], object]) -> None:
        self._keeper, self._models, self._downloads, self._empty = keeper, models, downloads, empty_bin
        self._lock, self._halt, self._closed = threading.Lock(), threading.Event(), threading.Event()
        self.uses: list[Use] | None = None
        self.doubles: list[Double] | None = None
        self.looking = self.comparing = False
        self.moving: Use | None = None
        self.done_bytes = 0
        self.told: Sentence | None = None
        """After a move or a deletion, it says what came of it."""
        self.failed = False

    def look(self) -> None:
        """Look anew, in the background, unless that is just being done."""
        with self._lock:
            if self.looking or self.comparing:
                return
            self.looking = True
        threading.Thread(target=self._look, name="disk", daemon=True).start()

    def _look(self) -> None:
        try:
            models = self._models.list_all()
            self.uses = list_uses(self._keeper.home, models, Path(sys.prefix).parent if can_add() else None)
            self.comparing, self.looking = True, False
            own = [Path(each.path) for each in models if each.is_local and not each.starter]
            self.doubles = find_doubles(self._keeper.home, models, self._closed, own)
        except CancelledError:
            pass
        except Exception:  # what others keep there changes as it is read
            _log.exception("looking at the disk")
        finally:
            self.looking = self.comparing = False

    def list_places(self) -> list[Path]:
        return list_places(self._keeper.home, {each.mountpoint: each.fstype for each in psutil.disk_partitions()})

    def move(self, name: str, place: str) -> None:
        """Begin to move something to a folder of another disk."""
        use, wanted = find_use(self._keeper.home, self._models.list_all(), name), read_place(place)
        target = choose_target(wanted, use)
        self._begin(use, lambda: other_disk.move(use.folder, target, self._count, self._halt))

    def bring_back(self, name: str) -> None:
        use = find_use(self._keeper.home, self._models.list_all(), name)
        other_disk.refuse_away(use.folder)
        self._begin(use, lambda: other_disk.bring_back(use.folder, self._count, self._halt))

    def point_to(self, name: str, place: str) -> None:
        """Say where the disk of something is now, which came back at another place."""
        use, now = find_use(self._keeper.home, self._models.list_all(), name), read_place(place)
        other_disk.point_to(use.folder, now, partial(is_known, self._keeper.home, use))
        self._tell(say("disk.found", "{name} is there again.", name=use.title))

    def _count(self, size_bytes: int) -> None:
        self.done_bytes += size_bytes

    def _begin(self, use: Use, run: Callable[[], None]) -> None:
        with self._lock:
            if self.moving is not None:
                raise Trouble(BUSY)
            self.moving, self.done_bytes, self.told, self.failed = use, 0, None, False
            self._halt.clear()
        if use.model:
            self._keeper.free()  # some systems move no file that is open
        threading.Thread(target=self._run, args=(use, run), name="move to another disk", daemon=True).start()

    def _run(self, use: Use, run: Callable[[], None]) -> None:
        try:
            run()
            self.told = say("disk.moved", "{name} is moved.", name=use.title)
        except CancelledError:
            self.told = say("disk.cancelled", "Cancelled. All is as it was.")
        except Trouble as trouble:
            self.told, self.failed = trouble.sentence, True
        finally:
            self.look()  # first: in between, a page would see all at rest with the rows of before
            self.moving = None

    def cancel(self) -> None:
        self._halt.set()

    def close(self) -> None:
        self._closed.set()
        self._halt.set()

    def keep_one(self, kept: str) -> None:
        """Let all names of a file that is there twice lead to one content."""
        double = next((each for each in self.doubles or () if str(each.kept) == kept), None)
        if double is None:
            raise Trouble(say("disk.no-double", "{file} is no longer there twice. Look again.", file=Path(kept).name))
        freed = keep_one(self._keeper.home, double)
        self._tell(say("disk.freed", "{size} GB are free again.", size=round(freed / 1e9, 2)))

    def delete(self, name: str) -> None:
        """Delete what a row holds for good, where that loses nothing that a person made."""
        if name in self._DELETIONS:
            self._DELETIONS[name](self)
        else:
            use = find_use(self._keeper.home, self._models.list_all(), name)
            model = next((each for each in self._models.list_all() if use.model and each.id == use.model), None)
            if model is None:
                raise Trouble(
                    say("disk.not-deleted", "Hearth does not delete this here. Open its folder, and delete there what you no longer need.")
                )
            self._downloads.remove(model, self._models.list_all())
        self._tell(say("disk.deleted", "Deleted."))

    def _tell(self, sentence: Sentence) -> None:
        self.told, self.failed = sentence, False
        self.look()

    def _empty_bin(self) -> None:
        self._empty()

    def _drop_parts(self) -> None:
        self._keeper.drop_parts()

    def _delete_damaged(self) -> None:
        for each in self._keeper.home.root.glob("*.damaged"):
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)

    _DELETIONS: Final = {"bin": _empty_bin, "parts": _drop_parts, "damaged": _delete_damaged}

    def can_delete(self, use: Use) -> bool:
        return use.name in self._DELETIONS or bool(use.model)
