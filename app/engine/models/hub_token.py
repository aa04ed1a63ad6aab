"""The token for models behind a gate: proven with the hub, kept where secret.py says, never shown again."""

from __future__ import annotations

import re
from typing import Final

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from app.engine.models import token_store
from app.engine.models.hub import TOKENS_URL
from app.sentence import Trouble, say

_TOKEN: Final = re.compile(r"[A-Za-z0-9_\-.]{8,256}")


def known() -> bool:
    return token_store.token() is not None


def page(repo: str) -> str:
    """Where its terms are accepted."""
    return f"{constants.ENDPOINT}/{repo}"


def keep(token: str) -> None:
    """The errors are cut off from what caused them: that may hold the token."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise Trouble(say("gate.not-one", "That does not look like a token. Copy one from {tokens}; it begins with hf_.", tokens=TOKENS_URL))  # fmt: skip
    try:
        token_store.keep(token)
    except OfflineModeIsEnabled:
        raise Trouble(say("hub.offline", "Offline mode is on (HF_HUB_OFFLINE), so nothing is downloaded. Start Hearth without it to get models.")) from None  # fmt: skip
    except HfHubHTTPError as fault:
        status = fault.response.status_code
        if status in (401, 403):
            raise Trouble(say("gate.wrong", "{host} does not know this token. It may be cut off, or deleted; make a new one at {tokens}.", host=constants.ENDPOINT, tokens=TOKENS_URL)) from None  # fmt: skip
        raise Trouble(say("gate.unproven", "The token could not be tried: {host} answers {status}. Try again later.", host=constants.ENDPOINT, status=status)) from None  # fmt: skip
    except httpx2.TransportError:
        raise Trouble(say("gate.away", "The token could not be tried: {host} cannot be reached. Check the network.", host=constants.ENDPOINT)) from None  # fmt: skip
    except ValueError:
        raise Trouble(say("gate.organisation", "This is an organisation's token. Models behind a gate need one of your own account: {tokens}.", tokens=TOKENS_URL)) from None  # fmt: skip


def forget() -> None:
    token_store.forget()
