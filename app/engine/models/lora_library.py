"""The library of LoRAs and embeddings: which files there are, found by name; their headers are read in the background. No torch."""

from __future__ import annotations

import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Final

from app.base.path_checks import size_bytes
from app.base.paths import Home, is_utf8
from app.engine.models.chosen import read_lora_places
from app.engine.models.fingerprint import fingerprint, hash_whole
from app.engine.models.lora_facts import LoraFacts, read_facts

FILES_MOST: Final = 20_000
"""So many files are listed."""
DEPTH_MOST: Final = 8
"""Folders are looked into down to this depth."""
ENDING: Final = ".safetensors"
Stamp = tuple[int, int]
Read = Callable[[Path], Any]


@dataclass(frozen=True, slots=True)
class LoraFile:
    name: str
    """It is its path in the library, without the ending; below its folders' names where another file is called so."""
    path: Path
    stamp: Stamp
    """It holds size and time, which change with the file."""

    @property
    def word(self) -> str:
        """What it is called in a prompt."""
        return self.path.stem


def list_loras(home: Home) -> list[LoraFile]:
    """List the files of Hearth's own folder and of those that the owner named, by name. No file is opened."""
    named, files = read_lora_places(home)
    return list_files((home.loras, *map(Path, named)), files)


def list_files(folders: Sequence[Path], files: Sequence[tuple[Path, str]]) -> list[LoraFile]:
    """List the files of these folders, and these with their titles, each path once, by a name of its own."""
    found: dict[str, LoraFile] = {}
    paths: set[tuple[str, str]] = set()
    locate = cache(os.path.realpath)
    for each in islice(_list_all(folders, files), FILES_MOST):
        place = (locate(each.path.parent), each.path.name)
        if place not in paths and is_utf8(each.path):
            paths.add(place)
            name = _name_apart(each, found)
            found[name] = replace(each, name=name)
    return sorted(found.values(), key=lambda each: (each.name.lower(), each.name))


def _name_apart(file: LoraFile, taken: Container[str]) -> str:
    """Return its name, with as many of the folders above it as no other file is called by."""
    name, above = file.name, file.path.parent
    for _ in range(name.count("/")):
        above = above.parent
    while name in taken and above != above.parent:
        name, above = f"{above.name}/{name}", above.parent
    return next(each for each in chain([name], (f"{name} {number}" for number in count(2))) if each not in taken)


def _list_all(folders: Sequence[Path], files: Sequence[tuple[Path, str]]) -> Iterator[LoraFile]:
    linked = {*map(os.path.realpath, folders)}
    for folder in folders:
        yield from _walk(folder, "", DEPTH_MOST, linked)
    for path, title in files:
        with suppress(OSError):
            if path.name.lower().endswith(ENDING) and stat.S_ISREG((found := path.stat()).st_mode):
                yield LoraFile(title or path.stem, path, (found.st_size, found.st_mtime_ns))


def _walk(folder: Path, before: str, depth: int, linked: set[str]) -> Iterator[LoraFile]:
    """Yield the files of a folder and of those in it; a link is followed where it leads out, once, and its place joins `linked`."""
    with suppress(OSError), os.scandir(folder) as entries:  # it may have gone, or nobody may look into it
        for entry in entries:
            with suppress(OSError):  # it went just now, or a link leads in a circle
                name = f"{before}{entry.name}"
                if not is_utf8(Path(entry.name)):
                    continue
                if entry.is_dir():
                    place = os.path.realpath(entry.path) if entry.is_symlink() else ""
                    if depth and not entry.name.startswith(".") and place not in linked:
                        if place:
                            linked.add(place)
                        yield from _walk(Path(entry.path), f"{name}/", depth - 1, linked)
                elif entry.name.lower().endswith(ENDING) and entry.is_file():
                    found = entry.stat()
                    yield LoraFile(name[: -len(ENDING)], Path(entry.path), (found.st_size, found.st_mtime_ns))


