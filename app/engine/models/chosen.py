"""Read the choices forced on the Machine tab from the settings file, for window, command line and engine. No torch."""

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
    """Return the current choice; automatic if there is none or it cannot be read."""
    try:
        kept = json.loads(home.settings.read_text("utf-8"))
    except (OSError, ValueError):
        return Choice()
    return parse_choice(kept.get("choice") if isinstance(kept, dict) else None)


def parse_choice(kept: Any) -> Choice:
    """Parse a choice from the settings, including the chunk. Invalid values count as automatic."""
    fields = keep_known_fields(kept)
    chunk = fields.get("chunk")
    try:
        return dataclasses.replace(restore_choice(fields), chunk=parse_chunk(None if chunk is None else str(chunk)))
    except Trouble:  # A value edited by hand to nonsense shows as automatic on the slider.
        return dataclasses.replace(restore_choice(fields), chunk=AUTO)


def keep_known_fields(kept: Any) -> dict[str, Any]:
    """Keep only the names of a choice's fields."""
    names = {each.name for each in dataclasses.fields(Choice)}
    return {name: value for name, value in kept.items() if name in names} if isinstance(kept, dict) else {}
