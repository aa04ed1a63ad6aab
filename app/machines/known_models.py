"""The main machine's models, as others know them: local ones are hashed in the background, once for each state of their files."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.trouble import Trouble
from app.engine.models import catalog, detect
from app.engine.models.catalog import BY_ID
from app.engine.models.on_disk import locate
from app.machines.helping_machine import HelpingMachine
from app.machines.hub import Hub
from app.machines.tasks import portable_models
from app.machines.tasks.portable import hash_file
from app.machines.tasks.portable_models import ModelFiles, has_model, has_other_revision, name_model, read_id, to_json

LOOKED_S: Final = 10.0
"""After so long Hearth looks again what a model is."""
WANTED_S: Final = 30.0
"""After so long a machine is asked again to fetch a model."""
_State = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Local:
    state: _State
    """It holds the files with their sizes and times."""
    found: tuple[ModelFiles, Mapping[str, Path]] | None = None
    """It can travel so."""
    stays: bool = False
    """True: it is a model that cannot travel."""

    @property
    def name(self) -> str:
        return self.found[0].key if self.found is not None else ""


class KnownModels:
    """Any thread may call; nothing waits for a hash."""

    def __init__(self, home: Home, hub: Hub, changed: Callable[[], None]) -> None:
        """`changed` is called when a local model has been hashed."""
        self._home, self._hub, self._changed = home, hub, changed
        self._lock = threading.Lock()
        self._names: dict[str, tuple[str, float]] = {}
        self._local: dict[str, _Local] = {}
        self._hashing = set[str]()
        self._wanted: dict[tuple[str, str], float] = {}

    def name(self, model: str) -> str:
        """Return the name for other machines; "" while it is not known, or if the model cannot travel."""
        with self._lock:
            name, looked_s = self._names.get(model, ("", -LOOKED_S))
            if time.monotonic() - looked_s < LOOKED_S:
                return name
            name = name_model(BY_ID[model], locate(self._home, BY_ID[model])) if model in BY_ID else self._name_local(model)
            self._names[model] = name, time.monotonic()
            return name

    def want(self, machines: Sequence[HelpingMachine], model: str) -> None:
        """Ask the machines that lack a model, and whose owners let them, to fetch it."""
        name, now_s = self.name(model), time.monotonic()
        found = local.found if (local := self._local.get(model)) is not None else None
        if not name or (model not in BY_ID and (found is None or found[0].key != name)):
            return
        about, files = (to_json(found[0]), found[1]) if found is not None else ({}, {})
        for each in machines:
            lacks = not has_model(each.models, name) and not has_other_revision(each.models, name)
            if lacks and each.fetches and not each.fetching and now_s - self._wanted.get((each.id, name), -WANTED_S) >= WANTED_S:
                self._wanted[each.id, name] = now_s
                self._hub.want(each.id, name, json.dumps({"model": name, **about}), files)

    def is_naming(self, model: str) -> bool:
        """Tell whether the files of a model are being hashed."""
        with self._lock:
            return model in self._hashing

    def stays(self, model: str) -> bool:
        """Tell whether a model is for this machine only, as not all of its files can travel."""
        local = self._local.get(model)
        return local is not None and local.stays

    def title(self, name: str) -> str:
        """Return what people call a model that other machines know by this name."""
        if id_ := read_id(name):
            return BY_ID[id_].title
        return next((catalog.name_model(model) for model, local in [*self._local.items()] if local.name == name), "")

    def _name_local(self, model: str) -> str:
        if not catalog.look(model).answers:
            return ""
        try:
            state = _read_state(Path(model))
        except OSError:
            return ""
        known = self._local.get(model)
        if known is not None and known.state == state:
            return known.name
        if model not in self._hashing:
            self._hashing.add(model)
            threading.Thread(target=self._hash, args=(model, state), name="machines-hash", daemon=True).start()
        return ""

    def _hash(self, model: str, state: _State) -> None:
        found, stays = None, False
        try:
            catalog.find(model)
            found = portable_models.describe(Path(model), detect.name_path(Path(model)), hash_file)
            stays = found is None
        except (OSError, Trouble):  # it was moved, or is no model (any more); the engine says so
            pass
        with self._lock:
            self._local[model] = _Local(state, found, stays)
            self._hashing.discard(model)
            self._names.pop(model, None)
        self._changed()


def _read_state(path: Path) -> _State:
    files = [(name, file.stat()) for name, file in portable_models.list_files(path).items()]
    return tuple((name, about.st_size, about.st_mtime_ns) for name, about in files)
