"""Guests who come again: their browser keeps who it is, signed, over the end of a share, and the settings what they are called."""

from __future__ import annotations

import contextlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Any, Final

from app.base.trouble import Trouble
from app.engine.jobs.owners import OwnerName, is_guest
from app.ui.state.settings import Settings

SAVED: Final = "guests"
NAMES_MOST: Final = 200
"""The names of so many guests are kept, of those that were given last."""


@dataclass(frozen=True, slots=True)
class KeptGuests:
    """What a browser keeps lets nobody in: it says only which guest comes in by the password of the share."""

    settings: Settings

    def read_key(self, purpose: str) -> bytes:
        """Return a key of this home, drawn once. Where it cannot be saved, nobody is known again."""

        def draw(saved: dict[str, Any]) -> dict[str, Any]:
            return {"key": secrets.token_hex(32), "names": {}, **saved}

        if not self.settings.get(SAVED, {}).get("key"):
            with contextlib.suppress(Trouble):
                self.settings.change(SAVED, {}, draw)
        key = bytes.fromhex(self.settings.get(SAVED, {}).get("key") or secrets.token_hex(32))
        return hmac.digest(key, purpose.encode(), "sha256")

    def sign(self, guest: str) -> str:
        """Return what a guest's browser keeps."""
        return f"{guest}.{self._seal(guest)}"

    def read(self, kept: str) -> OwnerName | None:
        """Return the guest that a browser says it is; None if this Hearth never said so."""
        guest, _, seal = kept.rpartition(".")
        right = is_guest(guest) and hmac.compare_digest(self._seal(guest).encode(), seal.encode())
        return OwnerName(guest) if right else None

    def find_name(self, guest: str) -> str:
        """Return what a guest is called; "" for one of whom no name is kept."""
        name = self.settings.get(SAVED, {}).get("names", {}).get(guest)
        return name if isinstance(name, str) else ""

    def keep_name(self, guest: str, name: str) -> None:
        """Keep what a guest is called; "": forget it."""
        if name == self.find_name(guest):
            return

        def keep(saved: dict[str, Any]) -> dict[str, Any]:
            names = {each: called for each, called in saved.get("names", {}).items() if each != guest} | ({guest: name} if name else {})
            return {**saved, "names": dict([*names.items()][-NAMES_MOST:])}

        with contextlib.suppress(Trouble):  # then they are asked again
            self.settings.change(SAVED, {}, keep)

    def _seal(self, guest: str) -> str:
        return hmac.digest(self.read_key("guest"), guest.encode("utf-8", "replace"), "sha256").hex()
