"""What the Machine tab is told: values that JSON knows, whatever the self-test found."""

from __future__ import annotations

import json
import math

from app.compat.verdicts import Verdict
from app.ui.machine_view import selftest_view


def test_a_path_that_raised_or_gave_nan_can_be_told() -> None:
    raised = Verdict(
        "row:sdpa-dtype", passed=False, error=math.inf, words="Expected query and key to have the same dtype."
    )
    right = Verdict("path:gqa/folded/float32", passed=True, error=1e-7, elapsed_s=0.002)
    view = selftest_view({each.subject: each for each in (raised, right)})
    told = json.loads(json.dumps(view, allow_nan=False))
    assert [row["error"] for row in (*told["rows"], *told["paths"])] == [None, 1e-7]
    assert (told["right"], told["total"]) == (1, 1)
