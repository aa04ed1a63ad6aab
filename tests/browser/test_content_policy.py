"""The page's policy: scripts that somebody's words smuggled in are not run, and nothing that the page itself needs is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from app.ui.share import Share
from app.ui.state.desk import Desk
from tests.support.both_servers import served
from tests.support.window import WAIT_MS, go, needs_chromium, unfold, until_seen

pytest_plugins = ["tests.support.window"]
pytestmark = [pytest.mark.long, needs_chromium]
WATCH = """window.refused = [];
document.addEventListener("securitypolicyviolation", (event) => refused.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));"""
SMUGGLED = """() => {
  document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.ran = 1"><a id="smuggled" href="javascript:window.ran = 2">go</a>');
  const script = document.createElement("script");
  script.textContent = "window.ran = 3";
  document.body.append(script);
  document.querySelector("#smuggled").click();
}"""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str, Share]]:
    with served(tmp_path_factory.mktemp("policy")) as (desk, address, sharing):
        desk.settings.put({"greeted": True})
        yield desk, address, sharing


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
    context.add_init_script(WATCH)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    yield page
    context.close()


def use_everything(page: Page, folder: Path, tabs: tuple[str, ...]) -> None:
    """Every tab, a recording with its waveform, and the starting picture, which is drawn from blobs."""
    soundfile.write(folder / "clip.wav", (0.2 * np.sin(np.arange(48_000) / 20)).astype(np.float32), 16_000)
    Image.new("RGB", (64, 64), "red").save(folder / "start.png")
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    for tab in tabs:
        go(page, tab)
    go(page, "speak")
    unfold(page, "Create a voice from a recording")
    page.locator("#speak-clip input[type=file]").set_input_files(folder / "clip.wav")
    expect(page.locator("#speak-clip .waveform-container, #speak-clip #waveform").first).to_be_visible()
    go(page, "paint")
    unfold(page, "Start from a picture")
    page.set_input_files("#h-sketch input[type=file]", folder / "start.png")
    expect(page.locator("#h-sketch canvas").first).to_be_visible()
    expect(page.locator(".h-force li").locator("visible=true").filter(has_text="starting from")).to_be_visible()


@pytest.mark.slow
def test_the_owners_page(page: Page, opened: tuple[Desk, str, Share], tmp_path: Path) -> None:
    written: list[str] = []
    page.on("console", lambda each: written.append(each.text) if "Content Security" in each.text else None)
    page.goto(opened[1])
    use_everything(page, tmp_path, ("speak", "paint", "shelf", "models", "machine"))
    assert page.evaluate("refused") == [] and not written
    page.evaluate(SMUGGLED)
    until_seen(page, lambda: len(page.evaluate("refused")) >= 3)
    assert page.evaluate("window.ran") is None
    assert {each.split()[0] for each in page.evaluate("refused")} <= {"script-src-attr", "script-src-elem"}


@pytest.mark.slow
def test_a_guests_page(page: Page, opened: tuple[Desk, str, Share], tmp_path: Path) -> None:
    view = opened[2].view()
    page.goto(view["address"])
    page.get_by_label("Password").fill(view["password"])
    page.get_by_role("button", name="Log in").click()
    use_everything(page, tmp_path, ("speak", "paint", "shelf"))
    assert page.evaluate("refused") == []
