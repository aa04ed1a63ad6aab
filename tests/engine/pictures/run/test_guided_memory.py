"""Test that a guided picture takes as much memory as is forecast: its model's and its control model's weights lie there together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.picture_memory import write_models
from tests.support.places import TOP


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads a process's own memory as Linux tells it")
def test_a_guided_picture_takes_what_is_forecast(tmp_path: Path) -> None:
    """A real job of 384 pixels, beside the same one without a guide; each in a process of its own."""
    write_models(tmp_path)
    plain, guided = (_measure(case, tmp_path) for case in ("text", "edges"))
    for made in (plain, guided):
        assert abs(made["taken"] - made["forecast"]) < 0.15 * made["taken"], made
    assert guided["forecast"] > plain["forecast"] and guided["taken"] > plain["taken"]


def _measure(case: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.picture_memory", case, "--within", str(folder)]
    told = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1]
    found: dict[str, Any] = json.loads(told)
    return found
