"""How soon the page can be clicked: Hearth against an empty gr.Blocks, started the same way, turn by turn, in one run."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.window import TOP, needs_chromium

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


def seconds(browser: Browser, command: list[str], clicked: str) -> float:
    """From the start of the process to a click that is taken, in a browser that has seen nothing yet."""
    environment = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    context = browser.new_context()
    page = context.new_page()
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = next(found for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/?", line)))
        page.goto(found[0])
        page.click(clicked)
        return time.monotonic() - began
    finally:
        context.close()
        process.terminate()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()


def test_the_page_is_there_almost_as_soon_as_an_empty_one(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hearth = ["-m", "app", "open", "--no-browser", "--home", str(tmp_path / "home")]
    ours, empty = [], []
    for _ in range(ROUNDS):
        empty.append(seconds(browser, ["-c", EMPTY], "button:has-text('Go')"))
        ours.append(seconds(browser, hearth, 'button[role="tab"][data-tab-id="paint"]'))
    ratio = statistics.median(ours) / statistics.median(empty)
    with capsys.disabled():
        print(
            f"\nto a page that can be clicked: {statistics.median(ours):.2f} s, an empty gr.Blocks {statistics.median(empty):.2f} s: {ratio:.2f}x"
        )
    assert ratio <= MOST, (ours, empty)
