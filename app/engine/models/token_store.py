"""Where the token for gated models lies: in the system's keyring where the keyring library finds one, else where huggingface_hub keeps its own."""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, Final

from huggingface_hub import get_token, login, logout, whoami

SERVICE: Final = "Hearth"
ACCOUNT: Final = "huggingface.co"


def ring() -> Any:
    """The library, where it is installed and has a place that is meant for secrets; else None."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring

    # Its stand-ins for a system without one have a priority of 0 and less, and keep nothing or raise.
    return keyring if keyring.get_keyring().priority > 0 else None


def token() -> str | None:
    return _kept() or get_token()


def keep(given: str) -> None:
    """Proven with the hub first, whose errors are the caller's to tell; ValueError for an organisation's."""
    keys = ring()
    if keys is None:
        login(given, add_to_git_credential=False, skip_if_logged_in=False)
    else:
        if given.startswith("api_org"):
            raise ValueError(given[:7])
        whoami(given)
        try:
            keys.set_password(SERVICE, ACCOUNT, given)
        except keys.errors.KeyringError:  # locked, or the person said no
            login(given, add_to_git_credential=False, skip_if_logged_in=False)
    _kept.cache_clear()


def forget() -> None:
    """Out of both places."""
    keys = ring()
    if keys is not None and _kept() is not None:
        keys.delete_password(SERVICE, ACCOUNT)
    logout()
    _kept.cache_clear()


@functools.cache
def _kept() -> str | None:
    """Asked of the system once: some ask the person each time."""
    keys = ring()
    if keys is None:
        return None
    try:
        found: str | None = keys.get_password(SERVICE, ACCOUNT)
    except keys.errors.KeyringError:
        return None
    return found
