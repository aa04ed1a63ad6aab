"""What a person is refused is told in a sentence, where it was asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.window import go, needs_chromium, unfold

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


@pytest.mark.slow
def test_a_junk_lora(page: Page, tmp_path: Path) -> None:
    go(page, "paint")
    unfold(page, "LoRAs")
    (tmp_path / "junk.safetensors").write_bytes(b"no weights at all")
    page.locator("#paint-loras input[type=file]").set_input_files(tmp_path / "junk.safetensors")
    told = page.locator(".h-force li").locator("visible=true")
    expect(told).to_have_text(re.compile("^Not used: junk.safetensors is damaged, incomplete or not what its name says."))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "field", "typed", "place", "words"),
    [
        ("models", "#h-models .h-add input", "/nowhere/at all", "#h-models [role=alert]", "/nowhere/at all"),
        ("machine", "#h-machines .h-lend input[type=text]", "not a code", "#h-machines [role=alert]", "code"),
        ("machine", "#machine-exact input, #machine-exact textarea", "many", "#machine-message", "'many' is not a valid chunk size."),
    ],
    ids=["a path without a model", "a code of no computer", "a chunk size that is none"],
)
def test_what_cannot_be(page: Page, tab: str, field: str, typed: str, place: str, words: str) -> None:
    go(page, tab)
    page.locator(field).fill(typed)
    page.keyboard.press("Enter")
    expect(page.locator(place).locator("visible=true")).to_contain_text(words)
