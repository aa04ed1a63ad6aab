"""Under which name machines know the same model: its id with the revisions that are here, or the hash of its files. Never a file's name."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Final

from app.base.paths import Home
from app.engine.models.catalog import BY_ID, CATALOG
from app.engine.models.model import Model
from app.engine.models.on_disk import Located, locate

_LETTERS: Final = 12
_MARK: Final = "@"


def name_model(model: Model, found: Located | None) -> str:
    """Return the name of a model of the catalog. A starter comes with Hearth, whose versions are compared already; one that is not
    here has no revision."""
    if found is None or model.path:
        return model.id
    commits = [found.folder.name, *(f"{name} {folder.name}" for name, folder in sorted(found.companions.items()))]
    return f"{model.id}{_MARK}{hashlib.sha256('|'.join(commits).encode()).hexdigest()[:_LETTERS]}"


def list_names(home: Home) -> list[str]:
    """Return the names of the catalog's models that are here."""
    return [name_model(model, found) for model in CATALOG if (found := locate(home, model)) is not None]


def read_id(name: str) -> str:
    """Return the catalog's id in a name; "" if it is no model of the catalog."""
    id_ = name.partition(_MARK)[0]
    return id_ if id_ in BY_ID else ""


def has_model(there: Collection[str], wanted: str) -> bool:
    """Tell whether a machine has a model; one that is wanted without a revision is right in any."""
    return wanted in there or (_MARK not in wanted and any(read_id(each) == wanted for each in there))


def has_other_revision(there: Collection[str], wanted: str) -> bool:
    """Tell whether a machine has a model, but not as it is here."""
    return bool(read_id(wanted)) and wanted not in there and any(read_id(each) == read_id(wanted) for each in there)
