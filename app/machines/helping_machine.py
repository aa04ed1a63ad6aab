"""A machine that helps, as the main machine sees it, and what of its own words about itself is believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from app.base.sentence import Sentence
from app.engine.jobs.events import Step
from app.machines.joining.register import clean_line
from app.machines.model_names import has_model

FREE_MOST: Final = 64 << 40
"""Bytes of memory that a machine may say are free; more is no figure."""


@dataclass(frozen=True, slots=True)
class HelpingMachine:
    id: str
    name: str
    online: bool = False
    resting: bool = False
    """It gets no work, as the owner of this machine wants."""
    paused: bool = False
    """By its own owner, or while work of his goes first."""
    card: str = ""
    free_bytes: int = 0
    models: frozenset[str] = frozenset()
    fetches: bool = False
    """Its owner lets it fetch models."""
    fetching: str = ""
    """The name of the model that it fetches now."""
    fetched: float = 0.0
    """Share of that."""
    lack: str = ""
    """Why the last model did not come: no-room or failed."""
    tasks: tuple[str, ...] = ()
    """What it has now."""
    doing: str = ""
    """The prompt or script of the first of them."""
    done: int = 0
    """Its tasks that arrived whole since this machine's start."""
    step: Step | None = None
    """How far it is."""
    why: Sentence | None = None
    """Why it was given that."""
    refused: Sentence | None = None
    """Why it may not come, as its versions are others."""
    silent: bool = False
    """It has said nothing of its tasks for too long."""
    left: bool = False
    """Its owner ended the pairing."""
    failed: Sentence | None = None
    """Why nothing of its latest task could be used."""
    cluster: str = ""
    """The address of the Dask cluster whose worker it is; empty: it was paired."""


def is_at_work(machine: HelpingMachine) -> bool:
    return machine.online and not (machine.paused or machine.resting or machine.silent)


def is_able(machine: HelpingMachine, model: str) -> bool:
    """`model`: by its name for other machines."""
    return is_at_work(machine) and has_model(machine.models, model)


def read_facts(given: object) -> dict[str, Any]:
    """Return what a helper says of itself, with what is odd left out."""
    values = given if isinstance(given, dict) else {}
    models, free_bytes, fetched = values.get("models"), values.get("free_bytes"), values.get("fetched")
    return {
        "paused": values.get("paused") is True,
        "card": clean_line(values.get("card", ""), 100),
        "free_bytes": free_bytes if isinstance(free_bytes, int) and 0 <= free_bytes <= FREE_MOST else 0,
        "fetches": values.get("fetches") is True,
        "fetching": str(values.get("fetching", ""))[:100],
        "fetched": min(1.0, max(0.0, fetched)) if isinstance(fetched, float) and fetched == fetched else 0.0,
        "left": values.get("left") is True,
        "lack": lack if (lack := values.get("lack")) in ("no-room", "failed") else "",
        "models": [each[:100] for each in (models if isinstance(models, list | tuple) else ())[:1000] if isinstance(each, str)],
    }
