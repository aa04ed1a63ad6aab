"""What helpers say when nothing happens: the main machine understands it, and neither log grows."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra machines is not installed")

from app.base.paths import home
from app.machines.hub import Hub
from app.machines.side_process import SideProcess
from bench.pretended_machines import PRETENDED, let_in, wait_until_online

BEATS_S = 2.0
"""Four heartbeats of dask's take so long."""


@pytest.mark.slow
def test_an_idle_helper_writes_no_log(tmp_path: Path) -> None:
    place = home(tmp_path).create()
    hub = Hub(place, "127.0.0.1")
    log = place.logs / "pretended.log"
    try:
        helper = {"folder": str(let_in(place, hub.register, 0)), "speed": 1.0}
        given = {"main": f"tls://127.0.0.1:{hub.port}", "helpers": [helper]}
        side = SideProcess(PRETENDED, lambda: given, log, lambda message: None)
        try:
            wait_until_online(hub, 1)
            time.sleep(BEATS_S)
            assert log.read_text() == (place.logs / "machines.log").read_text() == ""
        finally:
            side.close()
    finally:
        hub.close()
