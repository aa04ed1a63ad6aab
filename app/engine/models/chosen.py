"""Read what the owner chose from the settings file, for window, command line and engine: what is forced on the Machine tab, the chunk size, the
voice. No torch."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from app.base.paths import Home
from app.base.stored_json import drop_wrong, read_text
from app.base.trouble import Trouble
from app.compat.planning.decide import parse_chunk
from app.compat.planning.types import AUTO, Choice, Chunk, Dtype, Gqa, Kernel, Offload, Quantised
from app.engine.jobs.journal import restore_choice
from app.engine.models import catalog
from app.engine.models.model import Model
from app.engine.models.on_disk import find_best
from app.engine.models.other_tools import Role, find_tools
from app.engine.models.voice_families import FAMILIES


class ChoiceValues(TypedDict, total=False):
    """A choice as JSON has it, with the chunk size."""

    chunk: int | str
    gqa: Gqa | None
    kernels: list[Kernel] | Kernel | None
    dtype: Dtype | None
    offload: Offload | None
    quantised: Quantised | None


LORA_ROLES: Final[tuple[Role, ...]] = ("lora", "embedding")
CHOICE: Final = TypeAdapter(ChoiceValues)


def read_choice(home: Home) -> Choice:
    """Return the current choice; automatic if there is none or it cannot be read."""
    return parse_choice(_read(home, "choice"))


def read_chunk(home: Home) -> Chunk:
    """Return the chunk size asked for last, which the settings keep beside the choice."""
    return parse_kept_chunk(_read(home, "choice"))


def find_usual_voice(home: Home) -> Model:
    """Return the voice of jobs that name none or the one chosen on Speak: that one, else the best that is installed."""
    kept = _read(home, "speak")
    chosen = kept.get("model") if isinstance(kept, dict) else None
    with suppress(Trouble):
        if isinstance(chosen, str) and chosen and (found := catalog.find(chosen)).family in FAMILIES:
            return found
    return find_best(home, "speech")


def read_lora_places(home: Home) -> tuple[list[str], list[tuple[Path, str]]]:
    """Return the folders of LoRAs and embeddings beside Hearth's own: those that the owner named, then those of the programs that Hearth was asked to
    look for; and the single ones that such programs have in lists of their own, with their titles there."""
    kept = _read(home, "loras")
    named = [each for each in kept if isinstance(each, str)] if isinstance(kept, list) else []
    others, files = read_tool_places(home, *LORA_ROLES)
    return [*dict.fromkeys((*named, *map(str, others)))], files


def read_tool_places(home: Home, *roles: Role) -> tuple[list[Path], list[tuple[Path, str]]]:
    """Return the folders that the programs which Hearth was asked to look for have for these roles, and what they have in lists of their own."""
    tools = find_tools() if _read(home, "finds") is True else ()
    files = [(path, title) for tool in tools for role, path, title in tool.named if role in roles]
    return [folder for tool in tools for role, folder in tool.folders if role in roles], files


def _read(home: Home, name: str) -> Any:
    try:
        kept = json.loads(read_text(home.settings) or "{}")
    except (OSError, ValueError, RecursionError):
        return None
    return kept.get(name) if isinstance(kept, dict) else None


def parse_choice(kept: Any) -> Choice:
    """Parse a choice from the settings. Invalid values count as automatic."""
    return restore_choice(keep_known_fields(kept))


def parse_kept_chunk(kept: Any) -> Chunk:
    """Parse the chunk size from the settings. One that was edited to nonsense shows as automatic on the slider."""
    chunk = keep_known_fields(kept).get("chunk")
    try:
        return parse_chunk(None if chunk is None else str(chunk))
    except Trouble:
        return AUTO


def keep_known_fields(kept: Any) -> dict[str, Any]:
    """Keep only the names of a choice's values, with values that they may have."""
    given = kept.items() if isinstance(kept, dict) else ()
    known = {name: [*value] if isinstance(value, tuple) else value for name, value in given if name in ChoiceValues.__annotations__}
    drop_wrong(CHOICE, known)
    return known
