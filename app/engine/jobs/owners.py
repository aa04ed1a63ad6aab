"""Tell the owner's jobs from guests'; a guest's name is random, so that nobody can guess it."""

from __future__ import annotations

import secrets
from typing import Final, NewType

OwnerName = NewType("OwnerName", str)

OWNER: Final = OwnerName("owner")
_PREFIX: Final = "visitor-"
"""As it stands in journals since the first guest."""


def new_guest(household: str) -> OwnerName:
    """Name a login. `household` is what all logins from one address of one link share: limits are counted by it."""
    return OwnerName(f"{_PREFIX}{household}-{secrets.token_hex(8)}")


def household_of(owner: str) -> str:
    """Return the household of a guest's name; a name without one, as older versions wrote it, stands for itself."""
    return owner.rpartition("-")[0] if owner.count("-") > 1 else owner


def is_guest(owner: str) -> bool:
    return owner.startswith(_PREFIX)
