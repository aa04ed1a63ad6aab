"""How long from the command to a page that takes clicks, and from a click to the first sound and picture of the starter models, in a real browser."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.places import TOP
from tests.support.waiting import LOADING_S
from tests.support.window import FLAGS, WHOLE_CHROMIUM

pytestmark = [pytest.mark.skipif(WHOLE_CHROMIUM is None, reason="no whole Chromium on this machine"), pytest.mark.slow]

ROUNDS = 3
SOUND_MOST_S = 2.0
"""It may take so long from a click on Speak to the first sound, once the voice is loaded."""
PICTURE_MOST_S = 4.0
SCRIPT = " (pause 0.3s) ".join(
    ["[S1] It is warm today. [S2] And the sea is calm. [S1] Then we go out with the boat, and come back in the evening."] * 4
)
"""A quiet machine does not have all of it before the page offers to listen."""
PROMPT = "a red boat on the sea"
CACHES = Path("/proc/sys/vm/drop_caches")

WATCH = """() => {
  let listened = 0, before;
  const begin = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...given) { window.sounded ??= performance.now(); return begin.apply(this, given); };
  addEventListener("click", (event) => {
    if (!event.target.closest("#speak-go, #paint-go")) return;
    [window.clicked, before, window.sounded, window.painted] = [performance.now(), Hearth.live.state.picture?.job];
  }, true);
  new MutationObserver(() => {
    const live = document.querySelector("#h-parts .h-live:not([hidden])");
    if (live && listened !== window.clicked) [listened] = [window.clicked, live.click()];
    const image = document.querySelector("#h-canvas .h-easel img:not([hidden])");
    const { job, end } = Hearth.live.state.picture ?? {};
    if (end && job !== before && image?.complete) window.painted ??= performance.now();
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
}"""
"""The first piece is listened to as soon as the page offers it: sooner than a person could."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The whole Chromium: without its windows a sound begins 0.4 s later."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=WHOLE_CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opening(home: Path) -> Iterator[tuple[float, str]]:
    """Start Hearth; give the time and, once it is told, the address."""
    began_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "open", "--no-browser", "--lang", "en", "--home", str(home)],
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield began_s, process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(timeout=LOADING_S)
        assert process.stdout is not None
        process.stdout.close()


def look(page: Page, address: str) -> None:
    """Open the page and use it: a click is taken, and what is typed is there."""
    page.goto(address)
    page.click('button[role="tab"][data-tab-id="paint"]')
    page.fill("#paint-prompt textarea", PROMPT)
    page.click('button[role="tab"][data-tab-id="speak"]')
    page.fill("#speak-text textarea", SCRIPT)


def since_click(page: Page, what: str) -> float:
    page.wait_for_function(f"window.{what} > window.clicked", timeout=1000 * LOADING_S)
    return float(page.evaluate(f"window.{what} - window.clicked")) / 1000


def measure(browser: Browser, home: Path) -> dict[str, float]:
    """Measure one opening: the page, the first results of an engine that has just begun, and those after."""
    page = browser.new_context(locale="en-US").new_page()
    page.set_default_timeout(1000 * LOADING_S)
    found = {}
    try:
        with opening(home) as (began_s, address):
            found["address told"] = time.monotonic() - began_s
            look(page, address)
            found["page used"] = time.monotonic() - began_s
            page.evaluate(WATCH)
            for name in ("at once", "warm"):
                page.click('button[role="tab"][data-tab-id="speak"]')
                page.click("#speak-go")
                found[f"first sound, {name}"] = since_click(page, "sounded")
                page.wait_for_function("Hearth.live.state.speech?.end")
                page.click('button[role="tab"][data-tab-id="paint"]')
                page.click("#paint-go")
                found[f"picture, {name}"] = since_click(page, "painted")
    finally:
        page.context.close()
    return found


def test_page_sound_and_picture_come_soon(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = {}
    if os.access(CACHES, os.W_OK):  # as after the machine was switched on: nothing of Hearth's is in memory
        os.sync()
        CACHES.write_text("3")
        cold = measure(browser, tmp_path / "cold")
    rounds = [measure(browser, tmp_path / str(number)) for number in range(ROUNDS)]
    warm = {stage: statistics.median(each[stage] for each in rounds) for stage in rounds[0]}
    with capsys.disabled():
        print("\nseconds: stage, files in memory (median), as after switching on")
        for stage, seconds in warm.items():
            print(f"{stage:24} {seconds:6.2f} {format(cold[stage], '6.2f') if cold else ''}")
    assert warm["first sound, warm"] <= SOUND_MOST_S and warm["picture, warm"] <= PICTURE_MOST_S, rounds
