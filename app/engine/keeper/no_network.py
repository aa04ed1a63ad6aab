"""Take the network and the hub's token from the engine's process, in which models of strangers are loaded."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

TOKENS: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    "HF_TOKEN_PATH": os.devnull,
    "HF_STORED_TOKENS_PATH": os.devnull,
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
}
_REFUSED: Final = frozenset(
    f"socket.{act}" for act in ("connect", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo")
)


def leave_network() -> None:
    """Go offline for good: an audit hook cannot be removed. Called before huggingface_hub is imported, which reads these once."""
    for name in TOKENS:
        os.environ.pop(name, None)
    os.environ.update(_OFFLINE)
    sys.addaudithook(_refuse_connection)


def _refuse_connection(event: str, given: tuple[Any, ...]) -> None:
    if event in _REFUSED and not (event == "socket.connect" and isinstance(given[1], str | bytes)):  # a path: on this computer
        raise PermissionError(f"{event}: the engine has no network")
