"""Models of other programs on this computer: listed at once, then read in the background, header by header. Nothing is copied, nothing written there.

A folder is walked within bounds, its links followed once; what is a pickle is named and never opened."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.base.paths import is_utf8
from app.base.sentence import Sentence, say
from app.base.trouble import Trouble
from app.engine.models import detect, safetensors
from app.engine.models.fingerprint import fingerprint
from app.engine.models.model import Companion, Model, list_sources
from app.engine.models.other_tools import Role, Tool, find_tools
from app.engine.models.picture_families import FAMILIES as PICTURES

FILES_MOST: Final = 20_000
"""At most so many files of one program are listed; what lies beyond is not."""
FOLDERS_MOST: Final = 5_000
DEEP_MOST: Final = 8
READ: Final = frozenset({*safetensors.ENDINGS, ".gguf"})
PAUSE_S: Final = 0.005
"""It pauses so long between two headers, so that the page answers as quickly as ever."""

_log = logging.getLogger("hearth")


@dataclass(frozen=True, slots=True)
class Found:
    """A file or a diffusers folder."""

    path: Path
    role: Role
    title: str
    bytes: int = 0
    """0: it is a folder, which is not measured."""
    changed_ns: int = 0

    @property
    def readable(self) -> bool:
        return not self.bytes or self.path.suffix.lower() in READ


@dataclass(frozen=True, slots=True)
class Kept:
    """What one program keeps."""

    tool: str
    root: Path
    files: tuple[Found, ...]

    def count(self, role: Role) -> int:
        return sum(each.role == role for each in self.files)

    def search(self, words: str = "") -> list[Found]:
        """List the models whose path or title has all the words, by their titles."""
        wanted = words.lower().split()
        hits = (each for each in self.files if each.role == "model" and all(word in f"{each.title} {each.path}".lower() for word in wanted))
        return sorted(hits, key=lambda each: each.title.lower())

    @property
    def words(self) -> Sentence:
        """Name the program, and how much it keeps."""
        return say(
            "found.tool",
            "{tool} ({models} {models:model|models}, {loras} {loras:LoRA|LoRAs})",
            tool=self.tool,
            models=self.count("model"),
            loras=self.count("lora"),
        )


@dataclass(frozen=True, slots=True)
class Told:
    """What a header said: a model that Hearth can use, or why not."""

    model: Model | None = None
    trouble: Trouble | None = None


def list_kept(tools: Iterable[Tool], known: Container[str] = ()) -> tuple[Kept, ...]:
    """List what each program keeps, but for titles that are known; what several of them share counts for the first. Opens no file."""
    visited: set[tuple[int, int]] = set()
    kept = (Kept(each.name, each.root, tuple(_list_files(each, visited, known))) for each in tools)
    return tuple(each for each in kept if each.files)


def _list_files(tool: Tool, visited: set[tuple[int, int]], known: Container[str]) -> Iterator[Found]:
    left, own = FILES_MOST, {folder for _, folder in tool.folders}
    for role, path, title in tool.named:
        if title not in known and is_utf8(path) and _is_new(path, visited):
            facts = path.stat()
            yield Found(path, role, title, 0 if path.is_dir() else max(1, facts.st_size), facts.st_mtime_ns)
    for role, folder in tool.folders:
        for found in _walk(folder, role, visited, own, tool.name == "Draw Things"):
            if not left:
                return
            left -= 1
            yield found


def _walk(top: Path, role: Role, visited: set[tuple[int, int]], own: Container[Path], flat: bool) -> Iterator[Found]:
    waiting, walked = [(top, 0)], 0
    while waiting and walked < FOLDERS_MOST:
        folder, deep = waiting.pop()
        walked += 1
        if not _is_new(folder, visited):
            continue
        try:
            entries = sorted(os.scandir(folder), key=lambda each: each.name)
        except OSError:
            continue
        if deep and any(each.name == "model_index.json" for each in entries):
            yield Found(folder, role, detect.name_path(folder), changed_ns=folder.stat().st_mtime_ns)
            continue
        for entry in entries:
            path = Path(entry.path)
            suffix = path.suffix.lower()
            with suppress(OSError):  # it went just now, or a link leads nowhere or in a circle
                if entry.name.startswith(".") or not is_utf8(path):
                    continue
                if entry.is_dir():
                    if deep < DEEP_MOST and not flat and path not in own:
                        waiting.append((path, deep + 1))
                elif suffix in READ | safetensors.PICKLES and entry.is_file() and _is_new(path, visited):
                    is_lora = flat and "lora" in path.stem
                    facts = path.stat()
                    yield Found(path, "lora" if is_lora else role, detect.name_path(path), max(1, facts.st_size), facts.st_mtime_ns)


def _is_new(path: Path, visited: set[tuple[int, int]]) -> bool:
    """Tell whether a file or folder has not been seen by another name, and remember it."""
    try:
        facts = path.stat()
    except OSError:
        return False
    number = facts.st_dev, facts.st_ino or hash(path)
    if number in visited:
        return False
    visited.add(number)
    return True


def find_doubles(files: Iterable[Found]) -> dict[Path, Path]:
    """Return for each file the first one with the same content. Only files of one size are compared, by their header and samples of their weights."""
    by_size: dict[int, list[Path]] = defaultdict(list)
    for each in files:
        if each.bytes and each.readable:
            by_size[each.bytes].append(each.path)
    doubles = {}
    for alike in by_size.values():
        first: dict[str, Path] = {}
        for path in alike if len(alike) > 1 else ():
            with suppress(OSError):
                print_ = fingerprint(path)
                if print_ in first:
                    doubles[path] = first[print_]
                first.setdefault(print_, path)
    return doubles


@dataclass(slots=True)
class Finder:
    """Looks when a person asks, in a thread that nobody waits for: a disk may never answer."""

    catalog: tuple[Mapping[str, Model], Mapping[str, Companion]]
    find: Callable[[], tuple[Tool, ...]] = find_tools
    kept: tuple[Kept, ...] = ()
    told: dict[Found, Told] = field(default_factory=dict)
    doubles: Mapping[Path, Path] = field(default_factory=dict)
    looked: bool = False
    """True: the list is complete."""
    reading: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Look again, unless that is just being done."""
        with self._lock:
            if self.reading:
                return
            self.reading = True
        threading.Thread(target=self.look_now, name="found-models", daemon=True).start()

    def list_soon(self) -> None:
        """List what there is, and read nothing: what guides a picture or is imitated is offered before anybody opens Models."""
        threading.Thread(target=self._list, name="found-files", daemon=True).start()

    def _list(self) -> None:
        self.kept = list_kept(self.find(), {source.repo for model in self.catalog[0].values() for source in list_sources(model)})

    def look_now(self) -> None:
        """List, then read; what was read and is still as it was is not read again."""
        try:
            self._list()
            self.looked = True
            models = [each for kept in self.kept for each in kept.files if each.role == "model"]
            for each in models:
                if each not in self.told and each.readable:
                    self.told[each] = tell(each.path, self.catalog)
                    time.sleep(PAUSE_S)
            self.doubles = find_doubles(models)
        except Exception:  # whatever others wrote: the list is then what it was
            _log.exception("looking for other programs' models")
        finally:
            self.looked, self.reading = True, False

    def word(self, file: Found) -> tuple[tuple[str | Sentence, ...], Sentence | None]:
        """Say what is known of a file, and why Hearth cannot use it."""
        told, double = self.told.get(file, Told()), self.doubles.get(file.path)
        facts: list[str | Sentence] = []
        if told.model is not None:
            facts = [
                PICTURES[told.model.family].title if told.model.family in PICTURES else told.model.family,
                *filter(None, [told.model.precision]),
            ]
            if lacks := tuple(dict.fromkeys(_PART_WORDS.get(each, _ENCODER) for each in told.model.lacks)):
                facts.append(say("found.lacks", "without {parts}", parts=lacks))
        if double is not None:
            facts.append(say("found.double", "the same file as {path}", path=str(double)))
        trouble = told.trouble.sentence if told.trouble is not None else None if file.readable else _word_unread(file)
        return tuple(facts), trouble


_ENCODER: Final = say("file.encoder", "text encoder")
_PART_WORDS: Final = {"vae": "VAE"}


def _word_unread(file: Found) -> Sentence:
    if "com.liuliu.draw-things" in file.path.parts:
        return say(
            "found.draw-things", "Draw Things keeps its models in a format of its own, which only it reads. Get the .safetensors version."
        )
    return say("found.pickle", "A pickle, which can run any program when opened, so Hearth leaves it closed. Get the .safetensors version.")


def tell(path: Path, catalog: tuple[Mapping[str, Model], Mapping[str, Companion]]) -> Told:
    """Say what a file or folder is. A pickle is not opened."""
    try:
        return Told(model=detect.detect_model(path, *catalog))
    except Trouble as trouble:
        return Told(trouble=copy(trouble))
