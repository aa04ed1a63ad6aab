"""The owner's settings and drafts: one JSON file, written atomically."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app import atomic_write
from app.sentence import Trouble, say
from app.stored_json import read_stored
from app.ui.state.settings_schema import SETTINGS


class Settings:
    """The owner's settings and drafts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._values = read_stored(file, SETTINGS)

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self._values.get(name, otherwise)

    def put(self, changes: Mapping[str, Any]) -> None:
        with self._lock:
            self._write(changes)

    def change(self, name: str, otherwise: Any, how: Callable[[Any], Any]) -> None:
        """Change one value under the lock, from what it is now."""
        with self._lock:
            self._write({name: how(self._values.get(name, otherwise))})

    def _write(self, changes: Mapping[str, Any]) -> None:
        """Write the file, then take the values over; a failed write changes nothing and raises Trouble."""
        values = {**self._values, **changes}
        if values != self._values:
            try:
                atomic_write.write_text(self._file, json.dumps(values, ensure_ascii=False, indent=1))
            except (OSError, ValueError) as fault:
                raise Trouble(
                    say("choice.not-kept", "The settings could not be saved ({fault}), so nothing changed. Fix this, then choose again.",
                        fault=getattr(fault, "strerror", None) or str(fault))
                ) from fault  # fmt: skip
            self._values = values
