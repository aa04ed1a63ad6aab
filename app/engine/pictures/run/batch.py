"""Choose which pictures of a request are painted next, and together with which others."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.engine.jobs.parts import PAINTED, drop_begun
from app.engine.jobs.request import to_json
from app.engine.models.fingerprint import fingerprint
from app.engine.models.model import Model
from app.engine.pictures.run import checkpoint
from app.engine.pictures.run.checkpoint import Checkpoint
from app.engine.pictures.run.final_settings import PictureSettings


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a request."""

    index: int
    path: Path
    checkpoint_path: Path
    fingerprint: str
    """Its checkpoint belongs to the request and the model with this fingerprint."""


@dataclass(slots=True)
class Loop:
    """The pictures that one call of the pipeline paints: one, or several small ones at once."""

    pictures: list[Picture]
    start: Checkpoint | None
    """Where anything is kept of the picture, it is the only one."""
    later: int
    """So many pictures are painted after these."""
    stopped: bool = False
    alternates: bool = False
    """True: every second step reuses the one before."""
    reused: int = 0
    """So many steps reused something."""
    finished: int = 0
    """So many of its pictures are enlarged, painted over and saved."""
    steps: int = 0
    """The pipeline's loop has so many; 0: it did not run."""
    elapsed_s: list[float] = field(default_factory=list)
    over: float = 0.0
    """Steps that painted over what was enlarged are counted in steps of the small picture."""
    stepped_s: float = 0.0
    """Its last step ended then, or the last picture was saved."""

    @property
    def is_overtaken(self) -> bool:
        """Whether another machine made them all meanwhile."""
        return all(each.path.is_file() for each in self.pictures)

    def begin_anew(self) -> None:
        """Forget what was kept of the picture."""
        drop_begun(self.pictures[0].checkpoint_path)
        self.start = None
        self.elapsed_s.clear()


def list_pictures(settings: PictureSettings, model: Model, job: Path) -> list[Picture]:
    named = _name_by_content(settings, model)
    return [
        Picture(
            index,
            PAINTED.shown(job, index),
            PAINTED.begun_path(job, index),
            _make_fingerprint(named | _read_as(settings, index), settings.seed_for(index)),
        )
        for index in range(settings.request.batch)
    ]


def _make_fingerprint(named: dict[str, Any], seed: int) -> str:
    return hashlib.sha256(json.dumps({**named, "seed": seed}, sort_keys=True).encode()).hexdigest()


def _read_as(settings: PictureSettings, index: int) -> dict[str, str]:
    read_as = settings.read_as(index)
    return {"read_as": read_as} if read_as else {}


def _name_by_content(settings: PictureSettings, model: Model) -> dict[str, Any]:
    """Return what the pictures are made from, with files by their content: another machine has them elsewhere."""
    values = to_json(settings.request_for(0))
    for name in ("image", "mask", "guide", "control", "reference", "adapter"):
        if values.get(name):
            values[name] = fingerprint(Path(values[name]))
    values["loras"] = [{**each, "path": fingerprint(Path(each["path"]))} for each in values.get("loras", ())]
    return {**values, "model": fingerprint(Path(model.path)) if model.is_local else model.id}


def choose_next(waiting: Sequence[Picture], most: int) -> Loop:
    """Return the first of the pictures with those that one call may paint with it. One that was begun resumes alone."""
    first, *others = waiting
    later = sum(not each.path.is_file() for each in others)
    if (start := checkpoint.load(first.checkpoint_path, first.fingerprint)) is not None:
        return Loop([first], start, later)
    beside = itertools.takewhile(lambda each: not (each.path.is_file() or each.checkpoint_path.is_file()), others[: most - 1])
    chosen = [first, *beside]
    return Loop(chosen, None, later - len(chosen) + 1)
