"""Store the access token for gated models: checked with the hub, kept in the system's keyring or where huggingface_hub
keeps its own, never shown."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from typing import Any, Final

import httpx2
import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from app.base.sentence import say
from app.base.trouble import Trouble

TOKENS_URL: Final = "https://huggingface.co/settings/tokens"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_\-.]{8,256}")
SERVICE: Final = "Hearth"
ACCOUNT: Final = "huggingface.co"
NAMES: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""Each of these variables may hold a token."""


def has_token() -> bool:
    return get_token() is not None


def terms_page(repo: str) -> str:
    """Return the page where the terms are accepted."""
    return f"{constants.ENDPOINT}/{repo}"


def store(token: str) -> None:
    """Check and store the token, in the hub's process. Errors are raised without their cause, which may contain the token."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise Trouble(
            say("token.not-one", "This does not look like an access token. Copy one from {tokens}; it begins with hf_.", tokens=TOKENS_URL)
        )
    try:
        _store(token)
    except OfflineModeIsEnabled:
        raise Trouble(
            say("hub.offline", "Offline mode is on (HF_HUB_OFFLINE), so nothing can be downloaded. Restart Hearth without it.")
        ) from None
    except HfHubHTTPError as fault:
        status = fault.response.status_code
        if status in (401, 403):
            raise Trouble(
                say(
                    "token.wrong",
                    "{host} rejected this token. It may be incomplete or deleted; make a new one at {tokens}.",
                    host=constants.ENDPOINT,
                    tokens=TOKENS_URL,
                )
            ) from None
        raise Trouble(
            say(
                "token.unproven",
                "Could not check the token: {host} answered {status}. Try again later.",
                host=constants.ENDPOINT,
                status=status,
            )
        ) from None
    except httpx2.TransportError:
        raise Trouble(
            say("token.away", "Could not check the token: cannot connect to {host}. Check your network.", host=constants.ENDPOINT)
        ) from None
    except ValueError:
        raise Trouble(
            say(
                "token.organisation",
                "This token belongs to an organisation. Gated models need a token of your own account: {tokens}.",
                tokens=TOKENS_URL,
            )
        ) from None


def find_keyring() -> Any:
    """Return the keyring library if it is installed and has a secure store; else None."""
    if importlib.util.find_spec("keyring") is None:
        return None
    import keyring

    # Its fallbacks for systems without a keyring have a priority of 0 or less, and store nothing or raise.
    return keyring if keyring.get_keyring().priority > 0 else None


def get_token() -> str | None:
    return _read_keyring() or take_from_environment() or huggingface_hub.get_token()


@functools.cache
def take_from_environment() -> str | None:
    """Take the token out of this process's environment, which everything that it starts would get."""
    found = [os.environ.pop(name, "").strip() for name in NAMES]
    return next(filter(None, found), None)


def forget_what_was_read() -> None:
    """Read the keyring anew when the token is needed next: another process has stored one."""
    _read_keyring.cache_clear()


def _store(given: str) -> None:
    """Check the token with the hub, then store it. The hub's errors are left to the caller; ValueError for an
    organisation's token."""
    keys = find_keyring()
    if keys is None:
        huggingface_hub.login(given, add_to_git_credential=False, skip_if_logged_in=False)
    else:
        if given.startswith("api_org"):
            raise ValueError(given[:7])
        huggingface_hub.whoami(given)
        try:
            keys.set_password(SERVICE, ACCOUNT, given)
        except keys.errors.KeyringError:  # locked, or access was denied
            huggingface_hub.login(given, add_to_git_credential=False, skip_if_logged_in=False)
    _read_keyring.cache_clear()


def forget() -> None:
    """Delete the token from both places."""
    keys = find_keyring()
    if keys is not None and _read_keyring() is not None:
        keys.delete_password(SERVICE, ACCOUNT)
    huggingface_hub.logout()
    _read_keyring.cache_clear()


@functools.cache
def _read_keyring() -> str | None:
    """Read the keyring once: some systems ask the user at every read."""
    keys = find_keyring()
    if keys is None:
        return None
    try:
        found: str | None = keys.get_password(SERVICE, ACCOUNT)
    except keys.errors.KeyringError:
        return None
    return found
