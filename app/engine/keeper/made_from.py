"""What a creation was made from: its row's request, completed by what its file says the run drew and the model recommended."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from app.base.trouble import Trouble
from app.engine.jobs.creation import Creation
from app.engine.jobs.request import Request
from app.engine.kinds import kind_of


def read_request(creation: Creation) -> Request:
    """Return the request that makes this creation again: of a batch, this picture alone."""
    asked = creation.request
    made = None if creation.condition else _read_file(asked, creation.path)
    if type(made) is not type(asked):
        return asked
    drawn = {each.name for each in fields(asked) if each.name in ("seed", "batch") or getattr(asked, each.name) is None}
    return replace(asked, **{name: getattr(made, name) for name in drawn})


def _read_file(asked: Request, path: Path) -> Request | None:
    try:
        return kind_of(asked).read_made_from(path)
    except (Trouble, OSError, ValueError, TypeError, RuntimeError):  # libsndfile's own is a RuntimeError
        return None
