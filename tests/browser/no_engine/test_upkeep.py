"""A newer version on the Machine tab: the question, what is new, the press that says what it does, the restart; and extras by a press."""

from __future__ import annotations

from unittest.mock import Mock

import httpx
import pytest
from playwright.sync_api import Browser, expect

from app.base import extras
from app.base.sentence import say
from app.launcher import releases
from app.launcher.releases import Offer
from app.ui.state.desk import Desk
from app.ui.state.upkeep import Upkeep
from tests.support.waiting import until
from tests.support.window import go, needs_chromium, open_page

pytest_plugins = ["tests.support.window"]
pytestmark = needs_chromium


def test_from_the_question_to_the_restart(browser: Browser, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    desk, address = opened
    offer = Offer("99.0.1", "hearth-99.0.1.zip", 34_000_000, "0" * 64, "### Speech\n\n- <b id='bold'>Laughter</b>")
    begun, ready, restarted = Mock(return_value=True), dict[str, str](), Mock()
    monkeypatch.setattr(releases, "find_newer", lambda: offer)
    monkeypatch.setattr(Upkeep, "explain_fixed", lambda self: None)
    monkeypatch.setattr(Upkeep, "find_ready", lambda self: ready)
    monkeypatch.setattr(Upkeep, "restart", restarted)
    monkeypatch.setattr(desk.upkeep.beside, "start", begun)
    monkeypatch.setattr(extras.Extra, "is_here", property(lambda self: self.name != "aac"))
    with open_page(browser, address, locale="en-US") as page:
        go(page, "machine")
        card, dialog = page.locator("#h-upkeep"), page.get_by_role("alertdialog")
        expect(card).to_contain_text("May Hearth look for a newer version, once a day?")
        card.get_by_role("button", name="Yes, once a day").click()
        expect(card).to_contain_text("Hearth 99.0.1 is there.")
        expect(card.get_by_role("switch", name="Look once a day")).to_be_checked()
        expect(card.get_by_role("button", name="No", exact=True)).to_be_hidden()
        card.locator("summary").click()
        expect(card.locator("pre")).to_have_text("### Speech\n\n- <b id='bold'>Laughter</b>")
        assert not page.locator("#bold").count(), "notes are text"

        card.get_by_role("button", name="Add: AAC and audiobooks").click()
        expect(dialog).to_contain_text("About 36.0 MB are downloaded; licence: BSD (PyAV), LGPL and GPL (FFmpeg)")
        dialog.get_by_role("button", name="Cancel").click()
        assert not begun.called, "never without a yes"
        card.get_by_role("button", name="Add: AAC and audiobooks").click()
        dialog.get_by_role("button", name="Add").click()
        expect(dialog).to_have_count(0)

        card.get_by_role("button", name="Update to 99.0.1").click()
        expect(dialog).to_contain_text("34.0 MB are downloaded")
        monkeypatch.setattr(desk.upkeep.beside, "describe", lambda: (say("pip.installs", "installing packages"),))
        dialog.get_by_role("button", name="Update").click()
        expect(card.locator(".h-work")).to_have_text("Preparing beside what runs · installing packages")
        expect(card.get_by_role("status")).to_have_text("Preparing beside what runs")  # what changes each second is not read out
        assert [each.args for each in begun.call_args_list] == [("environment", "aac"), ("update",)]
        expect(card.get_by_role("button", name="Update to")).to_be_hidden()
        expect(card.get_by_role("button", name="Add: AAC and audiobooks")).to_be_disabled()

        ready.update(version="99.0.1", slot="b", undo="yes")
        monkeypatch.setattr(desk.upkeep.beside, "describe", lambda: ())
        expect(card.get_by_role("status")).to_have_text("Hearth 99.0.1 is ready and tested. A restart takes it.")
        card.get_by_role("button", name="Restart now").click()
        expect(dialog).to_contain_text("can be continued from its last finished part")
        dialog.get_by_role("button", name="Restart now").click()
        expect(dialog).to_have_count(0)
        until(lambda: restarted.call_count == 1)


def test_assistants_are_let_in_by_a_switch(browser: Browser, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch) -> None:
    desk, address = opened
    restarted = Mock()
    monkeypatch.setattr(Upkeep, "restart", restarted)
    monkeypatch.setattr(extras.Extra, "is_here", property(lambda self: self.name == "mcp"))
    with open_page(browser, address, locale="en-US", permissions=["clipboard-read", "clipboard-write"]) as page:
        go(page, "machine")
        row = page.locator("#h-upkeep .h-extras > li", has_text="MCP")
        switch = row.get_by_role("switch", name="Let assistants on this computer speak and paint")
        expect(switch).not_to_be_checked()
        expect(row.get_by_text("A restart takes it.")).to_be_hidden()
        switch.click()
        expect(row.get_by_text("A restart takes it.")).to_be_visible()
        expect(switch).to_be_checked()
        assert desk.settings.get("assistants") is True
        assert httpx.post(f"{address}gradio_api/mcp/", json={}).status_code in (404, 405), "not before the restart"
        expect(row.locator(".h-at")).to_be_hidden()
        row.get_by_role("button", name="Restart now").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Restart now").click()
        until(lambda: restarted.call_count == 1)

        monkeypatch.setattr(desk.upkeep, "assistants_address", "http://127.0.0.1:7860/gradio_api/mcp/")
        page.reload()
        go(page, "machine")
        expect(row.locator("code").last).to_have_text("http://127.0.0.1:7860/gradio_api/mcp/")
        expect(row.get_by_text("A restart takes it.")).to_be_hidden()
        row.get_by_role("button", name="Copy").click()
        expect(row.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "http://127.0.0.1:7860/gradio_api/mcp/"
        switch.click()
        expect(row.get_by_text("A restart takes it.")).to_be_visible()
        expect(switch).not_to_be_checked()

        monkeypatch.setattr(
            desk.upkeep, "assistants_fixed", say("mcp.opened", "Hearth was opened with --mcp, so they are let in until it is closed.")
        )
        page.reload()
        go(page, "machine")
        expect(row).to_contain_text("Hearth was opened with --mcp")
        expect(switch).to_be_checked()
        expect(switch).to_be_disabled()
        expect(row.get_by_text("A restart takes it.")).to_be_hidden()


@pytest.mark.slow
def test_the_version_before_the_update_is_one_press_away(
    browser: Browser, opened: tuple[Desk, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    back = Mock()
    monkeypatch.setattr(Upkeep, "can_go_back", lambda self: True)
    monkeypatch.setattr(Upkeep, "go_back", back)
    with open_page(browser, opened[1], locale="en-US") as page:
        go(page, "machine")
        page.locator("#h-upkeep").get_by_role("button", name="Back to the version before").click()
        dialog = page.get_by_role("alertdialog")
        expect(dialog).to_contain_text("Your creations, models and settings stay.")
        assert not back.called
        dialog.get_by_role("button", name="Go back").click()
        until(lambda: back.call_count == 1)
