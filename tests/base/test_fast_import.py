"""The collector rests while libraries are imported, and only then; Gradio writes no stubs."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from app.base.fast_import import pausing_collector, skipping_stubs
from tests.support import source_trees
from tests.support.places import TOP

TIMED = """
import contextlib, gc, time
from app.base.fast_import import pausing_collector, skipping_stubs
began_s = time.process_time()
with contextlib.ExitStack() as stack:
    if {quickly}:
        stack.enter_context(pausing_collector())
        stack.enter_context(skipping_stubs())
    import gradio
print(time.process_time() - began_s, gc.isenabled(), gc.get_freeze_count())
"""
COMPONENT = """
from gradio.component_meta import ComponentMeta

class Box(metaclass=ComponentMeta):
    EVENTS = []
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


def test_what_an_earlier_test_dropped_does_not_stay_with_the_trees_of_source(tmp_path: Path) -> None:
    class Circle:
        def __init__(self) -> None:
            self.itself = self

    file = tmp_path / "file.py"
    file.write_text("one = 1\n")
    source_trees._collect_once.cache_clear()
    gc.disable()
    try:
        dropped = weakref.ref(Circle())
        source_trees.tree_of(file)
    finally:
        gc.enable()
    gc.collect()
    assert dropped() is None


@pytest.mark.parametrize("skipped", [False, True])
def test_a_component_gets_no_stub(skipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boxed.py").write_text(COMPONENT)
    monkeypatch.syspath_prepend(tmp_path)
    gradio = importlib.import_module("gradio")
    monkeypatch.setattr(gradio, "component_meta", None)
    for name in ("gradio.component_meta", "boxed"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    with skipping_stubs() if skipped else contextlib.nullcontext():
        importlib.import_module("boxed")
    assert (tmp_path / "boxed.pyi").exists() != skipped


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
        print(f"\ngradio imported in {quick:.2f} s of processor time, {usual:.2f} s with the collector and the stubs: {usual / quick:.2f}x")
    assert quick < 0.75 * usual
