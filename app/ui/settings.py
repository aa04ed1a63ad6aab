"""Settings and drafts of the owner: one JSON file."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Settings:
    """Settings and drafts of the owner, kept in one file that is written whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        try:
            kept = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            kept = {}
        self._values: dict[str, Any] = kept if isinstance(kept, dict) else {}

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self._values.get(name, otherwise)

    def put(self, changes: Mapping[str, Any]) -> None:
        with self._lock:
            if all(self._values.get(name) == value for name, value in changes.items()):
                return
            self._values.update(changes)
            half = self._file.with_suffix(".part")
            half.write_text(json.dumps(self._values, ensure_ascii=False, indent=1), "utf-8")
            half.replace(self._file)
