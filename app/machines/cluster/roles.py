"""What a connection may ask of the scheduler, by the certificate behind it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.machines.cluster.dask_setup import TASKS_MOST
from app.machines.joining.certificates import MAIN_NAME

HELLO: Final = "hearth_hello"
REMOVED: Final = {"refused": "removed"}
"""What a machine that is not in the register is told in place of a greeting."""
OWN: Final = frozenset({HELLO, "hearth_begin", "hearth_fetch", "hearth_keep", "hearth_end"})
"""Hearth's own operations, for helpers."""
ADDRESSED: Final = frozenset({"register-worker", "heartbeat_worker", "unregister"})
"""All of dask's handlers that a worker needs; each names the worker by its address."""
CLIENT: Final = frozenset({"register-client", "identity"})
"""All of dask's handlers that the main machine's own client needs."""
STREAMED: Final = frozenset(
    {"task-finished", "task-erred", "reschedule", "keep-alive", "log-event", "worker-status-change", "release-worker-data"}
)  # fmt: skip
"""What a worker of Hearth's says within its stream; the rest of dask's is about results of others and tasks that are stolen."""
KEY_LETTERS: Final = 200
"""The most letters of a task's name."""
NO_METRICS: Final[Mapping[str, Any]] = {
    "bandwidth": {"total": 1, "workers": {}, "types": {}}, "digests_total_since_heartbeat": {}, "memory": 0, "managed_bytes": 0,
    "spilled_bytes": {"memory": 0, "disk": 0},
}  # fmt: skip
"""Dask adds up for ever whatever names stand in a worker's own."""


def find_machine(peer: Mapping[str, Any] | None) -> str:
    """Return the id in a connection's certificate, as Python's ssl gives it; "" without one."""
    names = [value for part in (peer or {}).get("subject", ()) for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


def list_operations(id_: str, known: bool) -> frozenset[str]:
    """`known`: whether the machine is in the register."""
    if id_ == MAIN_NAME:
        return CLIENT
    return (OWN | ADDRESSED) if known else frozenset()


def introduce(operation: str, id_: str, address: str, message: Mapping[str, Any], versions: Mapping[str, Any]) -> dict[str, Any]:
    """Return what dask is told in place of what a worker says of itself, which it would keep, and show to the others. `versions`: dask's
    of this machine; Hearth's own are compared before."""
    said = {"address": address, "resolve_address": False, "now": 0.0, "metrics": NO_METRICS}
    match operation:
        case "register-worker":
            status = "paused" if message.get("status") == "paused" else "running"
            nothing = {"resources": {}, "services": {}, "extra": {}, "memory_limit": 0, "local_directory": "", "nanny": None}
            said |= {"name": id_, "server_id": id_, "nthreads": TASKS_MOST, "status": status, "stimulus_id": "hearth-join"}
            return {**said, **nothing, "versions": versions}
        case "unregister":
            return {"address": address, "stimulus_id": "hearth-leave"}
        case _:
            return said


def keep_own_words(messages: Any, address: str) -> list[dict[str, Any]]:
    """Leave of a worker's stream what a worker may say, always under its own address. What dask's client would unpickle is left out, the
    type of a result and what went wrong; and what dask would keep or repeat, in whatever length."""
    found = messages if isinstance(messages, list | tuple) else (messages,)
    said = [
        each for each in found if isinstance(each, dict) and each.get("op") in (*STREAMED, "close-stream") and _is_key(each.get("key", ""))
    ]
    ours: dict[str, Any] = {
        "worker": address,
        "type": None,
        "exception": "",
        "traceback": None,
        "stimulus_id": "helper",
        "typename": "",
        "metadata": {},
    }
    return [{key: ours.get(key, value) for key, value in each.items()} for each in said]


def _is_key(key: Any) -> bool:
    return isinstance(key, str) and len(key) <= KEY_LETTERS
