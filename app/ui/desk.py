"""What every tab shares: the keeper, the settings, the language, and whose work is whose."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.engine import catalog
from app.engine.process import Keeper
from app.sentence import Trouble


class Settings:
    """Settings and drafts of the owner, kept in one JSON file that is written whole."""

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


@dataclass(slots=True)
class Desk:
    """One for the whole window."""

    keeper: Keeper
    settings: Settings
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    """The job each person sees in a tab: (person, kind) -> job. A tab that opens later picks it up."""

    def title(self, model: str) -> str:
        try:
            return catalog.find(model).title if model else ""
        except Trouble:
            return Path(model).name
