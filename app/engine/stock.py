"""What lies on this machine: where a model's files are, in the hub's cache or a folder of the person's own. Downloads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from app.compat.plan import Quantised
from app.engine import catalog
from app.engine.model import Kind, Model, Source
from app.paths import Home


@dataclass(frozen=True, slots=True)
class Located:
    folder: Path
    companions: Mapping[str, Path] = field(default_factory=dict)


def located(home: Home, model: Model, quantised: Quantised = "none") -> Located | None:
    """All that the model needs when its weights are kept this way, or None where something is missing."""
    if model.path:
        found = ((each.name, snapshot(home, each.source)) for each in model.companions)
        there = {name: path for name, path in found if path is not None}  # what a single file lacks is told when it is loaded
        return Located(Path(model.path), there) if Path(model.path).exists() else None
    assert model.source is not None
    folder_there = snapshot(home, model.source)
    needed = {each.name: snapshot(home, each.source) for each in model.companions if each.when in (None, quantised)}
    companions = {name: path for name, path in needed.items() if path is not None}
    if folder_there is None or len(companions) < len(needed):
        return None
    return Located(folder_there, companions)


def snapshot(home: Home, source: Source) -> Path | None:
    try:
        found = snapshot_download(source.repo, revision=source.revision, cache_dir=home.models, local_files_only=True)
    except (LocalEntryNotFoundError, HfHubHTTPError):
        return None
    return Path(found)


def best(home: Home, kind: Kind) -> Model:
    """What is used when no model is named."""
    return catalog.best(kind, lambda model: located(home, model) is not None)
