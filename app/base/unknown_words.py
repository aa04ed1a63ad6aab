"""A place of a text that a model does not know, for scripts and prompts alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MARKED_MOST: Final = 100


@dataclass(frozen=True, slots=True, order=True)
class Unknown:
    """A piece of a text that is not known; it may be replaced by what is near, or go."""

    begin: int
    end: int
    near: tuple[str, ...] = ()
