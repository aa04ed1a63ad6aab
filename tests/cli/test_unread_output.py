"""Whoever reads a command's output may have enough of it, as `head`: the command then ends without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.__main__ import EXIT_UNREAD
from tests.support.places import TOP

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error there")]


@pytest.mark.parametrize("words", [("doctor", "--pretend", "gtx-1060"), ("models", "size", "starter-painter")], ids=["long", "short"])
def test_output_that_nobody_reads_any_more_is_no_fault(words: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", *words, "--home", str(tmp_path)]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    child = subprocess.Popen(command, cwd=TOP, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (EXIT_UNREAD, "")
