"""What Hearth takes of the disk: how large each thing is, when it was last used, what is there twice. Reads only, but for `keep_one`."""

from __future__ import annotations

import filecmp
import hashlib
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.base import other_disk
from app.base.disk_faults import word_fault
from app.base.other_disk import MARK, MOVED, CancelledError, find_target, is_away
from app.base.paths import Home
from app.base.sentence import Sentence, Value, say, shorten_list
from app.base.trouble import Trouble
from app.engine.jobs.creation import BIN
from app.engine.models import on_disk
from app.engine.models.model import Model
from app.engine.models.model_names import word_name
from app.engine.models.picture_readers import READERS
from app.engine.models.swin2sr import find_row

UNUSED_S: Final = 182 * 86_400.0
DOUBLE_BYTES: Final = 1_000_000
"""Smaller files are not compared."""
SELDOM_BYTES: Final = 10_000_000
"""Of less than this, nothing is said."""
USED_AS_FILES: Final = ("loras", "enlargers", "controlnet", "ipadapter", "voices")
"""What lies in these rows' folders is used file by file."""
BLOCK_BYTES: Final = 1 << 20
WEIGHTS: Final = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".gguf")
"""Files of models end so."""
HUB_FOLDERS: Final = ("models--*", "datasets--*", "spaces--*")


@dataclass(frozen=True, slots=True)
class Use:
    """A thing that takes room."""

    name: str
    """Commands and buttons call it this."""
    title: Value
    why: Sentence
    """It says what this is good for, so what goes without it."""
    bytes: int
    folder: Path
    movable: bool = False
    model: str = ""
    """It belongs to this model alone, which can be deleted."""
    used_s: float | None = None
    """Something was last made with it then, or it came then; it is None where that is not asked."""

    @property
    def target(self) -> Path | None:
        """Where it lies, if that is another disk."""
        return find_target(self.folder) if self.movable else None

    @property
    def away(self) -> bool:
        return is_away(self.folder)

    @property
    def unused(self) -> bool:
        return self.used_s is not None and not self.away and time.time() - self.used_s > UNUSED_S


@dataclass(frozen=True, slots=True)
class Double:
    """A file that is there more than once."""

    kept: Path
    others: tuple[Path, ...]
    bytes: int
    """Each of them takes so much."""


def list_uses(home: Home, models: Iterable[Model], environment: Path | None = None) -> list[Use]:
    """List what takes room, the largest first. `environment`: the folder that holds those that start.py made."""
    uses = [*_list_models(home, models), *_list_own(home), *_list_environments(environment)]
    return sorted((each for each in uses if each.bytes or each.away), key=lambda each: -each.bytes)


def find_use(home: Home, models: Iterable[Model], name: str) -> Use:
    """Find a thing that can be moved."""
    found = next((each for each in (*_list_models(home, models), *_list_own(home)) if each.name == name and each.movable), None)
    if found is None:
        raise Trouble(say("disk.unknown", "Nothing here that can be moved is called {name}. To see all names: {hearth} disk", name=name))
    return found


def choose_target(place: Path, use: Use) -> Path:
    """Return where a thing goes below a folder that a person named; raise a Trouble if there is none."""
    with suppress(OSError):  # a name too long, or a folder that one may not look into
        if place.is_absolute() and place.is_dir():
            return place / MOVED / ("models" if "/" in use.name else "") / use.folder.name
    raise Trouble(say("disk.no-place", "There is no folder {folder}. Enter the full path of a folder on another disk.", folder=str(place)))


def read_place(words: str) -> Path:
    """Return the folder that a person wrote, or pasted in quotes."""
    place = Path(words.strip().strip("\"'"))
    try:
        return place.expanduser()
    except RuntimeError:  # there is no such account: nor is there a folder that is called so
        return place


def is_known(home: Home, use: Use, place: Path) -> bool:
    """Tell whether a folder that a move without a mark left on another disk is a thing's: it holds files of the shelf's list, or models."""
    if use.name == "creations":
        return any((place / Path(path).name).is_file() for path in _ask(home, SHELVED))
    moved = MOVED in (place.parent.name, place.parent.parent.name)
    return moved and any(path.suffix in WEIGHTS for path, _ in _list_files(place))


