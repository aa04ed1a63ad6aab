"""Read what the person forced on the Machine tab out of the settings file, for window, command line and engine alike. Imports no torch."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice
from app.engine.jobs.journal import restore_choice
from app.paths import Home
from app.sentence import Trouble


def read_choice(home: Home) -> Choice:
    """As the settings hold it now; automatic where there are none, or where they cannot be read."""
    try:
        kept = json.loads(home.settings.read_text("utf-8"))
    except (OSError, ValueError):
        return Choice()
    return parse_choice(kept.get("choice") if isinstance(kept, dict) else None)


def parse_choice(kept: Any) -> Choice:
    """A choice as the settings have it, the chunk included. What is nonsense there counts as automatic."""
    known = keep_known_fields(kept)
    chunk = known.get("chunk")
    try:
        return dataclasses.replace(restore_choice(known), chunk=parse_chunk(None if chunk is None else str(chunk)))
    except Trouble:  # Whoever wrote in the file by hand sees on the slider that it is automatic.
        return dataclasses.replace(restore_choice(known), chunk=AUTO)


def keep_known_fields(kept: Any) -> dict[str, Any]:
    """The names in it that are a choice's."""
    names = {each.name for each in dataclasses.fields(Choice)}
    return {name: value for name, value in kept.items() if name in names} if isinstance(kept, dict) else {}
