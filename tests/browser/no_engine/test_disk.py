"""The disk on the Machine tab: shown on a press, moved by the keyboard alone after a dialog says what it means, an unplugged one said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from app.base.other_disk import find_target
from app.ui.state import disk_desk
from app.ui.state.desk import Desk
from tests.support.window import go, needs_chromium, open_page

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_from_what_takes_room_to_another_disk_and_back(
    browser: Browser, opened: tuple[Desk, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_desk, "can_add", lambda: False)  # the environment is large, and not what this is about
    desk, address = opened
    loras, other = desk.keeper.home.loras, tmp_path / "other disk"
    loras.mkdir()
    other.mkdir()
    (loras / "b.safetensors").write_bytes(bytes(2_000_000))
    os.link(loras / "b.safetensors", loras / "the same content, so no double.safetensors")
    (loras / "c.safetensors").write_bytes(bytes(2_000_000))
    with open_page(browser, address, locale="en-US") as page:
        go(page, "machine")
        card, dialog = page.locator("#h-disk"), page.get_by_role("dialog")
        expect(card.locator("li")).to_have_count(0)
        card.get_by_role("button", name="Show what takes room").click()
        expect(card).to_contain_text("4.0 MB")
        button = card.get_by_role("button", name="Move: LoRAs and embeddings")
        button.focus()
        page.keyboard.press("Enter")
        expect(dialog).to_contain_text("are copied and the copy compared")
        expect(dialog.get_by_label("Folder on another disk")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(button).to_be_focused()
        assert find_target(loras) is None, "Esc means no"
        page.keyboard.press("Enter")
        dialog.get_by_label("Folder on another disk").fill(str(other))
        dialog.get_by_role("button", name="Move", exact=True).click()
        expect(card).to_contain_text(f"On another disk: {other}/Hearth/loras")
        expect(card.get_by_role("status")).to_contain_text("LoRAs and embeddings is moved.")
        other.rename(tmp_path / "drawer")
        card.get_by_role("button", name="Look again").click()
        expect(card).to_contain_text("which is not connected")
        expect(card.get_by_role("button", name="Bring back: LoRAs and embeddings")).to_be_hidden()
        card.get_by_role("button", name="It is here now: LoRAs and embeddings").click()
        expect(dialog).to_contain_text(f"It was at {other}/Hearth/loras.")
        dialog.get_by_label("Folder on another disk").fill(str(tmp_path / "drawer"))
        dialog.get_by_role("button", name="It is here now").click()
        expect(card).to_contain_text(f"On another disk: {tmp_path}/drawer/Hearth/loras")
        card.get_by_role("button", name="Bring back: LoRAs and embeddings").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Bring back").click()
        expect(card.get_by_role("button", name="Move: LoRAs and embeddings")).to_be_visible()
        assert find_target(loras) is None and (loras / "c.safetensors").stat().st_size == 2_000_000
