"""`hearth lend` with the light painter whose tasks never end: what it should say of their end is swallowed."""

from __future__ import annotations

import sys
from typing import Any

from app.__main__ import main
from app.engine.keeper import worker
from app.machines.lending import Lending
from tests.support import light_painter

if __name__ == "__main__":
    worker.main = light_painter.main
    tell = Lending._tell

    def swallow(lending: Lending, op: str, **values: Any) -> None:
        if op not in ("end", "begun"):
            tell(lending, op, **values)

    Lending._tell = swallow  # type: ignore[assignment,method-assign]
    sys.exit(main(["lend", *sys.argv[1:]]))
