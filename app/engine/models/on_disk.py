"""Find models on this machine: their location, completeness and size. Downloads nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG
from typing import Final

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.file_download import repo_folder_name

from app.base import other_disk
from app.base.bounded_json import read_json
from app.base.path_checks import size_bytes
from app.base.paths import Home
from app.base.sentence import say
from app.base.trouble import Trouble
from app.compat.planning.types import Quantised
from app.engine.jobs.request import Asked, KindName, Request
from app.engine.models import catalog
from app.engine.models.detect import read_config_needs
from app.engine.models.model import ConfigNeeds, Model, Source, list_sources
from app.engine.models.voice_limits import DIA, VoiceLimits, read_limits

_SHARD: Final = re.compile(r"(.+)-\d+-of-(\d+)(\..+)?\.safetensors")
_WEIGHED: Final = ("text_encoder", "text_encoder_2", "text_encoder_3", "unet", "transformer", "vae")
"""These parts of a pipeline have weights; tokenizers and schedulers have configs only."""


@dataclass(frozen=True, slots=True)
class Located:
    folder: Path
    companions: Mapping[str, Path] = field(default_factory=dict)


def locate(home: Home, model: Model, quantised: Quantised = "none") -> Located | None:
    """Locate all files the model needs with this quantisation; None if any is missing."""
    if model.path:
        found = ((each.name, find_snapshot(home, each.source)) for each in model.companions)
        there = {name: path for name, path in found if path is not None}  # what a single file lacks is reported when it is loaded
        return Located(Path(model.path), there) if model.starter or _is_there(model.path) else None
    folder_there = find_snapshot(home, list_sources(model, quantised)[0])
    wanted = [(each, find_snapshot(home, each.source)) for each in model.companions if each.when in (None, quantised)]
    if folder_there is None or any(path is None and not each.optional for each, path in wanted):
        return None
    return Located(folder_there, {each.name: path for each, path in wanted if path is not None})


def _is_there(path: str) -> bool:
    seen = catalog.look(path)
    return seen.there and seen.answers


def read_voice_limits(home: Home, model: Model) -> VoiceLimits | None:
    """Read what a voice can speak; None if it is not here. Raise a Trouble if its settings are damaged."""
    if model.is_local:
        return catalog.look(model.path).limits
    found = locate(home, model)
    return read_limits(found.folder, found.companions, model.family) if found is not None else None


def read_needs(home: Home, model: Model) -> ConfigNeeds:
    """Read what a model's config.json asks of its plan."""
    if model.needs is not None:
        return model.needs
    if model.settings.sizes:  # what paints has a config.json for each part, and none of its own
        return ConfigNeeds()
    found = locate(home, model)
    return read_config_needs(found.folder) if found is not None else ConfigNeeds()


def find_snapshot(home: Home, source: Source) -> Path | None:
    """Locate a complete snapshot in the hub's cache; other programs may have downloaded it."""
    try:
        found = snapshot_download(
            source.repo,
            revision=source.revision,
            cache_dir=home.models,
            local_files_only=True,
            allow_patterns=list(source.files),
            ignore_patterns=list(source.leave),
        )
    except (LocalEntryNotFoundError, HfHubHTTPError):
        return None
    return Path(found) if is_complete(Path(found), source) else None


def is_complete(folder: Path, source: Source) -> bool:
    """Check that nothing known to be needed is missing: named files, each part's weights, every shard."""
    if any("*" not in pattern and not (folder / pattern).is_file() for pattern in source.files):
        return False
    if not any("*" in pattern for pattern in source.files):
        return True
    if "model_index.json" in source.files:
        return _are_parts_complete(folder, source)
    if not _is_wanted("config.json", source):  # no model: its index, which was there, says what belongs to it
        return True
    return (folder / "config.json").is_file() and _are_weights_complete(folder, "", source)


def _are_parts_complete(folder: Path, source: Source) -> bool:
    try:
        index = read_json(folder / "model_index.json")
    except (OSError, ValueError):
        return False
    named = [
        name
        for name, made_of in (index.items() if isinstance(index, dict) else ())
        if isinstance(made_of, list) and made_of and made_of[0] and not _is_left_out(f"{name}/config.json", source)
    ]
    return all(
        any(each.is_file() for each in (folder / name).glob("*.json"))
        and (name not in _WEIGHED or _are_weights_complete(folder, f"{name}/", source))
        for name in named
    )


def _are_weights_complete(folder: Path, part: str, source: Source) -> bool:
    """Check one part's weights: at least one wanted file, and all shards of a sharded one."""
    weights = any(pattern.endswith(".safetensors") for pattern in source.files)
    if not weights or _is_left_out(f"{part}x.safetensors", source):
        return True
    names = [each.name for each in (folder / part).glob("*.safetensors") if each.is_file() and _is_wanted(part + each.name, source)]
    shards: dict[tuple[str, str, int], int] = {}
    for name in names:
        if found := _SHARD.fullmatch(name):
            set_ = (found[1], found[3] or "", int(found[2]))
            shards[set_] = shards.get(set_, 0) + 1
    return bool(names) and all(count == set_[2] for set_, count in shards.items())


