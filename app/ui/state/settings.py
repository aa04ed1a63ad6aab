"""The owner's settings and drafts: one JSON file, written atomically."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from app.base import atomic_write
from app.base.disk_faults import word_fault
from app.base.sentence import say
from app.base.stored_json import read_stored
from app.base.trouble import NotStored, Trouble
from app.ui.state.settings_schema import SETTINGS

OWNER_ONLY: Final = 0o600
"""The settings hold the address of the owner's phone: whoever knows it can write there."""
AGAIN_S: Final = 1.0
"""A file that could not be read is tried again after this wait."""


class Settings:
    """The owner's settings and drafts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._unread: OSError | None = None
        """It says why the file could not be read, which is tried again until it can be."""
        self._tried_s = 0.0
        self._read()

    def get(self, name: str, otherwise: Any = None) -> Any:
        if self._unread is not None and time.monotonic() - self._tried_s > AGAIN_S:
            with self._lock:
                self._read()
        return self._values.get(name, otherwise)

    def put(self, changes: Mapping[str, Any]) -> None:
        with self._lock:
            self._require_read()
            self._write(changes)

    def change(self, name: str, otherwise: Any, how: Callable[[Any], Any]) -> None:
        """Change one value under the lock, from what it is now."""
        with self._lock:
            self._require_read()
            self._write({name: how(self._values.get(name, otherwise))})

    def _require_read(self) -> None:
        """Raise Trouble if what the file holds is not known: writing would lose it."""
        if self._unread is not None:
            self._read()
        if self._unread is not None:
            raise Trouble(
                say(
                    "choice.not-read",
                    "Nothing was saved: {file} cannot be read now ({fault}), and what it holds would be lost. "
                    "See that your account may read it and that no other program holds it, then try again.",
                    file=str(self._file),
                    fault=word_fault(self._unread),
                )
            ) from self._unread

    def _read(self) -> None:
        self._tried_s = time.monotonic()
        try:
            self._values, self._unread = read_stored(self._file, SETTINGS), None
        except OSError as fault:
            self._unread = fault

    def _write(self, changes: Mapping[str, Any]) -> None:
        """Write the file, then take the values over; a failed write changes nothing and raises Trouble."""
        values = {**self._values, **changes}
        if values != self._values:
            try:
                atomic_write.write_text(self._file, json.dumps(values, ensure_ascii=False, indent=1), OWNER_ONLY)
            except (OSError, ValueError) as fault:
                raise NotStored(
                    say(
                        "choice.not-kept",
                        "The settings could not be saved ({fault}), so nothing changed. Fix this, then choose again.",
                        fault=getattr(fault, "strerror", None) or str(fault),
                    )
                ) from fault
            self._values = values
