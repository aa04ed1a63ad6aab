"""Tell the owner's jobs from guests'; a guest's name is random, so that nobody can guess it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final, NewType

OwnerName = NewType("OwnerName", str)

OWNER: Final = OwnerName("owner")
_PREFIX: Final = "visitor-"
"""Journals have it since the first guest."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Limits of one guest, over all logins from their address. `share` is that of all guests. `waiting_all` holds for second
    jobs: whoever has none may queue one, so that turns can be fair."""

    letters: int = 2000
    side: int = 1024
    steps: int = 50
    batch: int = 2
    waiting: int = 2
    waiting_all: int = 8
    share: float = 0.5
    """This share of the last hour may be theirs."""


def new_guest(household: str) -> OwnerName:
    """Name a login. `household` is what all logins from one address of one link share: limits are counted by it."""
    return OwnerName(f"{_PREFIX}{household}-{secrets.token_hex(8)}")


def household_of(owner: str) -> str:
    """Return the household of a guest's name; a name without one, as older versions wrote it, stands for itself."""
    return owner.rpartition("-")[0] if owner.count("-") > 1 else owner


def is_guest(owner: str) -> bool:
    return owner.startswith(_PREFIX)
