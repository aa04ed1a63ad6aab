"""What a connection may ask of the scheduler, by the certificate behind it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.machines.joining.certificates import MAIN_NAME

HELLO: Final = "hearth_hello"
REMOVED: Final = {"refused": "removed"}
"""What a machine that is not in the register is told in place of a greeting."""
OWN: Final = frozenset({HELLO, "hearth_begin", "hearth_fetch", "hearth_keep", "hearth_end"})
"""Hearth's own operations, for helpers."""
ADDRESSED: Final = frozenset({"register-worker", "heartbeat_worker", "unregister"})
"""Of dask's, all that a worker needs; each names the worker by its address."""
CLIENT: Final = frozenset({"register-client", "identity"})
"""Of dask's, all that the main machine's own client needs."""
STREAMED: Final = frozenset(
    {"task-finished", "task-erred", "long-running", "reschedule", "keep-alive", "log-event", "worker-status-change", "release-worker-data",
     "add-keys", "steal-response", "request-refresh-who-has"}
)  # fmt: skip
"""What a worker may say within its stream."""


def find_machine(peer: Mapping[str, Any] | None) -> str:
    """Return the id in a connection's certificate, as Python's ssl gives it; "" without one."""
    names = [value for part in (peer or {}).get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


def list_operations(id_: str, known: bool) -> frozenset[str]:
    """`known`: whether the machine is in the register."""
    if id_ == MAIN_NAME:
        return CLIENT
    return (OWN | ADDRESSED) if known else frozenset()


def keep_own_words(messages: Any, address: str) -> list[dict[str, Any]]:
    """Leave of a worker's stream what a worker may say, always under its own address. What dask's client would unpickle is left out: the
    type of a result, and what went wrong."""
    found = messages if isinstance(messages, list | tuple) else (messages,)
    said = [each for each in found if isinstance(each, dict) and each.get("op") in (*STREAMED, "close-stream")]
    ours = {"worker": address, "type": None, "exception": "", "traceback": None}
    return [{key: ours.get(key, value) for key, value in each.items()} for each in said]
