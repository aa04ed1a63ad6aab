"""`hearth lend` with the light painter: a helper's own process, and its engine's and machines processes below it."""

from __future__ import annotations

import sys

from app.__main__ import main
from app.engine.keeper import worker
from app.machines import lent_tasks
from tests.support import light_painter

if __name__ == "__main__":
    worker.main = light_painter.main
    lent_tasks.BEGUN_S = 0.2  # type: ignore[misc]
    sys.exit(main(["lend", *sys.argv[1:]]))
