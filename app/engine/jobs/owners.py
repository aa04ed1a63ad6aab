"""Tell the owner's jobs from guests'; a guest's name is random, so that nobody can guess it."""

from __future__ import annotations

import secrets
from typing import Final, NewType

OwnerName = NewType("OwnerName", str)

OWNER: Final = OwnerName("owner")
_PREFIX: Final = "visitor-"


def new_guest() -> OwnerName:
    return OwnerName(f"{_PREFIX}{secrets.token_hex(8)}")


def is_guest(owner: str) -> bool:
    return owner.startswith(_PREFIX)
