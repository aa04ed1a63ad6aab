"""The local models that a main machine sent to this helper, by hash: bounded, tidied, and checked before any is used."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import NoRoom, Trouble
from app.engine.keeper.disk_room import MB
from app.engine.models import catalog, safetensors
from app.engine.models.on_disk import locate
from app.machines.tasks.fetched_files import odd_files
from app.machines.tasks.model_files import PREFIX, ModelFiles

GIB: Final = 1 << 30
MOST_BYTES: Final = 64 * GIB
"""The most bytes of all of them together."""
FREE_BYTES: Final = 10 * GIB
"""What a model, sent or downloaded for another machine, leaves free on the disk of this one."""
UNUSED_S: Final = 14 * 86_400
_UNFINISHED: Final = ".unfinished"


class SentModels:
    """A folder for each, named by its hash; the model lies in it under its title."""

    def __init__(self, home: Home) -> None:
        self._home, self._folder = home, home.scratch / "machines" / "models"

    def list_keys(self) -> list[str]:
        """Return those that are whole and can be loaded here."""
        whole = [each for each in self._list_folders() if not each.name.endswith(_UNFINISHED)]
        return [PREFIX + each.name for each in whole if (found := _find_in(each)) is not None and self._is_loadable(found)]

    def find(self, key: str, used: bool = False) -> Path | None:
        """Return where a model is; None if it is not here. `used`: it stays longer than others."""
        folder = self._folder / key.removeprefix(PREFIX)
        found = _find_in(folder)
        if found is not None and used:
            os.utime(folder)
        return found

    def unfinished(self, model: ModelFiles) -> Path:
        """Return where its files arrive, each under its hash."""
        return self._folder / f"{model.key.removeprefix(PREFIX)}{_UNFINISHED}"

    def choose_missing(self, model: ModelFiles, spare: Collection[Path] = ()) -> dict[str, int]:
        """Return the files that have not arrived, each hash with its size. Make room by deleting what was unused for longest, but for
        what is in `spare`; raise Trouble if there is not enough."""
        arriving = self.unfinished(model)
        missing = {sha256: size for sha256, size in model.files.values() if not (arriving / sha256).is_file()}
        arriving.mkdir(parents=True, exist_ok=True)
        others = sorted((each for each in self._list_folders() if each != arriving), key=lambda each: each.stat().st_mtime)
        deletable = [each for each in others if not any(path.is_relative_to(each) for path in spare)]
        while lack := self._find_lack(model, sum(missing.values())):
            if not deletable or model.bytes > MOST_BYTES:
                raise lack
            shutil.rmtree(deletable.pop(0), ignore_errors=True)
        return missing

    def _find_lack(self, model: ModelFiles, missing_bytes: int) -> Trouble | None:
        others = sum(_measure(each) for each in self._list_folders() if each != self.unfinished(model))
        free = shutil.disk_usage(self._folder).free
        if others + model.bytes <= MOST_BYTES and missing_bytes + FREE_BYTES <= free:
            return None
        return lack_room(model.bytes, free)

    def keep(self, model: ModelFiles) -> Path:
        """Give the files that have arrived, checked by their hashes, their names, and let Hearth's own detection judge the model before
        it may be used; raise Trouble if it is none."""
        arriving = self.unfinished(model)
        built = arriving / "whole"
        shutil.rmtree(built, ignore_errors=True)
        root = built if model.single else built / model.title
        for name, (sha256, _) in model.files.items():
            target = root / (f"{model.title}.safetensors" if model.single else name)
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(arriving / sha256, target)
        try:
            for weights in root.rglob("*.safetensors"):
                safetensors.read_header(weights)
            catalog.find(str(_find_in(built)))
        except (Trouble, OSError):
            shutil.rmtree(arriving, ignore_errors=True)
            raise
        folder = self._folder / model.key.removeprefix(PREFIX)
        shutil.rmtree(folder, ignore_errors=True)
        built.replace(folder)
        shutil.rmtree(arriving, ignore_errors=True)
        found = _find_in(folder)
        if found is None:
            raise odd_files()
        return found

    def tidy(self) -> None:
        """Delete what no task needed for two weeks."""
        for each in self._list_folders():
            if time.time() - each.stat().st_mtime > UNUSED_S:
                shutil.rmtree(each, ignore_errors=True)

    def _list_folders(self) -> list[Path]:
        return [each for each in self._folder.iterdir() if each.is_dir()] if self._folder.is_dir() else []

    def _is_loadable(self, path: Path) -> bool:
        """Tell whether the settings that it takes from elsewhere are here too."""
        try:
            model = catalog.find(str(path))
            found = locate(self._home, model)
        except Trouble:
            return False
        return found is not None and len(found.companions) == len(model.companions)


def lack_room(needed_bytes: int, free_bytes: int) -> NoRoom:
    return NoRoom(
        say(
            "machines.no-model-room",
            "The other computer's model of {needed} MB is not fetched: {free} MB are free, and {spare} MB stay free for this computer.",
            needed=-(-needed_bytes // MB),
            free=free_bytes // MB,
            spare=FREE_BYTES // MB,
        )
    )


def _find_in(folder: Path) -> Path | None:
    return next(iter(folder.iterdir()), None) if folder.is_dir() else None


def _measure(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _link(file: Path, target: Path) -> None:
    """Two files of a model may be the same."""
    try:
        target.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, target)