class LoraNames:
    """Finds files by their name in the library, by their file's name alone, or by their path, as prompts, pictures and requests have it; large and small
    letters count only between several. A name in the library may have been longer once, or have had its last folder before it again."""

    def __init__(self, files: Sequence[LoraFile]) -> None:
        self._exactly, self._alike = dict[str, list[LoraFile]](), dict[str, list[LoraFile]]()
        ways: tuple[Callable[[LoraFile], str], ...] = (lambda each: each.name, lambda each: each.word, _full_name)
        for call in ways:  # what the first finds goes first
            for each in files:
                self._exactly.setdefault(call(each), []).append(each)
                self._alike.setdefault(call(each).lower(), []).append(each)

    def find(self, name: str) -> LoraFile | None:
        wanted = _cut_ending(name.replace("\\", "/"))
        first, _, shorter = wanted.partition("/")
        found = self._list(wanted)
        if not found and first and Path(shorter).parent.name == first:
            found = sorted(self._list(shorter), key=lambda each: each.name == shorter)  # the last: the one beside which it was named so
        return next(iter(found), None)

    def _list(self, wanted: str) -> list[LoraFile]:
        folder, _, word = wanted.rpartition("/")
        below = (each for each in self._exactly.get(word, ()) if _full_name(each).endswith(f"/{wanted}")) if folder else ()
        return [*self._exactly.get(wanted, ()), *self._alike.get(wanted.lower(), ()), *below]


def _full_name(file: LoraFile) -> str:
    return _cut_ending(file.path.as_posix())


def _cut_ending(name: str) -> str:
    return name[: -len(ENDING)] if name.lower().endswith(ENDING) else name


def find_copies(paths: Iterable[str]) -> dict[str, str]:
    """Return for each of a few paths the first of them that has the same content; of those of one size samples are read, of those with the same
    samples all."""
    contents: dict[str, Hashable] = {path: size_bytes(Path(path)) for path in paths}
    for read in (_sample, _hash):
        counts = Counter(contents.values())
        contents = {path: read(Path(path)) if counts[content] > 1 else content for path, content in contents.items()}
    first: dict[Hashable, str] = {}
    return {path: first.setdefault(content, path) for path, content in contents.items()}


def _sample(path: Path) -> str:
    return _read_once(fingerprint, path)


def _hash(path: Path) -> str:
    return _read_once(hash_whole, path)


def _read_once(read: Callable[[Path], str], path: Path) -> str:
    """Return what a file's content is known by, read again only once it changed; one that cannot be read is like no other."""
    with suppress(OSError):
        found = path.stat()
        return _recall(read, path, (found.st_size, found.st_mtime_ns))
    return str(path)


@lru_cache(FILES_MOST)
def _recall(read: Callable[[Path], str], path: Path, _: Stamp) -> str:
    return read(path)


@dataclass(slots=True)
class LoraReader:
    """What is known of the files; a thread reads what is not known yet, file by file: first all headers."""

    _known: dict[tuple[Read, Path], tuple[Stamp, Any]] = field(default_factory=dict)
    _wanted: dict[Read, dict[Path, Stamp]] = field(default_factory=lambda: {read_facts: {}, _sample: {}, _hash: {}})
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def look(self, files: Iterable[LoraFile]) -> dict[Path, LoraFacts]:
        """Return what is known by now, and have the rest read."""
        return self._look(read_facts, [*files])

    def compare(self, files: Sequence[LoraFile]) -> tuple[dict[Path, Hashable], int]:
        """Return what is known of each content, the same for the same one, and how many are still to be read for it: of those of one size samples,
        of those with the same samples all."""
        contents: dict[Path, Hashable] = {each.path: each.stamp[0] for each in files}
        unread = 0
        for read in (_sample, _hash):
            counts = Counter(contents.values())
            alike = [each for each in files if counts[contents[each.path]] > 1]
            known = self._look(read, alike)
            contents |= {each.path: known.get(each.path, each.path) for each in alike}
            unread += len(alike) - len(known)
        return contents, unread

    def _look(self, read: Read, files: Sequence[LoraFile]) -> dict[Path, Any]:
        with self._lock:
            known = {each.path: found[1] for each in files if (found := self._known.get((read, each.path))) and found[0] == each.stamp}
            self._wanted[read] |= {each.path: each.stamp for each in files if each.path not in known}
            if self._wanted[read] and self._thread is None:
                self._thread = threading.Thread(target=self._read_all, name="loras", daemon=True)
                self._thread.start()
        return known

    def _read_all(self) -> None:
        while True:
            with self._lock:
                read, wanted = next(((read, wanted) for read, wanted in self._wanted.items() if wanted), (None, {}))
                if read is None:
                    self._thread = None
                    return
                path, stamp = next(iter(wanted.items()))
            found = read(path)
            with self._lock:
                self._known[read, path] = stamp, found
                if wanted.get(path) == stamp:
                    del wanted[path]
