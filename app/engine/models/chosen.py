"""Read the choices forced on the Machine tab from the settings file, for window, command line and engine. No torch."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base.paths import Home
from app.base.stored_json import drop_wrong, read_text
from app.base.trouble import Trouble
from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice, Dtype, Gqa, Kernel, Offload, Quantised
from app.engine.jobs.journal import restore_choice


class ChoiceValues(TypedDict, total=False):
    """A choice as JSON has it."""

    chunk: int | str
    gqa: Gqa | None
    kernels: list[Kernel] | Kernel | None
    dtype: Dtype | None
    offload: Offload | None
    quantised: Quantised | None


CHOICE: Final = TypeAdapter(ChoiceValues)


def read_choice(home: Home) -> Choice:
    """Return the current choice; automatic if there is none or it cannot be read."""
    try:
        kept = json.loads(read_text(home.settings) or "{}")
    except (OSError, ValueError, RecursionError):
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
    """Keep only the names of a choice's fields, with values that they may have."""
    names = {each.name for each in dataclasses.fields(Choice)}
    given = kept.items() if isinstance(kept, dict) else ()
    known = {name: [*value] if isinstance(value, tuple) else value for name, value in given if name in names}
    drop_wrong(CHOICE, known)
    return known
