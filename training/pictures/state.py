"""Save and load the state of an unfinished training, so that it can resume."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch


def save_state(folder: Path, parts: Mapping[str, Any], step: int) -> None:
    """Write folder/state.pt atomically; each part has a state_dict()."""
    new = folder / "state.new"
    torch.save({name: part.state_dict() for name, part in parts.items()} | {"step": step}, new)
    new.replace(folder / "state.pt")


def load_state(folder: Path, parts: Mapping[str, Any]) -> int:
    """Restore all parts from folder/state.pt and return the next step."""
    state = torch.load(folder / "state.pt", weights_only=True)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return int(state["step"])
