"""Hold the loaded models: decide which are unloaded before another is loaded, and measure what each frees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Final

import torch

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Impossible
from app.compat.machine.free_memory import read_available_bytes
from app.compat.machine.hardware import probe
from app.compat.machine.meter import read
from app.compat.planning.memory_formulas import held_bytes, peak_bytes
from app.compat.planning.types import Need, Plan
from app.engine.jobs.events import Event, Loading, Note, Unloaded
from app.engine.kinds import KINDS
from app.engine.models import on_disk
from app.engine.models.loading.loaded import LoadedModel
from app.engine.models.loading.release_memory import release
from app.engine.models.model import SMALL_PARAMETERS, Model, ModelKind

READ_WITH: Final[Mapping[ModelKind, str]] = {"hearing": "app.engine.hearing.ears.ear", "seeing": "app.engine.pictures.run.eyes"}
"""These modules load what makes nothing itself, as a kind's does its models."""
BESIDE = 0.8
"""A second model is loaded beside the first only if it takes less than this share of the free memory."""
THREADS = torch.get_num_threads()
"""The count is torch's own or the configured one, read before anything is loaded."""


@dataclass(slots=True)
class Held:
    model: Model
    loaded: LoadedModel
    bytes: int
    """Its weights take this many bytes on the device."""


class ModelHolder:
    """Hold at most one model of each kind."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._held: dict[ModelKind, Held] = {}
        self._latest: ModelKind = "speech"

    @property
    def latest(self) -> str:
        """The model used last, "" if it is no longer loaded."""
        held = self._held.get(self._latest)
        return held.model.id if held else ""

    @property
    def held_bytes(self) -> int:
        return sum(held.bytes for held in tuple(self._held.values()))  # read while a run may load or unload

    def get(self, kind: ModelKind) -> LoadedModel:
        return self._held[kind].loaded

    def load(self, model: Model, need: Need, plan: Plan) -> Iterator[Event]:
        held = self._held.get(model.kind)
        self._latest = model.kind
        if held is not None and held.model == model and held.loaded.adapt(plan):
            held.bytes = held_bytes(need, plan)
            torch.set_num_threads(count_threads(need, model.kind))
            return
        found = on_disk.locate(self._home, model, plan.quantised)
        if found is None:
            on_disk.refuse_away(self._home, model)
            raise Impossible(
                say(
                    "session.not-there",
                    "{model} is not installed yet. Download it in Models, or run: {hearth} models get {id}",
                    model=model.words,
                    id=model.id,
                ),
                cure=f"get:{model.id}",
            )
        yield from self.unload(model.kind)
        free_bytes = read_available_bytes() if plan.device == "cpu" else probe().free_bytes
        if peak_bytes(need, plan) > BESIDE * free_bytes:
            yield from self.unload()
        torch.set_num_threads(count_threads(need, model.kind))
        yield Loading(model.id, say("session.loading", "Loading {model}.", model=model.words))
        loads_with = import_module(
            KINDS[model.makes].loads_with if model.makes else READ_WITH[model.kind]
        )  # each kind takes seconds to import
        loaded: LoadedModel = loads_with.load_found(found, model, plan, self._home)
        self._held[model.kind] = Held(model, loaded, held_bytes(need, plan))
        for sentence in loaded.notes:
            yield Note(sentence)

    def free(self) -> None:
        """Unload everything at once."""
        for _ in self.unload():
            pass

    def unload_others(self, model: Model) -> Iterator[Event]:
        """Unload the models of other kinds."""
        for kind in [each for each in self._held if each != model.kind]:
            yield from self.unload(kind)

    def unload(self, kind: ModelKind | None = None) -> Iterator[Event]:
        """Unload the model of one kind, or all; yield an event with the memory each freed."""
        for each in [kind] if kind else list(self._held):
            held = self._held.pop(each, None)
            if held is None:
                continue
            before, model = read(), held.model
            held.loaded.close()
            del held
            release()
            after = read()
            freed = max(0, before.process_bytes - after.process_bytes)
            freed += max(0, (before.device_bytes or 0) - (after.device_bytes or 0))
            yield Unloaded(model.id, say("session.unloaded", "{model} was unloaded.", model=model.words), freed)


def count_threads(need: Need, kind: ModelKind = "speech") -> int:
    """Use one thread for small models: their kernels end before a second thread wakes up. On a busy computer two
    threads took fourteen times as long. One that sees looks at a whole picture at once, however small it is."""
    return 1 if kind != "seeing" and sum(part.parameters for part in need.parts) < SMALL_PARAMETERS else max(1, THREADS)
