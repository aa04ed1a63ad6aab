"""The machines that were let in, in one JSON file of the main machine; whoever is not in it is refused."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base import atomic_write
from app.base.stored_json import read_stored

NAME_LETTERS: Final = 40
_ID: Final = re.compile(r"[0-9a-f]{32}")


class _Entry(TypedDict):
    name: str
    since_s: float
    resting: NotRequired[bool]
    left: NotRequired[bool]


class _File(TypedDict, total=False):
    machines: dict[str, _Entry]


_SCHEMA: Final = TypeAdapter(_File)
_State = tuple[int, int, int]
"""It holds a file's number, time and size."""


@dataclass(frozen=True, slots=True)
class Machine:
    id: str
    name: str
    since_s: float
    resting: bool = False
    """It gets no work until it is told otherwise."""
    left: bool = False
    """Its owner ended the pairing; it does not come back under this id."""


def clean_name(name: object) -> str:
    """Return a machine's name as it may be shown: one short line."""
    return clean_line(name, NAME_LETTERS) or "?"


def clean_line(given: object, letters: int) -> str:
    """Return what another machine says as one line of no more letters, without signs that move what stands around them."""
    words = "".join(letter if letter.isprintable() else " " for letter in str(given)[: 4 * letters])
    return " ".join(words.split())[:letters].strip()


class Register:
    """Looked at anew at each question: another process of the main machine may have changed it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "machines.json"
        self._lock = threading.Lock()
        self._latest: tuple[_State, list[Machine]] | None = None

    def list_machines(self) -> list[Machine]:
        state, latest = self._read_state(), self._latest
        if latest is None or state is None or latest[0] != state:
            machines = self._read()
            self._latest = (state, machines) if state is not None else None
            return [*machines]
        return [*latest[1]]

    def _read_state(self) -> _State | None:
        """Return what changes with every change of the file; it is always replaced, never written into."""
        try:
            about = self._file.stat()
        except OSError:
            return None
        return about.st_ino, about.st_mtime_ns, about.st_size

    def _read(self) -> list[Machine]:
        entries = read_stored(self._file, _SCHEMA, 3).get("machines", {})
        return [
            Machine(id_, clean_name(each["name"]), each["since_s"], each.get("resting", False), each.get("left", False))
            for id_, each in entries.items()
            if _ID.fullmatch(id_)
        ]

    def find(self, id_: str) -> Machine | None:
        return next((each for each in self.list_machines() if each.id == id_), None)

    def add(self, id_: str, name: object) -> Machine:
        machine = Machine(id_, clean_name(name), time.time())
        self._change(lambda machines: [*(each for each in machines if each.id != id_), machine])
        return machine

    def remove(self, id_: str) -> None:
        """Revoke a machine. Its certificate stays valid by itself, but nobody is served who is not in here."""
        self._change(lambda machines: [each for each in machines if each.id != id_])

    def let_rest(self, id_: str, resting: bool) -> None:
        self._change(lambda machines: [dataclasses.replace(each, resting=resting) if each.id == id_ else each for each in machines])

    def note_left(self, id_: str) -> None:
        self._change(lambda machines: [dataclasses.replace(each, left=True) if each.id == id_ else each for each in machines])

    def _change(self, how: Any) -> None:
        with self._lock:
            kept = {
                each.id: {key: value for key, value in dataclasses.asdict(each).items() if key != "id"}
                for each in how(self.list_machines())
            }
            atomic_write.write_text(self._file, json.dumps({"machines": kept}, ensure_ascii=False, indent=1))
