"""The collector rests while libraries are imported, and only then."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from app.base.fast_import import pausing_collector
from tests.support.places import TOP

TIMED = """
import contextlib, gc, time
from app.base.fast_import import pausing_collector
began_s = time.process_time()
with pausing_collector() if {quickly} else contextlib.nullcontext():
    import gradio
print(time.process_time() - began_s, gc.isenabled(), gc.get_freeze_count())
"""


def test_it_rests_and_goes_on() -> None:
    before = gc.get_freeze_count()
    with pausing_collector():
        assert not gc.isenabled()
        made: list[object] = [[] for _ in range(100)]
    assert gc.isenabled() and gc.get_freeze_count() >= before + len(made)


def test_it_goes_on_after_a_failure_and_stays_off_where_it_was_off() -> None:
    with pytest.raises(ImportError), pausing_collector():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with pausing_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
def test_it_is_quicker(capsys: pytest.CaptureFixture[str]) -> None:
    took: dict[bool, list[float]] = {True: [], False: []}
    for quickly in (True, False) * 5:
        code = TIMED.format(quickly=quickly)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=TOP,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"},
        )
        seconds, on, frozen = done.stdout.split()
        assert on == "True" and (int(frozen) > 0) == quickly
        took[quickly].append(float(seconds))
    quick, usual = sorted(took[True])[2], sorted(took[False])[2]
    with capsys.disabled():
        print(f"\ngradio imported in {quick:.2f} s of processor time, {usual:.2f} s with the collector: {usual / quick:.2f}x")
    assert quick < 0.93 * usual
