"""The models that a helper fetches for the main machine, where its owner lets it: the catalog's from their repository, local ones by hash from
there, which are bounded, tidied, and checked before any is used."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from app.base.paths import Home
from app.base.sentence import Sentence, say
from app.base.trouble import NoRoom, Trouble
from app.engine.keeper.disk_room import MB
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog, safetensors
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Downloads
from app.engine.models.model import Model, list_sources
from app.engine.models.on_disk import locate
from app.machines.tasks import portable_models
from app.machines.tasks.fetched_files import odd_files
from app.machines.tasks.portable_models import PREFIX, ModelFiles, list_names, read_id

GIB: Final = 1 << 30
MOST_BYTES: Final = 64 * GIB
"""All of them together may have so many bytes."""
FREE_BYTES: Final = 10 * GIB
"""A model, sent or downloaded for another machine, leaves so much free on the disk of this one."""
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


Lack = Literal["", "no-room", "failed"]
WANT_LETTERS: Final = 200_000
"""The main machine may say so many letters of a model."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """What is fetched now, or was last."""

    name: str = ""
    """The main machine knows it by this name."""
    title: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    under_way: bool = False
    lack: Lack = ""
    """It says why it did not come."""
    said: Sentence | None = None
    """It tells the owner the same."""

    @property
    def share(self) -> float:
        """So much of it has arrived."""
        return self.done_bytes / self.total_bytes if self.total_bytes else 0.0


class WantedModels:
    """One model at a time. Any thread may call."""

    def __init__(self, keeper: Keeper, downloads: Downloads, tell: Callable[..., None], allowed: bool) -> None:
        """`tell`: to the machines process. `allowed`: by the owner."""
        self._keeper, self._downloads, self._tell = keeper, downloads, tell
        self.sent = SentModels(keeper.home)
        self._lock = threading.RLock()
        self._fetching = Fetching()
        self._arriving: ModelFiles | None = None
        self._loading: Model | None = None
        """The downloads are at this model."""
        self.allowed = allowed

    @property
    def fetching(self) -> Fetching:
        """Return how far it is."""
        with self._lock:
            if self._loading is not None:
                self._follow_download(self._loading)
            return self._fetching

    def list_names(self) -> list[str]:
        """Return the models that are here, as the main machine knows them."""
        return [*list_names(self._keeper.home), *self.sent.list_keys()]

    def find(self, name: str) -> str:
        """Return this machine's own name of a model; raise Trouble if it is not here."""
        if id_ := read_id(name):
            return id_
        found = self.sent.find(name, used=True) if portable_models.is_key(name) else None
        if found is None:
            raise Trouble(say("machines.no-model", "The other computer's model {name} is not on this one.", name=name[:80]))
        return str(found)

    def want(self, body: str) -> None:
        """Begin to fetch what the main machine wants, unless something is on its way; whatever is odd is left out."""
        with self._lock:
            if not self.allowed or self.fetching.under_way or len(body) > WANT_LETTERS:
                return
            try:
                asked = json.loads(body)
                name = asked["model"]
                self._want_repository(name) if read_id(name) else self._want_files(name, asked)
            except Trouble as trouble:
                lack: Lack = "no-room" if isinstance(trouble, NoRoom) else "failed"
                self._fetching = Fetching(str(name), lack=lack, said=trouble.sentence)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError):
                self._fetching = Fetching(lack="failed", said=odd_files().sentence)

    def hear(self, message: Mapping[str, Any]) -> None:
        """Hear how far the machines process is with a model's files, or that it lost them."""
        with self._lock:
            arriving = self._arriving
            if arriving is None or message.get("model") != arriving.key:
                return
            match message["op"]:
                case "model-step":
                    done = arriving.bytes - int(message["missing"]) + int(message["done"])
                    self._fetching = _begin(arriving.key, arriving.title, arriving.bytes, done)
                case "model-here":
                    self._keep(arriving)
                case "model-lost":
                    self._arriving, self._fetching = None, Fetching(arriving.key, arriving.title, lack="failed")

    def lose(self) -> None:
        """Note that the machines process is gone, and with it what it fetched; the main machine asks again."""
        with self._lock:
            if self._arriving is not None:
                self._arriving, self._fetching = None, Fetching()

    def stop(self) -> None:
        """Fetch nothing more for now; what has arrived stays for the next time."""
        with self._lock:
            if self._arriving is not None:
                self._tell("leave-model")
            if self._loading is not None:
                self._downloads.pause(self._loading.id)
            self._arriving, self._loading, self._fetching = None, None, Fetching()

    def _want_repository(self, name: str) -> None:
        """From where the catalog says, and nowhere else, with the checksums of its hub."""
        model = BY_ID[read_id(name)]
        if locate(self._keeper.home, model) is None and list_sources(model):
            self._download(name, model)

    def _want_files(self, name: str, asked: Any) -> None:
        wanted = portable_models.from_json(asked)
        if wanted.key != name:
            raise odd_files()
        self.sent.tidy()
        if self.sent.find(name) is not None:
            self._complete(name)
            return
        loaded = self._keeper.state.model
        missing = self.sent.choose_missing(wanted, [Path(loaded)] if loaded not in BY_ID and loaded else [])
        self._arriving = wanted
        self._fetching = _begin(name, wanted.title, wanted.bytes, wanted.bytes - sum(missing.values()))
        self._tell("fetch-model", model=name, files=missing, folder=str(self.sent.unfinished(wanted)))

    def _keep(self, arrived: ModelFiles) -> None:
        self._arriving, self._fetching = None, Fetching(arrived.key, arrived.title)
        try:
            self.sent.keep(arrived)
            self._complete(arrived.key)
        except (Trouble, OSError) as fault:
            said = fault.sentence if isinstance(fault, Trouble) else None
            self._fetching = Fetching(arrived.key, arrived.title, lack="failed", said=said)

    def _complete(self, key: str) -> None:
        """Download the settings that a single file takes from a repository, if they are not here."""
        model = catalog.find(str(self.sent.find(key)))
        found = locate(self._keeper.home, model)
        if found is not None and len(found.companions) < len(model.companions):
            self._download(key, model)

    def _download(self, name: str, model: Model) -> None:
        if any(each.model == model.id and each.state == "paused" for each in self._downloads.list_status()):
            return  # by the owner, who resumes it
        needed = sum(source.bytes for source in list_sources(model))
        free = shutil.disk_usage(self._keeper.home.models).free
        if needed + FREE_BYTES > free:
            raise lack_room(needed, free)
        self._loading = model
        self._fetching = _begin(name, model.title, needed, 0)
        self._downloads.start(model)

    def _follow_download(self, model: Model) -> None:
        status = next((each for each in self._downloads.list_status() if each.model == model.id), None)
        if status is not None and status.state in ("queued", "running"):
            self._fetching = _begin(self._fetching.name, model.title, status.total_bytes, status.done_bytes)
            return
        failed = status is not None and status.state == "failed"
        said = status.sentence if status is not None else None
        self._loading, self._fetching = None, Fetching(self._fetching.name, model.title, lack="failed" if failed else "", said=said)


def _begin(name: str, title: str, total_bytes: int, done_bytes: int) -> Fetching:
    return Fetching(name, title, done_bytes, total_bytes, under_way=True)
