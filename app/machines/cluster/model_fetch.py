"""Fetch the files of a model from the main machine, piece by piece in a thread, beside the tasks; what has arrived is not fetched again."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from app.machines.cluster.dask_settings import PIECE_BYTES
from app.machines.cluster.pipe import Listener, Message

TOLD_S: Final = 1.0
"""How often the keeper's process is told how far it is."""
_PART: Final = ".part"


class ModelFetch:
    def __init__(self, pipe: Listener, ask: Callable[..., dict[str, Any]]) -> None:
        """`ask`: the main machine, for a piece; it raises whatever where there is none."""
        self._pipe, self._ask = pipe, ask
        self._turn, self._attempt = threading.Lock(), 0

    def start(self, message: Message) -> None:
        """Fetch what a message names, in place of what was fetched before."""
        self._attempt += 1
        values = (self._attempt, message["model"], message["files"], Path(message["folder"]))
        threading.Thread(target=self._wait_and_run, args=values, name="model-fetch", daemon=True).start()

    def leave(self) -> None:
        self._attempt += 1

    def _wait_and_run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        with self._turn:  # the one before may have a piece on its way to the same file
            self._run(attempt, model, files, folder)

    def _run(self, attempt: int, model: str, files: dict[str, int], folder: Path) -> None:
        done, told_s = 0, time.monotonic()
        try:
            for sha256, size in files.items():
                for length in self._fetch(model, sha256, size, folder / sha256):
                    if self._attempt != attempt:
                        return
                    done += length
                    if time.monotonic() - told_s > TOLD_S:
                        told_s = time.monotonic()
                        self._pipe.tell("model-step", model=model, done=done, missing=sum(files.values()))
        except Exception as fault:  # the connection, the disk, or bytes that are not as they were said to be
            self._pipe.tell("model-lost", model=model, fault=str(fault)[:200])
            return
        self._pipe.tell("model-here", model=model)

    def _fetch(self, model: str, sha256: str, size: int, path: Path) -> Any:
        """Fetch one file, going on with what is there; yield the length of each piece. Raise ValueError if it is another file."""
        part, digest, have = path.with_name(f"{sha256}{_PART}"), hashlib.sha256(), 0
        if part.is_file():
            with part.open("rb") as kept:
                while piece := kept.read(PIECE_BYTES):
                    digest.update(piece)
                    have += len(piece)
                    yield len(piece)
        with part.open("ab") as file:
            while have < size:
                data = self._ask(model=model, sha256=sha256, offset=have).get("data")
                if not isinstance(data, bytes) or not data or have + len(data) > size:
                    break
                digest.update(data)
                file.write(data)
                have += len(data)
                yield len(data)
        if have != size or digest.hexdigest() != sha256:
            part.unlink()
            raise ValueError(sha256)
        part.replace(path)
