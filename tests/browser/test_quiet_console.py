"""What a person is refused is told in a sentence and leaves the browser's console empty; what is really wrong is still written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from app.ui.state.desk import Desk
from tests.support.both_servers import served
from tests.support.waiting import until
from tests.support.window import WAIT_MS, go, needs_chromium, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str]]:
    with served(tmp_path_factory.mktemp("refused")) as (desk, address, _):
        desk.settings.put({"greeted": True})
        yield desk, address


@pytest.fixture
def written(page: Page) -> list[str]:
    """Errors in the console. Gradio warns there of each file that is sent that it closes a stream that it cannot close."""
    said: list[str] = []
    page.on("console", lambda each: said.append(each.text) if each.type == "error" else None)
    return said


@pytest.fixture
def page(browser: Browser, opened: tuple[Desk, str]) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(opened[1])
    page.wait_for_selector("#h-strip .h-doing:not(:empty)")
    yield page
    context.close()


def test_a_junk_lora(page: Page, written: list[str], tmp_path: Path) -> None:
    go(page, "paint")
    unfold(page, "Settings")
    (tmp_path / "junk.safetensors").write_bytes(b"no weights at all")
    page.locator("#paint-settings input[type=file]").set_input_files(tmp_path / "junk.safetensors")
    told = page.locator(".h-force li").locator("visible=true")
    expect(told).to_have_text(re.compile("^Not used: junk.safetensors is damaged, incomplete or not what its name says."))
    page.wait_for_timeout(300)
    assert not written


def test_a_path_without_a_model(page: Page, written: list[str]) -> None:
    go(page, "models")
    page.locator("#h-models .h-add input").fill("/nowhere/at all")
    page.keyboard.press("Enter")
    expect(page.locator("#h-models [role=alert]").locator("visible=true")).to_contain_text("/nowhere/at all")
    page.wait_for_timeout(300)
    assert not written


def test_a_code_of_no_computer(page: Page, written: list[str]) -> None:
    go(page, "machine")
    page.locator("#h-machines .h-lend input[type=text]").fill("not a code")
    page.keyboard.press("Enter")
    expect(page.locator("#h-machines [role=alert]").locator("visible=true")).to_contain_text("code")
    page.wait_for_timeout(300)
    assert not written


def test_a_chunk_size_that_is_none(page: Page, written: list[str]) -> None:
    go(page, "machine")
    page.fill("#machine-exact input, #machine-exact textarea", "many")
    page.keyboard.press("Enter")
    expect(page.locator("#machine-message")).to_contain_text("'many' is not a valid chunk size.")
    page.wait_for_timeout(300)
    assert not written


def test_a_fault_is_still_written(page: Page, written: list[str]) -> None:
    assert page.evaluate("fetch('hearth/nowhere').then((answer) => answer.status)") == 404
    until(lambda: page.wait_for_timeout(50) is None and any("404" in each for each in written))
