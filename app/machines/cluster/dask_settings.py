"""How dask is set up in the machines process: nothing of the user's own dask settings, TLS everywhere, no dashboards."""

from __future__ import annotations

import ipaddress
import logging
import os
from typing import Any, Final

from app.machines.joining.certificates import Identity

SETTINGS: Final = {
    "distributed.comm.require-encryption": True,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "30s",
    "distributed.scheduler.worker-ttl": "60s",
    "distributed.scheduler.allowed-failures": 20,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.events-cleanup-delay": "10s",
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.diagnostics.nvml": False,
    "distributed.diagnostics.computations.nframes": 0,
}
"""A machine that says nothing for `worker-ttl` sleeps or is unplugged. A task that met so many dying machines kills them.
Ticks and the system monitor, which nobody reads here, would wake every idle machine fifty times a second."""


TASKS_MOST: Final = 2
"""That a helper has at once: one in its engine, and one that waits there or whose results travel."""
BLOCK_BYTES: Final = 1 << 20
"""How much of a file goes in one message."""


def prepare_environment() -> None:
    """Keep the user's settings of dask out; before distributed is imported, which reads them."""
    for name in [each for each in os.environ if each.startswith("DASK_")]:
        del os.environ[name]
    import dask

    dask.config.refresh(paths=[], env={})


def apply_settings() -> None:
    """Set dask up, once it is imported."""
    import dask

    dask.config.set(SETTINGS)
    logging.getLogger("distributed").setLevel(logging.WARNING)


def name_address(id_: str) -> str:
    """Return the address under which dask knows a machine: made of its id, in a range that leads nowhere. Nobody connects to a
    helper; all that it does goes over connections of its own."""
    return f"tls://[{ipaddress.IPv6Address(bytes([0xFD]) + bytes.fromhex(id_)[:15]).compressed}]:1"


def make_security(identity: Identity) -> Any:
    """Return dask's security settings with Hearth's own TLS contexts."""
    from distributed.security import Security

    class OwnContexts(Security):
        __slots__ = ()

        def get_connection_args(self, role: str) -> dict[str, Any]:
            return {"ssl_context": identity.client_context(), "require_encryption": True, "extra_conn_args": {}}

        def get_listen_args(self, role: str) -> dict[str, Any]:
            return {"ssl_context": identity.server_context(), "require_encryption": True}

    return OwnContexts(require_encryption=True)
