"""The window's process: what it imports, and that it gives way where there is nothing to show a window with."""

from __future__ import annotations

import os
import subprocess
import sys

from app.ui.own_window import RUN
from app.window.process import NO_WINDOW
from tests.support.places import TOP

NO_DISPLAY = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}


def test_it_imports_neither_torch_nor_gradio() -> None:
    """Its own modules, and pywebview with the engine where they are installed."""
    code = (
        "import sys; from app.window import engines, process\n"
        "engines.prepare_system(); engines.find_engine()\n"
        "heavy = {'torch', 'gradio', 'transformers', 'diffusers', 'numpy', 'pydantic', 'starlette'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=TOP, env=NO_DISPLAY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_a_display_it_says_so_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUN, str(TOP)], env=NO_DISPLAY, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == NO_WINDOW and not done.stdout, done.stderr
