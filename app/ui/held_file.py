"""Send a file that may be moved or deleted meanwhile: it is opened before the answer begins, and sent whole."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from starlette.responses import FileResponse
from starlette.types import Receive, Scope, Send


class HeldFile(FileResponse):
    """Starlette's own opens the file only after it has promised its length; a file that has gone by then breaks the answer off."""

    def __init__(self, path: Path, **options: Any) -> None:
        self._held = path.open("rb")
        super().__init__(path, stat_result=os.fstat(self._held.fileno()), **options)

    @asynccontextmanager
    async def _open_file(self) -> AsyncIterator[anyio.AsyncFile[bytes]]:
        try:
            yield anyio.wrap_file(self._held)
        finally:
            self._held.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._held.close()  # also after an answer of headers alone
