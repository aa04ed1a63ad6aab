"""`hearth lend` that sends what is made so far of a task every fifth of a second."""

from __future__ import annotations

import sys

from app.__main__ import main
from app.machines import lent_tasks

if __name__ == "__main__":
    lent_tasks.BEGUN_S = 0.2  # type: ignore[misc]
    sys.exit(main(["lend", *sys.argv[1:]]))
