"""Let pickles name only what dask itself needs: whoever is connected could otherwise have any function called in this process."""

from __future__ import annotations

import sys
from typing import Any, Final

ALLOWED: Final = frozenset(
    {
        ("app.machines.cluster.work", "run_task"),
        ("builtins", "bool"),
        ("dask._expr", "Expr._reconstruct"),
        ("dask._expr", "LLGExpr"),
        ("dask._task_spec", "Task"),
    }
)
"""Classes that only hold values, what puts them together again, and the one function that a helper runs, which does nothing elsewhere.
distributed unpickles what any connected machine sends, before it
looks at it, and since 2025 it cannot be told not to."""


def guard_pickles(more: frozenset[tuple[str, str]] = frozenset()) -> None:
    """Refuse all other names in every unpickler of this process, from now on: an audit hook cannot be taken out again. `more`: names that are
    allowed beside these."""
    allowed = ALLOWED | more

    def check(event: str, values: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and values not in allowed:
            raise PermissionError(f"a pickle names {values[0]}.{values[1]}, which no machine may send")

    sys.addaudithook(check)
