"""The public face's Choice: it may name a chunk size too, as it did before decide() was given that beside it."""

from __future__ import annotations

from dataclasses import dataclass

from app.compat.planning import types
from app.compat.planning.types import AUTO, Chunk


@dataclass(frozen=True, slots=True)
class Choice(types.Choice):
    chunk: Chunk = AUTO
    """Counts where decide() is given none."""
