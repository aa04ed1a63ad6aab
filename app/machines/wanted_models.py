"""The models that a helper fetches for the main machine, where its owner lets it: the catalog's from their repository, others by hash from there."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from app.base.sentence import Sentence, say
from app.base.trouble import NoRoom, Trouble
from app.engine.keeper.keeper import Keeper
from app.engine.models import catalog
from app.engine.models.catalog import BY_ID
from app.engine.models.downloads import Downloads
from app.engine.models.model import Model, list_sources
from app.engine.models.on_disk import locate
from app.machines.model_names import list_names, read_id
from app.machines.sent_models import FREE_BYTES, SentModels, lack_room
from app.machines.tasks import model_files
from app.machines.tasks.fetched_files import odd_files
from app.machines.tasks.model_files import ModelFiles

Lack = Literal["", "no-room", "failed"]
WANT_LETTERS: Final = 200_000
"""The most letters of what the main machine says of a model."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """What is fetched now, or was last."""

    name: str = ""
    """As the main machine knows it."""
    title: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    under_way: bool = False
    lack: Lack = ""
    """Why it did not come."""
    said: Sentence | None = None
    """The same, for the owner."""


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
        """What the downloads are at."""
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
        found = self.sent.find(name, used=True) if model_files.is_key(name) else None
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
        wanted = model_files.from_json(asked)
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