def _list_models(home: Home, models: Iterable[Model]) -> Iterator[Use]:
    """A row for each repository of the hub that models come from, and one for all that other programs keep there."""
    owners: defaultdict[str, list[Model]] = defaultdict(list)
    for model in models:
        for repo in () if model.path else on_disk.list_repos(model):
            owners[repo].append(model)
    used = read_last_use(home)
    known = set()
    for repo, needed_by in owners.items():
        folder = on_disk.repo_folder(home.models, repo)
        known.add(folder.name)
        if not os.path.lexists(folder):
            continue
        at_s = max((used.get(each.id, 0.0) for each in needed_by), default=0.0)
        words = tuple(word_name(each.title) for each in needed_by[:3])
        yield Use(
            repo,
            words if len(words) > 1 else words[0],
            say("disk.model", "It can be downloaded again."),
            other_disk.measure(folder),
            folder,
            True,
            needed_by[0].id if len(needed_by) == 1 else "",
            max(at_s, _find_newest(folder)),
        )
    others = [each for pattern in HUB_FOLDERS for each in home.models.glob(pattern) if each.name not in known]
    why = say("disk.of-others", "Other programs keep them in the same folder, or an earlier Hearth did. Hearth leaves them alone.")
    yield Use("others", say("disk.others", "Models of other programs"), why, sum(map(other_disk.measure, others)), home.models)


def _list_own(home: Home) -> Iterator[Use]:
    shelf, in_bin = other_disk.measure(home.creations), other_disk.measure(home.creations / BIN)
    rows = (
        ("creations", say("disk.creations", "The shelf"), say("disk.creations-why", "Your pictures and recordings."), home.creations, shelf - in_bin),
        ("bin", say("disk.bin", "The shelf's bin"), say("disk.bin-why", "Deleted creations, until the bin is emptied."), home.creations / BIN, in_bin),
        ("loras", say("disk.loras", "LoRAs and embeddings"), say("disk.yours", "You put them there."), home.loras, None),
        ("enlargers", say("disk.enlargers", "Enlargers"), say("disk.yours", "You put them there."), home.enlargers, None),
        ("controlnet", say("disk.controls", "Control models"), say("disk.yours", "You put them there."), home.controls, None),
        ("ipadapter", say("disk.adapters", "IP-Adapters"), say("disk.yours", "You put them there."), home.adapters, None),
        ("voices", say("disk.voices", "Saved voices"), say("disk.voices-why", "Your shelf of voices."), home.voices, None),
        ("parts", say("disk.parts", "Parts of scripts, half-done work"),
         say("disk.parts-why", "By them a script's part is redone, and only what changed is spoken. The oldest go by themselves."), home.scratch, None),
        ("backups", say("disk.backups", "Backups"), say("disk.backups-why", "Copies of the list of your creations, one a day, seven at most."), home.backups,
         None),
        ("logs", say("disk.logs", "Logs"), say("disk.logs-why", "What a report of a fault is made of. They do not grow on."), home.logs, None),
    )  # fmt: skip
    movable = {"creations", "loras", "enlargers", "controlnet", "ipadapter"}
    used = read_last_use(home) | _ask(home, FILES_USED)
    for name, title, why, folder, size in rows:
        files = _date_files(folder, used) if name in USED_AS_FILES else []
        meaning, newest = _word_seldom(why, files), max((at for _, at, _ in files), default=None)
        yield Use(name, title, meaning, other_disk.measure(folder) if size is None else size, folder, name in movable, used_s=newest)
    damaged = [each for each in home.root.glob("*.damaged") if each.is_file() or each.is_dir()]
    why = say("disk.damaged-why", "Put aside because Hearth could not read it. What could be saved of it is in use again.")
    size = sum(other_disk.measure(each) if each.is_dir() else each.stat().st_size for each in damaged)
    yield Use("damaged", say("disk.damaged", "Damaged files"), why, size, home.root)


def _date_files(folder: Path, used: Mapping[str, float]) -> list[tuple[Path, float, int]]:
    """Return each file of a folder with when it was last used, or came, and its bytes. A task leaves the name of what it used, a job the path."""
    found = []
    for path, facts in _list_files(folder):
        names = (path.name, *(str(each) for each in (path, *path.parents) if each.is_relative_to(folder)))
        found.append((path, max(_read_came(facts), *(used.get(each, 0.0) for each in names)), facts.st_size))
    return found


def _read_came(facts: os.stat_result) -> float:
    """Return when a file came, whatever older time of writing an archive or a copy kept."""
    return max(facts.st_mtime, facts.st_ctime, getattr(facts, "st_birthtime", 0.0))


