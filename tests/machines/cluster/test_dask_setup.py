"""The user's own dask settings, in files and in the environment, stay out of the machines process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import TOP

pytest.importorskip("distributed", reason="the extra machines is not installed")

ASKED = """
from app.machines.cluster import dask_setup
dask_setup.set_up()
import dask, distributed
print(dask.config.get("distributed.scheduler.preload"), dask.config.get("distributed.worker.daemon"))
print(dask.config.get("distributed.scheduler.worker-ttl"))
"""


def test_nothing_of_the_users_own_settings_is_read(tmp_path: Path) -> None:
    for folder in (tmp_path / ".config" / "dask", tmp_path / "named"):
        folder.mkdir(parents=True)
        (folder / "own.yaml").write_text("distributed:\n  scheduler:\n    preload: [someones_module]\n    worker-ttl: 1s\n")
    own = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "DASK_CONFIG": str(tmp_path / "named")}
    env = {**os.environ, **own, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    done = subprocess.run([sys.executable, "-c", ASKED], cwd=TOP, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[] True", "60s"], done.stderr
