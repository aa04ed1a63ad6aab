"""Take screenshots of every tab, light and dark, from a running Hearth, which makes their content:
python assets/make_screenshots.py http://127.0.0.1:7860"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

TABS = ("speak", "paint", "shelf", "models", "machine")
SCRIPT = """[S1] Good morning, my friend. [S2] Good morning. The red house is near the river.
(pause 0.5s) [S1] Please bring bread and coffee. [S2] Thank you."""
FURTHER_PROMPTS = (
    "the sea by night with a moon at the right, a red lighthouse at the left and a boat",
    "two hearts and a yellow star on a pink background",
)
SIZE = {"width": 1400, "height": 900}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
LONG_MS = 600_000
NAME_NO_FOLDER = """() => {
  const line = document.querySelector("#h-models .h-where");
  if (line) line.textContent = line.textContent.replace(/in .+ [(]/, "in ~/.cache/huggingface/hub (");
}"""
"""Of whoever takes the pictures; the usual one instead."""


def main(address: str) -> None:
    target = Path(__file__).parent / "screenshots"
    target.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scheme in ("light", "dark"):
            page = browser.new_context(viewport=SIZE, color_scheme=scheme, locale="en-US").new_page()
            page.set_default_timeout(LONG_MS)
            page.goto(address)
            page.wait_for_selector("#h-strip .h-memory-text:not(:empty)")
            if scheme == "light":
                make(page)
            for tab in TABS:
                open_tab(page, tab)
                if tab == "machine":
                    unfold_tinkerers(page)
                page.evaluate("scrollTo(0, 0)")
                page.wait_for_timeout(2500)
                page.evaluate(NAME_NO_FOLDER)
                shot = Image.open(io.BytesIO(page.screenshot(full_page=tab == "machine"))).convert("RGB")
                shot.save(target / f"{tab}-{scheme}.png", optimize=True)
            page.context.close()
        browser.close()


def make(page: Page) -> None:
    """Answer the greeting, speak a script, paint every sample, run the self-test and Tune."""
    page.evaluate("fetch('hearth/greeting', { method: 'POST' })")
    page.reload()
    page.wait_for_selector("#h-strip .h-memory-text:not(:empty)")
    page.fill("#speak-text textarea", SCRIPT)
    page.click("#speak-go")
    page.wait_for_selector("#h-sound .h-player")
    open_tab(page, "paint")
    for prompt in (*FURTHER_PROMPTS, *reversed(page.evaluate("Hearth.prompts().map(([_, words]) => words)"))):
        before = page.evaluate("Hearth.live.state.picture?.results[0]?.id ?? 0")
        page.fill("#paint-prompt textarea", prompt)
        page.click("#paint-go")
        page.wait_for_function("before => (Hearth.live.state.picture?.results[0]?.id ?? 0) > before", arg=before)
    open_tab(page, "machine")
    page.click("#machine-test")
    page.wait_for_selector("#h-words .h-badge:is(.right, .careful)")
    page.reload()  # so that the tab looks at the painter, which is loaded now
    open_tab(page, "machine")
    unfold_tinkerers(page)
    page.click("#machine-tune")
    page.wait_for_selector("#h-curve polyline.speed")


def unfold_tinkerers(page: Page) -> None:
    """Open the fold that holds the plan, Tune and its curve."""
    if not page.locator("#h-curve").count():
        page.click("#machine-more > button.label-wrap")
    page.wait_for_selector("#h-curve svg")


def open_tab(page: Page, tab: str) -> None:
    page.click(f'button[role="tab"][data-tab-id="{tab}"]')
    page.wait_for_timeout(500)


if __name__ == "__main__":
    main(sys.argv[1])
