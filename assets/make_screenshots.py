"""Screenshots of every tab, light and dark, from a running Hearth: python assets/make_screenshots.py http://127.0.0.1:7860"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TABS = ("speak", "paint", "shelf", "models", "machine")
SCRIPT = "[S1] The red house is near the river. [S2] Seven three nine one. [S1] Thank you, my friend."
PROMPT = "a red circle left of a blue square on a white background"
SIZE = {"width": 1400, "height": 880}
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main(address: str) -> None:
    target = Path(__file__).parent / "screenshots"
    target.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scheme in ("light", "dark"):
            page = browser.new_context(viewport=SIZE, color_scheme=scheme).new_page()
            page.goto(address)
            page.wait_for_selector('button[role="tab"]')
            page.wait_for_selector("#h-strip .h-memory-text:not(:empty)")
            if scheme == "light":
                page.fill("#speak-text textarea", SCRIPT)
                page.keyboard.press("Control+Enter")
                page.wait_for_selector("#h-sound .h-player")
                page.click('button[data-tab-id="paint"]')
                page.fill("#paint-prompt textarea", PROMPT)
                page.keyboard.press("Control+Enter")
                page.wait_for_selector("#h-canvas .h-acts a")
            for tab in TABS:
                page.click(f'button[role="tab"][data-tab-id="{tab}"]')
                page.wait_for_timeout(1500)
                page.screenshot(path=target / f"{tab}-{scheme}.png")
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