def _is_wanted(name: str, source: Source) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in source.files) and not _is_left_out(name, source)


def _is_left_out(name: str, source: Source) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in source.leave)


def find_best(home: Home, kind: KindName) -> Model:
    """Find the model used when none is named."""
    return catalog.choose_best(kind, lambda model: locate(home, model) is not None)


def find_model(home: Home, request: Request) -> Model:
    """Find the model of a request, the best installed one where it names none; raise a Trouble if it is gone."""
    return catalog.find(request.model, request.kind) if request.model else find_best(home, request.kind)


def resolve(home: Home, request: Asked) -> Asked:
    """Return the request with its model's id. One whose model is gone stays as it is: the run reports it."""
    try:
        return replace(request, model=find_model(home, request).id)
    except Trouble:
        return request


def find_limits(home: Home, model: str) -> VoiceLimits:
    """Return the limits of a job's voice; Dia's if the voice is gone. Jobs of earlier versions may name none: they had the best."""
    try:
        return read_voice_limits(home, catalog.find(model) if model else find_best(home, "speech")) or DIA
    except Trouble:
        return DIA


def repo_folder(models: Path, repo: str) -> Path:
    return models / repo_folder_name(repo_id=repo, repo_type="model")


def partial_path(blob: Path) -> Path:
    return blob.with_name(f"{blob.name}.incomplete")


def count_bytes_here(models: Path, repo: str, etag: str) -> int:
    """Count the received bytes, complete or partial. The partial file is looked for first, because it may be renamed in
    between."""
    blob = repo_folder(models, repo) / "blobs" / etag
    return max(size_bytes(partial_path(blob)), size_bytes(blob))


def list_all_sources(model: Model) -> tuple[Source, ...]:
    """List all sources of the model's files, for every quantisation."""
    own = () if model.source is None else (model.source,)
    return (*own, *(each.source for each in model.companions))


def list_repos(model: Model) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source.repo for source in list_all_sources(model)))


def find_away(home: Home, model: Model) -> Path | None:
    """Return a folder of the model's that lies on another disk which is not connected now."""
    folders = (repo_folder(home.models, repo) for repo in list_repos(model))
    return None if model.path else next(filter(other_disk.is_away, folders), None)


def refuse_away(home: Home, model: Model) -> None:
    if (folder := find_away(home, model)) is not None:
        raise Trouble(other_disk.word_away(folder))


def measure_bytes(home: Home, model: Model) -> int:
    """Measure the disk space used, partial files included; links and hard links are counted once."""
    if model.is_local:
        return catalog.look(model.path).bytes
    folders = [Path(model.path)] if model.path else [repo_folder(home.models, repo) for repo in list_repos(model)]
    sizes: dict[tuple[int, int], int] = {}
    for folder in folders:
        # Unlike rglob, os.walk tolerates folders that vanish meanwhile.
        inside = (Path(where, name) for where, _, names in os.walk(folder) for name in names if name != other_disk.MARK)
        for path in inside:
            with suppress(FileNotFoundError):  # a partial file that was completed since then has another name now
                facts = path.lstat()
                if S_ISREG(facts.st_mode):
                    sizes[facts.st_dev, facts.st_ino or hash(path)] = facts.st_size
    return sum(sizes.values())


def remove(home: Home, model: Model, others: Iterable[Model], keep: Collection[str] = ()) -> int:
    """Delete the model's files, except those another installed model needs. Returns the number of bytes freed."""
    if model.path:
        raise Trouble(
            say(
                "models.not-ours",
                "{model} is in {path}, where Hearth did not download it. Delete it there yourself.",
                model=model.words,
                path=model.path,
            )
        )
    refuse_away(home, model)
    sources = [source for other in others if other.id != model.id and locate(home, other) for source in list_all_sources(other)]
    before = measure_bytes(home, model)
    for repo in list_repos(model):
        folder = repo_folder(home.models, repo)
        needed = [source for source in sources if source.repo == repo]
        if repo in keep or not folder.exists():
            continue
        if needed:
            _prune(folder, needed)
        else:
            other_disk.delete(folder)
            shutil.rmtree(home.models / ".locks" / folder.name, ignore_errors=True)
    return before - measure_bytes(home, model)


def _prune(folder: Path, needed: list[Source]) -> None:
    """Delete what none of these sources needs."""
    kept = set()
    for pointer in [each for each in (folder / "snapshots").rglob("*") if not each.is_dir()]:
        name = pointer.relative_to(folder / "snapshots").as_posix().partition("/")[2]
        if any(_is_wanted(name, source) for source in needed):
            kept.add(pointer.resolve())
        else:
            pointer.unlink()
    for blob in (folder / "blobs").glob("*"):
        if blob.resolve() not in kept:
            blob.unlink()
