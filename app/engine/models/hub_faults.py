"""Say what a failed download means: whether to try again, after how long, and in a sentence what stands in the way."""

from __future__ import annotations

from pathlib import Path

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import parse_ratelimit_headers  # type: ignore[attr-defined]  # it exports them lazily

from app.base.disk_faults import is_disk_full
from app.base.duration import word_duration
from app.base.sentence import Sentence, say
from app.base.trouble import NeedsKey, NotThere, Trouble
from app.engine.models import hub_token


class WrongBytesError(Exception):
    """The bytes received do not match the hub's checksum."""


class CutError(Exception):
    """The response ended before the file did."""


def read_status(fault: Exception) -> int:
    return fault.response.status_code if isinstance(fault, HfHubHTTPError) else 0


def is_temporary(fault: Exception) -> bool:
    """Tell whether retrying a little later may help."""
    if isinstance(fault, httpx2.TransportError | CutError | WrongBytesError):
        return True
    return read_status(fault) in (408, 429) or read_status(fault) >= 500


def has_no_line(fault: Exception) -> bool:
    """Tell whether nobody was reached at all, as without a network."""
    return isinstance(fault, httpx2.ConnectError | httpx2.ConnectTimeout)


def name_host(endpoint: str | None) -> str:
    return endpoint or constants.ENDPOINT


def read_wait_s(fault: Exception) -> float:
    """Return how long the hub asks to wait, 0 if it does not say."""
    if not isinstance(fault, HfHubHTTPError):
        return 0.0
    limit = parse_ratelimit_headers(fault.response.headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    after = fault.response.headers.get("Retry-After", "").strip()
    return float(after) if after.isdigit() else 0.0


def explain_fault(fault: Exception, repo: str, models: Path, endpoint: str | None = None) -> Trouble | None:
    """Explain a failure in a sentence; None for an unforeseen one."""
    host = name_host(endpoint)
    status = read_status(fault)
    if isinstance(fault, Trouble):
        return fault
    if isinstance(fault, OfflineModeIsEnabled):
        return Trouble(say("hub.offline", "Offline mode is on (HF_HUB_OFFLINE), so nothing can be downloaded. Restart Hearth without it."))
    if isinstance(fault, GatedRepoError) or status in (401, 403):
        return NeedsKey(_explain_gate(repo, host), cure="token")
    if status == 404:
        return NotThere(
            say(
                "hub.gone",
                "{host} no longer has {repo}, or one of its files. Update Hearth; if you use a mirror, try another one (HF_ENDPOINT).",
                host=host,
                repo=repo,
            ),
            cure="models",
        )
    if status == 429:
        return Trouble(
            say(
                "hub.busy",
                "{host} is limiting requests. Wait {time}, then press Resume; with an access token the limit is higher.",
                host=host,
                time=word_duration(read_wait_s(fault)),
            )
        )
    if status:
        return Trouble(
            say(
                "hub.down",
                "{host} has a problem at the moment (status {status}). The part already downloaded is kept; resume later.",
                host=host,
                status=status,
            )
        )
    if isinstance(fault, httpx2.TransportError | CutError):
        return Trouble(
            say(
                "hub.no-network",
                "Cannot connect to {host}, or the connection keeps failing. Check your network, then resume; "
                "the part already downloaded is kept.",
                host=host,
            )
        )
    if isinstance(fault, WrongBytesError):
        return Trouble(
            say(
                "hub.wrong",
                "{file} of {repo} was damaged in two downloads, so it was deleted. A proxy or mirror may be changing it; "
                "try another network or mirror (HF_ENDPOINT).",
                file=str(fault),
                repo=repo,
            )
        )
    if is_disk_full(fault):
        return Trouble(
            say(
                "hub.full",
                "The disk with {folder} is full. Free some space, then resume; the part already downloaded is kept.",
                folder=str(models),
            )
        )
    if isinstance(fault, OSError):
        return Trouble(
            say(
                "hub.folder",
                "Cannot write to {folder}: {fault}. Check the folder's permissions, or choose another one (HF_HUB_CACHE).",
                folder=str(models),
                fault=fault.strerror or type(fault).__name__,
            )
        )
    return None


def _explain_gate(repo: str, host: str) -> Sentence:
    if hub_token.get_token() is None:
        return say(
            "hub.no-token",
            "You must accept the terms of {repo} first. Accept them at {host}/{repo}, "
            "make a token with read access at {tokens}, and paste it in Models (or run: hf auth login).",
            repo=repo,
            host=host,
            tokens=hub_token.TOKENS_URL,
        )
    return say(
        "hub.no-access",
        "Your token has no access to {repo} yet. Accept its terms at {host}/{repo} with the same account, and allow the token to read gated models ({tokens}).",
        repo=repo,
        host=host,
        tokens=hub_token.TOKENS_URL,
    )