def _word_seldom(why: Sentence, files: list[tuple[Path, float, int]]) -> Sentence:
    """Say of files that were put there which were not used for long, the largest first; nothing of what is small."""
    seldom = sorted(((size, path.name) for path, at, size in files if time.time() - at > UNUSED_S), reverse=True)
    seldom_bytes = sum(size for size, _ in seldom)
    if seldom_bytes < SELDOM_BYTES:
        return why
    return say(
        "disk.files-unused",
        "{why} {size} GB of them were not used for half a year: {files}.",
        why=why,
        size=round(seldom_bytes / 1e9, 2),
        files=shorten_list([name for _, name in seldom], 3),
    )


def _list_environments(folder: Path | None) -> Iterator[Use]:
    """What Hearth runs on lies in two folders, of which one may hold the version before, or the one that is ready."""
    if folder is not None:
        why = say(
            "disk.environment-why",
            "The libraries that Hearth runs on, torch above all: of this version, and of the one before or the next.",
        )
        yield Use("environment", say("disk.environment", "Hearth's environment"), why, other_disk.measure(folder), folder)


def _list_files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for where, _, names in os.walk(folder):
        for name in (each for each in names if each != MARK):
            with suppress(OSError):
                path = Path(where, name)
                yield path, path.stat()


def _find_newest(folder: Path) -> float:
    """Return when a folder's newest file came."""
    return max((facts.st_mtime for _, facts in _list_files(folder)), default=0.0)


ASKED: Final = """WITH asked AS (
    SELECT CASE WHEN json_valid(request) THEN request ELSE '{}' END AS request, at FROM (
        SELECT request, created_s AS at FROM creations UNION ALL SELECT request, COALESCE(ended_s, created_s) FROM jobs))"""
LAST_USE: Final = f"""{ASKED} SELECT model, MAX(at) FROM (
    SELECT model, created_s AS at FROM creations
    UNION ALL SELECT json_extract(request, '$.model'), at FROM asked
    UNION ALL SELECT json_extract(actor.value, '$.model'), at FROM asked, json_each(request, '$.cast') AS actor WHERE actor.type='object'
) WHERE typeof(model)='text' GROUP BY model"""
GUIDES_USED: Final = f"""{ASKED} SELECT json_extract(request, '$.guide_as') AS way, MAX(at) FROM asked
    WHERE json_extract(request, '$.guide') IS NOT NULL GROUP BY way"""
ENLARGERS_USED: Final = f"""{ASKED} SELECT json_extract(request, '$.enlarger') AS folder, MAX(at) FROM asked
    WHERE json_extract(request, '$.upscale') > 1 GROUP BY folder"""
FILES_USED: Final = f"""{ASKED} SELECT file, MAX(at) FROM (
    SELECT json_extract(lora.value, '$.path') AS file, at FROM asked, json_each(request, '$.loras') AS lora WHERE lora.type='object'
    UNION ALL SELECT json_extract(request, '$.enlarger'), at FROM asked WHERE json_extract(request, '$.upscale') > 1
    UNION ALL SELECT json_extract(request, '$.control'), at FROM asked WHERE json_extract(request, '$.guide') IS NOT NULL
    UNION ALL SELECT json_extract(request, '$.adapter'), at FROM asked WHERE json_extract(request, '$.reference') IS NOT NULL
    UNION ALL SELECT json_extract(request, '$.voice.path'), at FROM asked
    UNION ALL SELECT json_extract(actor.value, '$.voice.path'), at FROM asked, json_each(request, '$.cast') AS actor WHERE actor.type='object'
) WHERE typeof(file)='text' GROUP BY file"""
"""What the owner keeps as files is used by their paths."""
SHELVED: Final = "SELECT path, created_s FROM creations"


def read_last_use(home: Home) -> dict[str, float]:
    """Return when each model was last used, by its id, as far as shelf, list of jobs and marks tell."""
    used = _ask(home, LAST_USE)
    seen = {READERS[way].id: at for way, at in _ask(home, GUIDES_USED).items() if way in READERS}
    for folder, at in _ask(home, ENLARGERS_USED).items():
        if (row := find_row(folder)) is not None:
            seen[row.id] = max(at, seen.get(row.id, 0.0))
    with suppress(OSError):
        marks = {mark.name: mark.stat().st_mtime for mark in home.used.iterdir()}
        seen |= {id_: max(at, seen.get(id_, 0.0)) for id_, at in marks.items()}
    return used | {id_: max(at, used.get(id_, 0.0)) for id_, at in seen.items()}


def mark_used(home: Home, model: str) -> None:
    """Mark that a model of the catalog is used now, for what neither shelf nor list of jobs tell: what was heard is in neither."""
    with suppress(OSError):
        home.used.mkdir(exist_ok=True)
        (home.used / model).touch()


