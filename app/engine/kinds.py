"""The kinds of job there are, and what is asked of a request whichever kind it is. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.engine.jobs.kind import AnyKind
from app.engine.jobs.parts import FILES, Parts
from app.engine.jobs.request import Asked, KindName, Request
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.on_disk import find_model, locate
from app.engine.pictures.kind import PictureKind
from app.engine.speech.kind import SpeechKind

KINDS: Final[Mapping[KindName, AnyKind]] = {"speech": SpeechKind(), "picture": PictureKind()}


def kind_of(request: Request) -> AnyKind:
    return KINDS[request.kind]


def is_heard(kind: str) -> bool:
    """Tell whether what is of this kind is a sound; damaged rows of the shelf may name any kind."""
    return any(each.is_heard for each in KINDS.values() if each.name == kind)


def parts_of(home: Home, request: Request, folder: Path) -> Parts:
    return Parts(kind_of(request), home, request, folder)


def measure_progress(folder: Path) -> dict[str, int]:
    """Measure how far each part in a job's folder is: finished ones, saved steps, saved rows of sound."""
    far = dict[str, int]()
    for kind in KINDS.values():
        files = FILES[kind.name]
        far |= {path.stem: 1 for path in files.list_made(folder).values()}
        far |= {path.stem: kind.measure_begun(path) for path in files.list_begun(folder)}
    return far


def admit(request: Asked, home: Home) -> Asked:
    """Return the request as it is queued, with its model's id; raise Trouble early, before the seconds that the engine takes
    to start. An unknown model is left to the run, which reports it."""
    try:
        model = find_model(home, request)
    except Trouble:
        return request
    admitted = replace(request, model=model.id)
    check(home, admitted, model)
    return admitted


def check(home: Home, request: Request, model: Model) -> None:
    """Raise Trouble if the request's model cannot do it on any machine. A missing one is reported when it is loaded."""
    require_kind(home, request, model)
    kind_of(request).check(home, request, model)


def require_kind(home: Home, request: Request, model: Model) -> None:
    """Raise Trouble for a model that makes something else."""
    if model.makes is None:
        raise Trouble(
            say("model.makes-nothing", "{model} makes nothing itself. Choose a model that speaks or paints.", model=model.words),
            cure="models",
        )
    if model.makes != request.kind:
        others = tuple(each.id for each in catalog.CATALOG if each.kind != model.kind and locate(home, each) is not None)
        raise KINDS[model.makes].refuse(model, others)
