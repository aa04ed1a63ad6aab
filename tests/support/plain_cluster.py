"""A plain Dask cluster in processes of its own, which Hearth did not start: Dask's own temporary certificates, nannies and all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from app.engine.keeper import worker
from tests.support import light_painter
from tests.support.places import TOP

FILES = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}


@dataclass(frozen=True)
class PlainCluster:
    address: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def words(self) -> list[str]:
        """What `hearth machines use` is told."""
        return [self.address, *(word for name in FILES for word in (f"--{name}", str(self.folder / f"{name}.pem")))]

    def list_workers(self) -> list[psutil.Process]:
        """Return the workers' own processes, which their nannies start again."""
        below = psutil.Process(self.process.pid).children()
        return [each for each in below if "spawn_main" in " ".join(each.cmdline())]


@contextmanager
def plain_cluster(folder: Path, workers: int = 2) -> Iterator[PlainCluster]:
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.support.plain_cluster", str(folder), str(workers)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HEARTH_HOME": str(folder / "models-of-the-account")}
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(command, cwd=TOP, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield PlainCluster(json.loads(process.stdout.readline()), folder, process)
    finally:
        family = psutil.Process(process.pid).children(recursive=True)
        for each in [psutil.Process(process.pid), *family]:
            with suppress(psutil.NoSuchProcess):  # the end of one ends others
                each.kill()
        psutil.wait_procs(family, timeout=20)
        process.wait()
        process.stdin.close()
        process.stdout.close()


def dask_setup(_: Any) -> None:
    """Called by Dask in each worker: its engine is the light painter."""
    worker.main = light_painter.main


def serve(folder: Path, workers: int) -> None:
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    security = Security.temporary()
    for name, setting in FILES.items():
        (folder / f"{name}.pem").write_text(getattr(security, setting))
    dask.config.set({"distributed.worker.preload": ["tests.support.plain_cluster"], "distributed.nanny.environ.OMP_NUM_THREADS": 1})
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=2, security=security, protocol="tls://", dashboard_address=None, local_directory=str(folder)
    )
    print(json.dumps(cluster.scheduler_address), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
