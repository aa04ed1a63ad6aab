"""How soon the page can be clicked: Hearth against an empty gr.Blocks, started the same way, turn by turn, in one run."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser

from tests.support.places import TOP
from tests.support.window import needs_chromium

pytest_plugins = ["tests.support.window"]
pytestmark = [needs_chromium, pytest.mark.slow]

ROUNDS = 5
MOST = 1.3
EMPTY = """
import time
import gradio as gr
with gr.Blocks(analytics_enabled=False) as window:
    gr.Button("Go")
_, address, _ = window.launch(prevent_thread_lock=True, quiet=True)
print(address, flush=True)
time.sleep(3600)
"""


def worked_s(process: psutil.Process) -> float:
    """By the processor's clock, which does not mind what else runs; without the engine, which is a child."""
    spent = process.cpu_times()
    return float(spent.user + spent.system)


def seconds(browser: Browser, command: list[str], clicked: str) -> tuple[float, float]:
    """From the start of the process to a click that is taken, in a browser that has seen nothing yet: by the clock, and the server's own work."""
    environment = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    context = browser.new_context()
    page = context.new_page()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        found = next(found for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/?", line)))
        page.goto(found[0])
        page.click(clicked)
        return time.monotonic() - began, worked_s(psutil.Process(process.pid))
    finally:
        context.close()
        process.terminate()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()


def test_the_page_is_there_almost_as_soon_as_an_empty_one(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hearth = ["-m", "app", "open", "--no-browser", "--home", str(tmp_path / "home")]
    ours, empty = [], []
    for _ in range(ROUNDS):
        empty.append(seconds(browser, ["-c", EMPTY], "button:has-text('Go')"))
        ours.append(seconds(browser, hearth, 'button[role="tab"][data-tab-id="paint"]'))
    (mine_s, my_work_s), (empty_s, empty_work_s) = (
        [statistics.median(column) for column in zip(*each, strict=True)] for each in (ours, empty)
    )
    with capsys.disabled():
        print(
            f"\nto a page that can be clicked: {mine_s:.2f} s, an empty gr.Blocks {empty_s:.2f} s: {mine_s / empty_s:.2f}x;"
            f" the server's own work {my_work_s:.2f} s and {empty_work_s:.2f} s: {my_work_s / empty_work_s:.2f}x"
        )
    assert mine_s <= MOST * empty_s, (ours, empty)