def _ask(home: Home, query: str) -> dict[str, float]:
    try:
        with closing(sqlite3.connect(f"{home.database.resolve().as_uri()}?mode=ro", uri=True)) as database:
            return {str(name): float(at) for name, at in database.execute(query) if name and isinstance(at, float | int)}
    except (sqlite3.Error, ValueError):  # there is none yet, or it is being repaired
        return {}


def find_doubles(home: Home, models: Iterable[Model], halt: threading.Event, own: Iterable[Path] = ()) -> list[Double]:
    """Find files of models that are there twice: first by size, then by their ends, then by all they hold. `own`: files elsewhere that the owner
    added. CancelledError once `halt` is set."""
    repos = {repo for model in models if not model.path for repo in on_disk.list_repos(model)}
    folders = [*(on_disk.repo_folder(home.models, repo) for repo in repos), home.loras, home.enlargers, home.controls, home.adapters]
    by_size: defaultdict[int, dict[tuple[int, int], Path]] = defaultdict(dict)
    for path, facts in (*(each for folder in folders for each in _list_files(folder)), *_stat_all(own)):
        if facts.st_size >= DOUBLE_BYTES and not path.is_symlink():
            by_size[facts.st_size].setdefault((facts.st_dev, facts.st_ino or hash(path)), path)
    found = []
    for size, files in by_size.items():
        alike = [*files.values()]
        for read in (_hash_ends, _hash_all):
            groups: defaultdict[str, list[Path]] = defaultdict(list)
            for path in alike if len(alike) > 1 else ():
                if halt.is_set():
                    raise CancelledError
                with suppress(OSError):
                    groups[read(path, halt)].append(path)
            alike = [path for group in groups.values() if len(group) > 1 for path in group]
        for group in groups.values():
            if len(group) > 1:
                kept, *others = sorted(group, key=lambda each: (not each.is_relative_to(home.models), str(each)))
                found.append(Double(kept, tuple(others), size))
    return sorted(found, key=lambda each: -each.bytes * len(each.others))


def _stat_all(paths: Iterable[Path]) -> Iterator[tuple[Path, os.stat_result]]:
    for path in paths:
        with suppress(OSError):
            if path.is_file():
                yield path, path.stat()


def _hash_ends(path: Path, halt: threading.Event) -> str:
    with path.open("rb") as file:
        begin = file.read(BLOCK_BYTES)
        file.seek(-min(BLOCK_BYTES, path.stat().st_size), os.SEEK_END)
        return hashlib.sha256(begin + file.read()).hexdigest()


def _hash_all(path: Path, halt: threading.Event) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            if halt.is_set():
                raise CancelledError
            digest.update(block)
    return digest.hexdigest()


def is_ours(home: Home, path: Path) -> bool:
    """Tell whether a file lies where Hearth keeps models, so that it may change it."""
    return any(path.is_relative_to(folder) for folder in (home.models, home.loras, home.enlargers, home.controls, home.adapters))


def keep_one(home: Home, double: Double) -> int:
    """Let all names of a file that is there twice lead to one content; return how many bytes that freed. The contents are compared once more, and
    each name leads to a whole file at each moment."""
    freed, faults = 0, list[OSError]()
    for other in double.others:
        if not is_ours(home, double.kept) or not is_ours(home, other):
            continue
        link = other_disk.hidden(other, "double")
        try:
            if filecmp.cmp(double.kept, other, shallow=False):
                link.unlink(missing_ok=True)
                link.hardlink_to(double.kept)
                link.replace(other)
                freed += double.bytes
        except OSError as fault:  # on two disks, or on one that gives a file one name only
            faults.append(fault)
        finally:
            link.unlink(missing_ok=True)
    if not freed:
        why = word_fault(faults[0]) if faults else say("disk.changed", "they changed meanwhile")
        raise Trouble(
            say(
                "disk.not-one",
                "{file} stays there twice: one content under two names does not work here ({fault}). Delete one of them by hand.",
                file=double.kept.name,
                fault=why,
            )
        )
    return freed


def list_places(home: Home, partitions: Mapping[str, str]) -> list[Path]:
    """List where other disks begin, of what the system calls its disks: by mount point, its type of file system."""
    own = home.root.stat().st_dev
    places = []
    for mount, kind in partitions.items():
        with suppress(OSError):
            path = Path(mount)
            if (
                kind not in ("squashfs", "iso9660", "udf", "tmpfs", "overlay")
                and path.is_dir()
                and path.stat().st_dev != own
                and os.access(path, os.W_OK)
            ):
                places.append(path)
    return sorted(places)
