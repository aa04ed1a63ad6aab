"""A model as other machines know it, by its revisions or the hash of its files, never by a file's name; and which files of a local one may
travel."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.base.paths import Home
from app.engine.models.catalog import BY_ID, CATALOG
from app.engine.models.model import Model
from app.engine.models.model_folder import holds
from app.engine.models.on_disk import Located, locate
from app.machines.tasks.fetched_files import odd_files

SUFFIXES: Final = frozenset({".safetensors", ".json", ".txt", ".jinja"})
"""They are weights, settings and words: nothing that is run, and no pickle."""
TOKENIZER: Final = ".model"
"""A tokenizer of sentencepiece, which crashes on crafted files (CVE-2026-1260, its issues #1263 and #1269), has this ending. Most models
have the same one as JSON beside it."""
SINGLE: Final = "model.safetensors"
"""A model that is one file travels under this name."""
PREFIX: Final = "files:"
FILES_MOST: Final = 256
_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,120}(?<!\.)")
_TITLE: Final = re.compile(r"\w[\w .()+-]{0,79}(?<![. ])")
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Windows takes these names for a device, whatever follows."""
_KEY: Final = re.compile(r"files:[0-9a-f]{64}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    title: str
    """It is for people only."""
    files: Mapping[str, tuple[str, int]]
    """Each file has its hash and size by name: it lies beside the others, or one folder below."""

    @property
    def key(self) -> str:
        """What the model is known by: the hash of all its files and their names, without its own name."""
        listed = json.dumps(sorted((name, *about) for name, about in self.files.items()))
        return PREFIX + hashlib.sha256(listed.encode()).hexdigest()

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files.values())

    @property
    def single(self) -> bool:
        return [*self.files] == [SINGLE]


def list_files(path: Path) -> dict[str, Path]:
    """Return the files of a local model that may travel, by their names on the way, and none to which a link leads out of it; none at all
    where it has no weights, more than a model has, or would lack its tokenizer there."""
    if path.is_file():
        return {SINGLE: path} if path.suffix.lower() == ".safetensors" else {}
    found = {file.relative_to(path).as_posix(): file for pattern in ("*", "*/*") for file in path.glob(pattern) if holds(path, file)}
    if any(file.suffix == TOKENIZER and not file.with_name("tokenizer.json").is_file() for file in found.values()):
        return {}
    named = {name: file for name, file in sorted(found.items()) if is_name(name)}
    return named if any(name.endswith(".safetensors") for name in named) and len(named) <= FILES_MOST else {}


def describe(path: Path, title: str, hash_file: Callable[[Path], str]) -> tuple[ModelFiles, dict[str, Path]] | None:
    """Describe a local model for other machines, and return where its files are, by hash; None if it cannot travel. Raise OSError if a
    file is gone."""
    files = {name: (hash_file(file), file.stat().st_size, file) for name, file in list_files(path).items()}
    if not files:
        return None
    clean = title if _TITLE.fullmatch(title) and not _DEVICES.fullmatch(title) else "model"
    about = {name: (sha256, size) for name, (sha256, size, _) in files.items()}
    return ModelFiles(clean, about), {sha256: file for sha256, _, file in files.values()}


def to_json(model: ModelFiles) -> dict[str, Any]:
    return {"title": model.title, "files": {name: [*about] for name, about in model.files.items()}}


def from_json(given: Any) -> ModelFiles:
    """Read what another machine says of a model; raise Trouble if a name leads elsewhere or is no file of a model."""
    title, files = (given.get("title"), given.get("files")) if isinstance(given, Mapping) else (None, None)
    if not isinstance(title, str) or not _TITLE.fullmatch(title) or _DEVICES.fullmatch(title):
        raise odd_files()
    if not isinstance(files, Mapping) or not 0 < len(files) <= FILES_MOST or len({str(name).casefold() for name in files}) < len(files):
        raise odd_files()
    if not all(is_name(name) and _is_described(about) for name, about in files.items()):
        raise odd_files()
    return ModelFiles(title, {name: (about[0], about[1]) for name, about in files.items()})


def is_key(name: str) -> bool:
    return _KEY.fullmatch(name) is not None


def is_name(name: object) -> bool:
    """Tell whether it names a file of a model: at most one folder deep, of a kind that may travel."""
    if not isinstance(name, str) or Path(name).suffix.lower() not in SUFFIXES:
        return False
    parts = name.split("/")
    return len(parts) <= 2 and all(_PART.fullmatch(each) and not _DEVICES.fullmatch(each) for each in parts)


def _is_described(about: Any) -> bool:
    return (
        isinstance(about, list | tuple)
        and len(about) == 2
        and isinstance(about[0], str)
        and _HASH.fullmatch(about[0]) is not None
        and type(about[1]) is int
        and about[1] >= 0
    )


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
